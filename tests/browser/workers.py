"""What becomes of the service worker that a page registers."""

WATCHED = """
const container = globalThis.ServiceWorkerContainer?.prototype ?? {};
const { register } = container;
container.register = async function(...given) {
    const registration = await register.apply(this, given);
    globalThis.registered = registration.installing ?? registration.waiting ?? registration.active;
    return registration;
};
"""
"""A script that runs before those of the page and notes the worker that is registered."""

END = """async () => {
    const ended = () => globalThis.registered && !["installing", "activating"].includes(registered.state);
    for (let turn = 0; turn < 1200 && !ended(); turn++) await new Promise(done => setTimeout(done, 50));
    const kept = await Promise.all((await caches.keys()).map(async name => (await (await caches.open(name)).keys()).length));
    return [registered.state, kept];
}"""
"""How that ended, or stands after a minute, and how many files each kept build has."""
