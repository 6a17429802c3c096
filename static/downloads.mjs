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

/** What comes through, with each piece's size reported. */
function counted(body, report, failed) {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
        } else {
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
 * Download one file of the manifest: { url, packed, type }. Gives a response of its content, unpacked.
 * failed(error) hears of a failure at once, since Pyodide swallows those of its own requests.
 */
export async function download({ url, packed, type }, { base, signal, report, failed }) {
  const response = await get(new URL(url, base), { signal }).catch((error) => { failed(error); throw error; });
  const body = counted(response.body, report, failed);
  return new Response(packed ? body.pipeThrough(new DecompressionStream("gzip")) : body, { headers: { "Content-Type": type } });
}
