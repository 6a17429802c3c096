// Start Python in the page: download, show how far it is, hand over.
//
// Expects in the page:  <script type="module" src="boot….mjs" data-manifest="boot….json">
//   #boot-status  role=status; says the step. Its words: data-downloading data-starting data-ready
//                 data-no-webassembly data-no-download data-failed
//   #boot-bytes   how much has come; its words: data-words="{done} of {total} MB"
//   #boot-retry   a hidden button, shown when a new try may help
// Sets <html data-boot>: "loading", then "ready" or "failed". Performance marks: boot-python, boot-module, boot-ready.
// Sets globalThis.pyodide, so that the page's Python can be tried from the console.
// Python finds the module `host` (see below), and its entry `start(names)` is called with a JSON list: the names of the
// form controls that were used before it was there.

const page = document.documentElement;
const status = document.getElementById("boot-status");
const bytes = document.getElementById("boot-bytes");
const retry = document.getElementById("boot-retry");

class DownloadError extends Error {}

/** Name a step, unless the last one was named already. */
function say(step) {
  if (page.dataset.boot === "loading") status.textContent = status.dataset[step];
}

/** Name the last step. */
function end(step, outcome) {
  say(step);
  performance.mark(`boot-${outcome}`);
  page.dataset.boot = outcome;
  bytes.textContent = "";
}

/** Note the names of controls as they are used; the returned function ends that and gives the names. */
function watchControls() {
  const names = new Set();
  const note = ({ target }) => {
    if (target.name) {
      names.add(target.name);
      page.dataset.asked = "";
    }
  };
  const events = ["input", "change"];
  events.forEach((event) => document.addEventListener(event, note, true));
  return () => {
    events.forEach((event) => document.removeEventListener(event, note, true));
    return [...names];
  };
}

/** Fetch a part of the site, or fail with DownloadError. */
async function get(url) {
  try {
    const response = await fetch(url);
    if (response.ok) return response;
    throw new DownloadError(`${url}: ${response.status}`);
  } catch (error) {
    throw new DownloadError(`${url}: ${error.message}`);
  }
}

/** Read a copy of a response to its end, and report each piece's size. */
async function count(response, report) {
  try {
    const reader = response.clone().body.getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      report(piece.value.byteLength);
    }
  } catch (error) {
    throw new DownloadError(error.message);
  }
}

/** Start the big downloads. Pyodide has no hook for progress, so its own requests are answered from these. */
function download(files, base) {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  const megabytes = (number) => (number / 1e6).toFixed(1);
  let done = 0;
  const report = (size) => {
    done += size;
    if (page.dataset.boot !== "loading") return;
    bytes.textContent = bytes.dataset.words
      .replace("{done}", megabytes(done)).replace("{total}", megabytes(total));
  };
  const responses = new Map(files.map(({ url }) => [new URL(url, base).href, get(new URL(url, base))]));
  const finished = Promise.all([...responses.values()].map(async (response) => count(await response, report)));
  const original = globalThis.fetch;
  globalThis.fetch = (resource, options) => responses.get(String(resource)) ?? original(resource, options);
  return { finished, release: () => { globalThis.fetch = original; } };
}

/** The `host` module for Python. */
function host(pyodide, { zip, rest, at, packages }, base) {
  let extras;
  async function load() {
    const response = await get(new URL(rest, base));
    const file = pyodide.FS.open(zip, "r+");
    const data = new Uint8Array(await response.arrayBuffer());
    pyodide.FS.write(file, data, 0, data.length, at);
    pyodide.FS.close(file);
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

/** Everything from the manifest to the imported page module. */
async function load() {
  const base = document.baseURI;
  const { manifest: name } = document.querySelector("script[data-manifest]").dataset;
  const manifest = await (await get(new URL(name, base))).json();
  const { finished, release } = download(manifest.files, base);
  const indexURL = new URL(manifest.engine, base).href;
  const scripts = ["pyodide.mjs", "pyodide.asm.mjs"].map((script) => import(indexURL + script));
  const loaded = Promise.all(scripts)
    .catch((error) => { throw new DownloadError(error.message); })
    .then(([{ loadPyodide }]) => loadPyodide({
      indexURL,
      stdLibURL: new URL(manifest.start, base).href,
      lockFileContents: manifest.lock,
      packageBaseUrl: new URL(".", base).href,
    }))
    .finally(release);
  const downloaded = finished.then(() => { say("starting"); return loaded; });
  const pyodide = await Promise.race([loaded, downloaded]);
  performance.mark("boot-python");
  globalThis.pyodide = pyodide;
  pyodide.registerJsModule("host", host(pyodide, manifest.extras, base));
  const app = pyodide.pyimport(manifest.module);
  performance.mark("boot-module");
  return app;
}

async function main() {
  const used = watchControls();
  retry.addEventListener("click", () => location.reload());
  page.dataset.boot = "loading";
  if (location.search.length > 1) page.dataset.asked = "";
  if (typeof WebAssembly !== "object") {
    end("noWebassembly", "failed");
    return;
  }
  say("downloading");
  try {
    const app = await load();
    await app.start(JSON.stringify(used()));
    end("ready", "ready");
  } catch (error) {
    console.error(error);
    end(error instanceof DownloadError ? "noDownload" : "failed", "failed");
    retry.hidden = false;
  }
}

main();
