// Start Python in the page: say how far it is, hand over, and go another way when one fails. What Python needs is fetched and
// compiled while the page is still read; all else waits until the page is there.
//
// Expects in the page:  <script type="module" async src="boot….mjs" data-manifest="boot….json" data-manifest-integrity="sha256-…">
//   data-phrases="zh….json" data-phrases-integrity="sha256-…" where its language is not English
//   #boot-status  role=status; says the step. Its words: data-downloading data-starting data-working data-ready
//                 data-no-webassembly data-no-download data-failed
//   #boot-bytes   how much has come; its words: data-words="{done} of {total} MB", after data-steps="Step {step} of {steps}"
//   #boot-retry   a hidden button, shown when a new try may help
// Sets <html data-boot>: "loading", then "ready" or "failed"; <html data-answered>: the answer to a link is there, all around it is not yet;
// <html data-laid-out>: all of the ready page has been laid out once;
// <html data-way>: the way Python was started, by its name in the manifest. Performance marks: boot-python, boot-module, boot-ready.
// Sets globalThis.pyodide, so that the page's Python can be tried from the console.
// Python finds the module `host` (see python.mjs). `start(names, phrases)` of the manifest's `first` shows the answer at once where it
// can; then `start(names)` of its `module` takes over the page. names: a JSON list of the form controls that were used before it was
// there. Last, the service worker is registered.

import { DownloadError, get } from "./downloads.mjs";
import { frame, startFrame } from "./frame.mjs";
import { host, startPython } from "./python.mjs";

const SERVICE_WORKER = "service-worker.mjs";
const OUT_OF_SIGHT = 200; // milliseconds
const IDLE_AFTER = 3000; // milliseconds, for browsers that do not tell when they are idle
const FIRST_LANGUAGE = "en"; // of index.html
const STEPS = ["downloading", "starting", "working"];
const page = document.documentElement;
const parsed = new Promise((resolve) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", resolve, { once: true });
  else resolve();
});
let said = ["downloading"];
let takeBack = () => {}; // what an answer has changed, where the page around it does not come

/** Name a step, unless the last one was named already; the page may not be there to its end yet, and hears of it then. */
function say(step, progress) {
  said = [step, progress];
  const [status, bytes] = ["boot-status", "boot-bytes"].map((id) => document.getElementById(id));
  if (page.dataset.boot !== "loading" || !bytes) return;
  if (status.textContent !== status.dataset[step]) status.textContent = status.dataset[step];
  const place = STEPS.indexOf(step) + 1;
  const filled = (text, values) => Object.entries(values).reduce((told, [name, value]) => told.replace(`{${name}}`, value), text);
  const parts = [place && filled(bytes.dataset.steps, { step: place, steps: STEPS.length }), progress && filled(bytes.dataset.words, progress)];
  bytes.textContent = parts.filter(Boolean).join(" · ");
}

/** Name the last step. */
function end(step, outcome) {
  say(step);
  performance.mark(`boot-${outcome}`);
  page.dataset.boot = outcome;
}

/** Note the names of controls as they are used: { names, end }, both functions; the first gives them as JSON. */
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
  const end = () => events.forEach((event) => document.removeEventListener(event, note, true));
  return { names: () => JSON.stringify([...names]), end };
}

/** Tell how much of a way's files has come, and what is done once they are there. */
function follow(files) {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  const megabytes = (number) => (number / 1e6).toFixed(1);
  let done = 0;
  say("downloading");
  return {
    report(size) {
      done += size;
      if (done < total) say("downloading", { done: megabytes(done), total: megabytes(total) });
      else say("starting");
    },
    reached(step) {
      performance.mark(`boot-${step}`);
      say("working");
    },
  };
}

/** The phrases of the page's language: { text }, or { error }. */
async function phrases({ phrases: name, phrasesIntegrity: integrity }, base) {
  try {
    return { text: name ? await (await get(new URL(name, base), { integrity })).text() : "" };
  } catch (error) {
    return { error };
  }
}

/** Until the browser has shown what is there; a page out of sight gets no frames, and does not wait for long. */
function shown() {
  const frame = new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); });
  return Promise.race([frame, new Promise((resolve) => { setTimeout(resolve, OUT_OF_SIGHT); })]);
}

/** Show the answer to a link before the page around it is there. */
async function answer(first, used, phrases) {
  const place = document.getElementById("headline");
  const before = [...place.childNodes];
  takeBack = () => {
    delete page.dataset.answered;
    place.replaceChildren(...before);
  };
  if (first.start(used.names(), phrases)) {
    page.dataset.answered = "";
    await shown();
  }
}

/** Python, started in the first way that works, with its answer: the entry of the page. spoken: a promise of the phrases. */
async function start({ manifest: name, manifestIntegrity: integrity }, base, used, spoken) {
  const manifest = await (await get(new URL(name, base), { integrity })).json();
  let problem;
  for (const way of manifest.ways) {
    try {
      const early = async (pyodide) => {
        page.dataset.way = way.name;
        const { text, error } = await spoken;
        if (!error) await answer(pyodide.pyimport(manifest.first), used, text);
      };
      const pyodide = await startPython(way, { manifest, base, parsed, ...follow(way.files), early });
      const { error } = await spoken;
      if (error) {
        problem = error;
        break;
      }
      pyodide.registerJsModule("host", { ...host(pyodide, way, manifest.extras, base), frame });
      globalThis.pyodide = pyodide;
      return pyodide.pyimport(manifest.module);
    } catch (error) {
      takeBack();
      console.warn(`Python did not start from the ${way.name}: ${error.message}`);
      problem = error;
    }
  }
  throw problem;
}

/** Keep the page for use without a network, once there is nothing else to do; not in a frame, nor where data is dear. */
function keepForLater(base) {
  if (globalThis.top !== globalThis || navigator.connection?.saveData || !("serviceWorker" in navigator)) return;
  const place = new URL(SERVICE_WORKER, base).href;
  const keep = async () => {
    try {
      const trusted = globalThis.trustedTypes?.createPolicy("service-worker", { createScriptURL: () => place }).createScriptURL(place);
      await navigator.serviceWorker.register(trusted ?? place);
    } catch (error) {
      console.info(`Not kept for use without a network: ${error.message}`);
    }
  };
  if (globalThis.requestIdleCallback) requestIdleCallback(keep);
  else setTimeout(keep, IDLE_AFTER);
}

/** The language that the address asks for, or asked for before in this tab. */
function askedLanguage() {
  const asked = new URLSearchParams(location.search).get("lang");
  try {
    if (asked) sessionStorage.setItem("lang", asked);
    return asked ?? sessionStorage.getItem("lang");
  } catch {
    return asked; // a frame without storage
  }
}

/** The page in another language: that which was asked for, or else, from the page that opens by itself, the browser's first that there is. */
function inItsLanguage() {
  const others = Object.fromEntries([...document.querySelectorAll("a[data-language]")].map((link) => [link.dataset.language, link]));
  const asked = askedLanguage();
  const known = (code) => code === page.lang || code in others;
  const liked = page.lang === FIRST_LANGUAGE ? navigator.languages.map((tag) => tag.split("-")[0]).find(known) : undefined;
  const place = others[known(asked) ? asked : liked];
  return place && new URL(place.pathname.split("/").pop() + location.search + location.hash, document.baseURI);
}

async function main() {
  const base = document.baseURI;
  const told = document.querySelector("script[data-manifest]").dataset;
  const used = watchControls();
  page.dataset.boot = "loading";
  const able = typeof WebAssembly === "object";
  const started = able && start(told, base, used, phrases(told, base));
  started && started.catch(() => {}); // it is heard of below
  await parsed;
  const place = inItsLanguage();
  if (place && (navigator.onLine || navigator.serviceWorker?.controller)) { // without a network there are the pages that are kept
    location.replace(place);
    return;
  }
  const retry = document.getElementById("boot-retry");
  retry.addEventListener("click", () => location.reload());
  startFrame();
  if (!able) {
    end("noWebassembly", "failed");
    return;
  }
  say(...said);
  try {
    const app = await started;
    performance.mark("boot-module");
    used.end();
    await app.start(used.names());
    end("ready", "ready");
    if (location.hash && scrollY === 0) document.getElementById(location.hash.slice(1))?.scrollIntoView(); // it was not laid out before
    requestAnimationFrame(() => setTimeout(() => { page.dataset.laidOut = ""; })); // the frame between has laid out all of the page
    keepForLater(base);
  } catch (error) {
    console.error(error);
    takeBack();
    end(error instanceof DownloadError ? "noDownload" : "failed", "failed");
    retry.hidden = false;
  }
}

main();
