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

/** What comes through, with each piece's size reported, and failures as DownloadError. */
function counted(body, report) {
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
        controller.error(new DownloadError(error.message));
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** Download one file of the manifest: { url, packed, type }. Gives a response of its content, unpacked. */
export async function download({ url, packed, type }, { base, signal, report }) {
  const response = await get(new URL(url, base), { signal });
  const body = counted(response.body, report);
  return new Response(packed ? body.pipeThrough(new DecompressionStream("gzip")) : body, { headers: { "Content-Type": type } });
}
