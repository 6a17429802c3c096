// Fetch parts of the site, unpack them, and tell how much has come.

export class DownloadError extends Error {}

/** Fetch a part of the site, or fail with DownloadError. */
export async function get(url, options) {
  try {
    const response = await fetch(url, options);
    if (response.ok) return response;
    throw new DownloadError(`${url}: ${response.status}`);
  } catch (error) {
    throw error instanceof DownloadError ? error : new DownloadError(`${url}: ${error.message}`);
  }
}

/** The hash of what a file turned out to be, as the manifest writes it. */
async function hash(content) {
  const digest = await crypto.subtle.digest("SHA-256", content);
  return `sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}`;
}

/** What comes through, with each piece's size reported. It ends only if it was the file of the manifest; browsers hash on secure origins. */
function counted(body, { url, bytes, integrity }, report, failed) {
  const reader = body.getReader();
  const whole = globalThis.crypto?.subtle && new Uint8Array(bytes);
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          if (whole && await hash(whole) !== integrity) throw new Error(`${url} is not the file that was built`);
          controller.close();
        } else {
          whole?.set(value, at);
          at += value.byteLength;
          report(value.byteLength);
          controller.enqueue(value);
        }
      } catch (error) {
        const problem = new DownloadError(error.message);
        failed(problem);
        controller.error(problem);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/**
 * Download one file of the manifest: { url, bytes, integrity }. Gives a response of its content.
 * failed(error) hears of a failure at once, since Pyodide swallows those of its own requests.
 */
export async function download(file, { base, signal, report, failed }) {
  const response = await get(new URL(file.url, base), { signal }).catch((error) => { failed(error); throw error; });
  return new Response(counted(response.body, file, report, failed));
}
