// Start Python, in one of several ways. Each is an entry of the manifest's `ways`:
//   files       what it downloads, { url, bytes, integrity }; the first is the WebAssembly, packed by Zstandard
//   restoring   numbers for snapshot.mjs; then the second file is the snapshot, packed as well, else the library that Python starts from.
//   told        answers that a snapshot must give, by question
//   after       what is downloaded once the files are there, as they are named: of a snapshot, the zip of what it does not hold
//   sources     the third file is a zip of sources that is unpacked where Python looks for packages
//   rest        parts of Python's zip that are still missing, [{ url, integrity, at }]
//   patience    milliseconds in which nothing has come of its files after which it is given up; once all is there, a slow machine has its time

import { DownloadError, download, get } from "./downloads.mjs";
import { restore } from "./snapshot.mjs";

const EMPTY_ZIP = Uint8Array.of(0x50, 0x4b, 5, 6, ...new Array(18).fill(0));

/** What unpacks the files that are packed, by name: the worker that early.js started, or the page; there is one worker for the first try. */
function unpacker(base) {
  const worker = globalThis.unpacker;
  globalThis.unpacker = undefined;
  if (!worker) {
    const own = import(new URL(document.querySelector("script[data-unpacker]").dataset.unpacker, base));
    own.catch(() => {}); // the files it is for tell of it
    async function unpack(file, response) {
      const packed = await (await response).blob(); // all of it: that the bytes are not those of the build is told first
      return (await own).unpack[file](packed.stream());
    }
    return { unpack, end() {} };
  }
  const heard = {};
  worker.onmessage = ({ data: { file, result, error } }) => (error ? heard[file].reject(new Error(error)) : heard[file].resolve(result));
  const broken = new Promise((resolve, reject) => { worker.onerror = () => reject(new Error("the worker that unpacks did not start")); });
  broken.catch(() => {});
  async function unpack(file, response) {
    const told = new Promise((resolve, reject) => { heard[file] = { resolve, reject }; });
    told.catch(() => {}); // that the bytes are not those of the build is told first
    const write = (piece) => worker.postMessage({ file, piece }, [piece.buffer]);
    await (await response).body.pipeTo(new WritableStream({ write, close: () => worker.postMessage({ file }) }));
    return Promise.race([told, broken]);
  }
  return { unpack, end: () => worker.terminate() };
}

/**
 * Run an action; what Pyodide asks of the browser itself, and without a hook, has its answers here: these addresses, and the engine, which is
 * compiled before anybody asks.
 */
async function answering(responses, compiled, action) {
  const { fetch } = globalThis, { instantiateStreaming } = WebAssembly;
  globalThis.fetch = (resource, options) => responses.get(String(resource)) ?? fetch(resource, options);
  WebAssembly.instantiateStreaming = async (response, imports) => {
    const module = await compiled;
    return { module, instance: await WebAssembly.instantiate(module, imports) };
  };
  try {
    return await action();
  } finally {
    globalThis.fetch = fetch;
    WebAssembly.instantiateStreaming = instantiateStreaming;
  }
}

/** Until `give` is called, or nothing of the `expected` bytes has come for so long, if there is a limit; `came` starts that wait again. */
function waiting(patience) {
  let bytes = 0, timer, give;
  const up = new Promise((resolve, reject) => { give = reject; });
  up.catch(() => {});
  const stop = () => clearTimeout(timer);
  const came = (size) => {
    stop();
    bytes -= size;
    if (patience && bytes > 0) timer = setTimeout(() => give(new Error(`nothing has come for ${patience / 1000} s`)), patience);
  };
  const expected = (size) => came(-size);
  return { up, give, came, expected, stop };
}

/** The snapshot is used: Pyodide's options for that. */
function fromSnapshot({ restoring, createModule, content, signal }) {
  return {
    _loadSnapshot: Uint8Array.from(atob(restoring.head), (character) => character.charCodeAt(0)),
    async createPyodideModule(settings) {
      const [inner, restored] = await Promise.all([createModule(settings), content]);
      signal.throwIfAborted();
      restore(inner, restoring, restored);
      return inner;
    },
  };
}

async function load(way, { manifest, base, parsed, signal, wait, report, reached, early }) {
  const folder = new URL(manifest.engine, base).href;
  function fetched(file, told = () => {}) {
    wait.expected(file.bytes);
    return download(file, { base, signal, report(size) { wait.came(size); told(size); }, failed: wait.give });
  }
  const [wasm, second, third] = way.files.map((file) => fetched(file, report));
  const { unpack, end } = unpacker(base);
  const compiled = unpack("engine", wasm);
  const content = way.restoring && unpack("snapshot", second);
  compiled.catch(wait.give); // Pyodide would wait for good
  const [code] = way.after;
  const after = code && Promise.all([compiled, content]).then(() => fetched(code));
  [second, third, content, after].forEach((promise) => promise?.catch(() => {})); // whoever awaits it hears of it
  Promise.allSettled([compiled, content]).then(end);
  const [{ loadPyodide }, { default: createModule }] = await Promise.all(
    ["pyodide.mjs", "pyodide.asm.mjs"].map((script) => import(folder + script)));
  await parsed;
  const library = new URL("library.zip", base).href;
  const answers = new Map([[`${folder}pyodide.asm.wasm`, Promise.resolve(new Response())], [library, content ? Promise.resolve(new Response(EMPTY_ZIP)) : second]]);
  const pyodide = await answering(answers, compiled, () => loadPyodide({
    indexURL: folder, stdLibURL: library, lockFileContents: manifest.lock, packageBaseUrl: new URL(".", base).href,
    ...(content && fromSnapshot({ restoring: way.restoring, createModule, content, signal })),
  }));
  signal.throwIfAborted();
  reached("python");
  if (way.sources) pyodide.unpackArchive(await (await third).arrayBuffer(), "zip", { extractDir: pyodide._api.sitePackages });
  const snapshot = content && pyodide.pyimport(manifest.snapshot);
  if (snapshot && !snapshot.agrees(JSON.stringify(way.told))) throw new Error("the snapshot gives other answers");
  await early(pyodide);
  if (snapshot) snapshot.complete(manifest.extras.place, new Uint8Array(await (await after).arrayBuffer()));
  signal.throwIfAborted();
  return pyodide;
}

/**
 * Start Python in this way, or fail and stop its downloads. parsed: until then only what is fetched is made ready, as the page comes first.
 * report(bytes) and reached(step) tell how far it is; early(pyodide) does what can be done before all of Python's own files are there.
 */
export async function startPython(way, { manifest, base, parsed, report, reached, early }) {
  const controller = new AbortController();
  const wait = waiting(way.patience);
  try {
    const loading = load(way, { manifest, base, parsed, signal: controller.signal, wait, report, reached, early });
    loading.catch(() => {});
    return await Promise.race([loading, wait.up]);
  } catch (error) {
    controller.abort();
    throw error;
  } finally {
    wait.stop();
  }
}

/** The `host` module for Python. */
export function host(pyodide, way, { place, packages }, base) {
  let extras;
  async function load() {
    const parts = await Promise.all(way.rest.map(async ({ url, integrity, at }) => [await (await get(new URL(url, base), { integrity })).arrayBuffer(), at]));
    const file = parts.length && pyodide.FS.open(place, "r+");
    for (const [part, at] of parts) pyodide.FS.write(file, new Uint8Array(part), 0, part.byteLength, at);
    if (file) pyodide.FS.close(file);
    pyodide.runPython("import importlib; importlib.invalidate_caches()");
    await pyodide.loadPackage(packages, { messageCallback: () => {} });
    const missing = packages.filter((name) => !(name in pyodide.loadedPackages));
    if (missing.length) throw new DownloadError(missing.join(", "));
  }
  return {
    /** Load the rest of the standard library and the extra packages: once, and again after a failure. */
    loadExtras() {
      extras ??= load().catch((error) => { extras = undefined; throw error; });
      return extras;
    },
  };
}
