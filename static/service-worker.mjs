// Keeps a build of the page for use without a network. Before this the build writes
//   const BUILD = the build's name, PAGES = its pages, one for every language, with the names that each holds, the first page
//   first; FILES = what the pages need beside themselves, and its hashes.
//
// A page holds the names of all its files, and a name holds a hash of the content; so no page can get a file of another
// build. A build is kept whole or not at all. A page itself comes from the network first: whoever is online sees the
// newest build at once. This worker takes over from an older one when no tab shows the page any more, so that a tab of
// the older build keeps its files.

const SCOPE = registration.scope;
const KEPT = `${SCOPE} ${BUILD}`;
const PLACES = new Map(Object.entries(FILES).map(([name, integrity]) => [new URL(name, SCOPE).href, integrity]));
const FIRST = new URL(Object.keys(PAGES)[0], SCOPE).href; // which is served as the folder, too
const PATIENCE = 6000; // milliseconds that the network has for a page where a kept one is there

/** The place that a page is kept under; nothing for what is no page of this build. */
function placeOf(address) {
  const place = address === SCOPE ? FIRST : address;
  return Object.keys(PAGES).some((name) => new URL(name, SCOPE).href === place) ? place : undefined;
}

/** A page of this build as it is served now, or a failure. */
async function pageNow(name, names) {
  const place = new URL(name, SCOPE).href;
  const response = await fetch(place === FIRST ? SCOPE : place, { cache: "no-cache" });
  const text = await response.text();
  if (!response.ok || !names.every((each) => text.includes(each))) throw new Error("the page is of another build");
  return [place, text];
}

/** Keep this build, or fail: also when a page is already, or still, of another one, or a file is not what was built. */
async function keep() {
  const pages = await Promise.all(Object.entries(PAGES).map(([name, names]) => pageNow(name, names)));
  const cache = await caches.open(KEPT);
  try {
    await cache.addAll([...PLACES].map(([place, integrity]) => new Request(place, { integrity })));
  } catch (error) {
    if ((await cache.keys()).length === 0) await caches.delete(KEPT);
    throw error;
  }
  for (const [place, text] of pages) await cache.put(place, new Response(text, { headers: { "Content-Type": "text/html; charset=utf-8" } }));
}

/** Let go of older builds of this site; other sites may share the origin. */
async function clear() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith(`${SCOPE} `) && name !== KEPT).map((name) => caches.delete(name)));
}

async function kept(place) {
  return (await caches.open(KEPT)).match(place, { ignoreVary: true });
}

/** A page: from the network, or as it is kept where the network has none, or takes too long. */
async function page(request, place) {
  const late = new Promise((resolve) => { setTimeout(() => resolve(kept(place)), PATIENCE); });
  const network = fetch(request.url, { cache: "no-cache", redirect: "manual" });
  try {
    const response = await Promise.race([network, late.then((found) => found ?? network)]);
    return response.ok || response.type === "opaqueredirect" ? response : await kept(place) ?? response;
  } catch (error) {
    const found = await kept(place);
    if (found) return found;
    throw error;
  }
}

addEventListener("install", (event) => event.waitUntil(keep()));
addEventListener("activate", (event) => event.waitUntil(clear()));
addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET") return;
  const place = request.mode === "navigate" && placeOf(origin + pathname);
  if (place) {
    event.respondWith(page(request, place));
  } else if (PLACES.has(request.url)) {
    event.respondWith(kept(request.url).then((found) => found ?? fetch(request)));
  }
});
