// Starts the worker that compiles Python's engine while the page is still read: later, the layout of the page would hold its start up.
// Expects data-compiler, the worker's file; python.mjs finds it as globalThis.compiler. There is none in a sandboxed frame without an origin.
{
  const place = new URL(document.currentScript.dataset.compiler, document.baseURI).href;
  try {
    const policy = globalThis.trustedTypes?.createPolicy("compiler", { createScriptURL: () => place });
    globalThis.compiler = new Worker(policy?.createScriptURL(place) ?? place, { type: "module" });
    globalThis.compiler.onerror = () => { globalThis.compiler = undefined; };
  } catch (error) {
    console.info(`Python's engine is compiled within the page: ${error.message}`);
  }
}
