"""How the page is shown, which a link can say beside the run: in a frame of another page, with which parts, settings that stay, light or dark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlencode

from vramplan.catalogue import DIMENSIONS, TRAITS
from vramplan.checks import quoted
from vramplan.fields import BY_NAME
from vramplan.link import MAX_PAIRS, VIEW_KEYS, pairs_of, usable_parts

EMBED, PANELS_KEY, LOCK, THEME = VIEW_KEYS
"""The keys: a frame in another page; which parts it shows; which settings stay; light or dark."""

PANELS: Mapping[str, str] = MappingProxyType({
    "headline": "Peak and verdict",
    "settings": "Settings, unfolded",
    "accountings": "By each accounting",
    "about": "About this number",
    "pins": "Pinned runs",
    "components": "What fills the memory",
    "moments": "The step, moment by moment",
    "make-fit": "Make it fit",
    "fits": "What fits",
    "methods": "Methods compared",
    "hardware": "Which hardware",
    "served": "Then serve it",
    "curve": "Memory against sequence length",
    "map": "What fits, as a map",
    "batches": "Memory against the micro-batch",
    "gpus": "Memory against the number of GPUs",
    "host": "Host memory",
    "assumptions": "What is assumed",
    "others": "How others count this run",
})
"""The parts that a frame can show, by name, in the order of the page, and what they are called."""

USUAL_PANELS = ("headline", "components")
"""What a frame shows whose link does not say."""

THEMES: Mapping[str, str] = MappingProxyType({"auto": "As the reader’s system", "light": "Light", "dark": "Dark"})
"""Light or dark, by name, and what they are called; the first is usual."""

USUAL_THEME = next(iter(THEMES))

EVERYTHING = "all"
"""In place of names of settings: every one of them stays."""

GO_TOGETHER: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "model": (*DIMENSIONS, *TRAITS), "gpu": ("budget", "budget_unit"), "budget": ("budget_unit",), "budget_unit": ("budget",),
})
"""Settings that would change what another one means, by its name: they stay when it does."""


@dataclass(frozen=True)
class View:
    """How the page is shown. lock: names of settings, or EVERYTHING. notices: a sentence for everything that the link says of it and that is not used."""

    embed: bool = False
    panels: tuple[str, ...] = USUAL_PANELS
    lock: tuple[str, ...] = ()
    theme: str = USUAL_THEME
    notices: tuple[str, ...] = field(default=(), compare=False)

    @property
    def locked(self) -> frozenset[str]:
        """Every setting that stays as the link gives it."""
        if EVERYTHING in self.lock:
            return frozenset(BY_NAME)
        return frozenset(each for name in self.lock for each in (name, *GO_TOGETHER.get(name, ())))

    def shows(self, panel: str) -> bool:
        """Whether a part of the page is shown."""
        return not self.embed or panel in self.panels


def read_view(address: str) -> View:
    """What an address, or a query string with or without its leading '?', says of how the page is shown. Never raises: what cannot be used is named."""
    given = {key: value.strip() for key, value in pairs_of(address)[:MAX_PAIRS] if key in VIEW_KEYS}
    notices: list[str] = []
    embed = given.get(EMBED, "0")
    if embed not in ("0", "1"):
        notices.append(f"{EMBED} must be 1 or 0; got {quoted(embed)}. The whole page is shown.")
    theme = given.get(THEME, USUAL_THEME)
    if theme not in THEMES:
        notices.append(f"{THEME} must be one of {', '.join(THEMES)}; got {quoted(theme)}. The reader’s own choice is followed.")
        theme = USUAL_THEME
    if embed != "1":
        notices += [f"{key} is not used: it applies with {EMBED}=1 only." for key in (PANELS_KEY, LOCK) if key in given]
        return View(theme=theme, notices=tuple(notices))
    panels = usable_parts(given.get(PANELS_KEY, ""), PANELS.__contains__, f"{PANELS_KEY} must be a comma list of {', '.join(PANELS)}", notices)
    lock = usable_parts(given.get(LOCK, ""), {*BY_NAME, EVERYTHING}.__contains__, f"{LOCK} must be a comma list of settings, or {EVERYTHING}", notices)
    return View(True, panels or USUAL_PANELS, lock, theme, tuple(notices))


def view_query(view: View) -> str:
    """The part of a query string that gives this view back; nothing for the usual one."""
    parts = {EMBED: "1"} if view.embed else {}
    if view.embed and view.panels != USUAL_PANELS:
        parts[PANELS_KEY] = ",".join(view.panels)
    if view.embed and view.lock:
        parts[LOCK] = ",".join(view.lock)
    if view.theme != USUAL_THEME:
        parts[THEME] = view.theme
    return urlencode(parts, safe=",")
