// Starts the worker that unpacks what Python starts from while the page is still read: later, the layout of the page would hold its start up.
// Expects data-unpacker, the worker's file; python.mjs finds the worker as globalThis.unpacker. There is none in a sandboxed frame without an origin.
{
  const place = new URL(document.currentScript.dataset.unpacker, document.baseURI).href;
  try {
    const policy = globalThis.trustedTypes?.createPolicy("unpacker", { createScriptURL: () => place });
    globalThis.unpacker = new Worker(policy?.createScriptURL(place) ?? place, { type: "module" });
    globalThis.unpacker.onerror = () => { globalThis.unpacker = undefined; };
  } catch (error) {
    console.info(`Python's engine is unpacked within the page: ${error.message}`);
  }
}
