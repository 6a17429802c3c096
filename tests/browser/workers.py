"""What becomes of the service workers of a page."""

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

MOMENT, MOMENTS = "new Promise(done => setTimeout(done, 50))", 1200
"""A short wait, and how many of them are a minute."""


def newest_has_taken_over(tab) -> None:
    """Wait until the newest of a browser's workers serves it, a minute at the most. tab: shows none of their pages.

    An older one lets go a moment after its last page is closed; a page that is opened before that is still its own.
    """
    told = {}
    session = tab.context.new_cdp_session(tab)
    session.on("ServiceWorker.workerVersionUpdated", lambda event: told.update({int(each["versionId"]): each["status"] for each in event["versions"]}))
    session.send("ServiceWorker.enable")
    for _ in range(MOMENTS):
        if told and told[max(told)] == "activated":
            session.detach()
            return
        tab.evaluate(MOMENT)
    raise AssertionError(f"the workers are still {told}")
