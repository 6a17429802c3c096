// Keeps a build of the page for use without a network. Before this the build writes
//   const BUILD = the build's name, PAGE = names that its page holds, FILES = what the page needs beside itself, and its hashes.
//
// A page holds the names of all its files, and a name holds a hash of the content; so no page can get a file of another
// build. A build is kept whole or not at all. The page itself comes from the network first: whoever is online sees the
// newest build at once. This worker takes over from an older one when no tab shows the page any more, so that a tab of
// the older build keeps its files.

const SCOPE = registration.scope;
const KEPT = `${SCOPE} ${BUILD}`;
const PLACES = new Map(Object.entries(FILES).map(([name, integrity]) => [new URL(name, SCOPE).href, integrity]));
const PATIENCE = 6000; // milliseconds that the network has for the page where a kept one is there

/** Keep this build, or fail: also when the page is already, or still, of another one, or a file is not what was built. */
async function keep() {
  const response = await fetch(SCOPE, { cache: "no-cache" });
  const text = await response.text();
  if (!response.ok || !PAGE.every((name) => text.includes(name))) throw new Error("the page is of another build");
  const cache = await caches.open(KEPT);
  try {
    await cache.addAll([...PLACES].map(([place, integrity]) => new Request(place, { integrity })));
  } catch (error) {
    if ((await cache.keys()).length === 0) await caches.delete(KEPT);
    throw error;
  }
  await cache.put(SCOPE, new Response(text, { headers: { "Content-Type": "text/html; charset=utf-8" } }));
}

/** Let go of older builds of this site; other sites may share the origin. */
async function clear() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith(`${SCOPE} `) && name !== KEPT).map((name) => caches.delete(name)));
}

async function kept(place) {
  return (await caches.open(KEPT)).match(place, { ignoreVary: true });
}

/** The page: from the network, or as it is kept where the network has none, or takes too long. */
async function page(request) {
  const late = new Promise((resolve) => { setTimeout(() => resolve(kept(SCOPE)), PATIENCE); });
  const network = fetch(request.url, { cache: "no-cache", redirect: "manual" });
  try {
    const response = await Promise.race([network, late.then((found) => found ?? network)]);
    return response.ok || response.type === "opaqueredirect" ? response : await kept(SCOPE) ?? response;
  } catch (error) {
    const found = await kept(SCOPE);
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
  if (request.mode === "navigate") {
    if ([SCOPE, `${SCOPE}index.html`].includes(origin + pathname)) event.respondWith(page(request));
  } else if (PLACES.has(request.url)) {
    event.respondWith(kept(request.url).then((found) => found ?? fetch(request)));
  }
});
