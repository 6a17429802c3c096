"""The page in a frame of another page: settings that stay, links that leave it, and what it and the page around it tell each other."""

from collections.abc import Callable, Iterable, Mapping

import host
from js import document
from pyodide.ffi import create_proxy

from vramplan.catalogue import defaults
from vramplan.checks import check
from vramplan.embedding import estimate_message, problems_message, read_settings
from vramplan.language import told
from vramplan.ledger import Estimate
from vramplan.link import read_query
from vramplan.report import labels_text
from vramplan.view import EVERYTHING
from pyscript.address import Address
from pyscript.controls import Controls
from pyscript.events import guarded

HELD = "Fixed here. The full page can change it."
"""What stands at a setting that stays."""

SETTINGS = "settings"
"""The part of a frame that its button shows and hides."""


class Framed:
    """What a frame does beyond the page; nothing where the page has a tab of its own."""

    def __init__(self, address: Address, controls: Controls, use: Callable[[Mapping[str, str]], None], query: Callable[[], str]):
        """use: takes over settings. query: gives the query string of the run in the form."""
        self._view = view = address.view
        self._address = address
        self._controls = controls
        self._use = use
        self._query = query
        self._button = document.getElementById("frame-settings")
        self._values: Mapping[str, object] = {}
        if view.embed:
            document.documentElement.dataset.panels = " ".join(view.panels)
            self._button.ariaExpanded = "true" if SETTINGS in view.panels else "false"
            self._button.hidden = EVERYTHING in view.lock
            host.frame.listen(create_proxy(guarded(self._hear)))

    def hold(self) -> None:
        """From now on the locked settings stay as they are."""
        if not self._view.locked:
            return
        self._controls.hold(self._view.locked, told(HELD))
        which = "Every setting is" if EVERYTHING in self._view.lock else f"{labels_text(self._view.lock)}:"
        note = document.getElementById("frame-locks")
        note.textContent = told(f"{which} fixed here. What would change that opens the full page.")
        note.hidden = False

    def show(self, values: Mapping[str, object]) -> None:
        """A run with these values is in the form."""
        self._values = values
        if self._view.embed:
            document.getElementById("full-page").href = self._address.full(self._query())

    def counted(self, estimate: Estimate) -> None:
        """Tell the page around of an estimate."""
        if self._view.embed:
            host.frame.tell(estimate_message(estimate, self._address.full(self._query())))

    def uncounted(self, names: Iterable[str]) -> None:
        """Tell the page around that there is none, and which settings stand in the way."""
        if self._view.embed:
            host.frame.tell(problems_message(names))

    def leaves(self, link) -> bool:
        """Whether a link has to open the full page, which it then does in a tab of its own: it changes what stays here, or leads to what is not shown."""
        out = self._way_out(link.getAttribute("href") or "", link.dataset) if self._view.embed else ""
        if out:
            link.href, link.target, link.rel = out, "_blank", "noopener"
        return bool(out)

    def _way_out(self, href: str, data) -> str:
        """The address of the full page that a link has to open; nothing where it stays in the frame."""
        here = self._address.full(self._query())
        if hasattr(data, "field"):
            return f"{here}{href}" if data.field in self._view.locked else ""
        if href.startswith("#"):
            part = document.getElementById(href.removeprefix("#"))
            return "" if part and part.getClientRects().length else f"{here}{href}"
        if not href.startswith("?"):
            return ""
        values = check(read_query(href).all_texts, defaults()).values
        stays = all(values.get(name) == self._values.get(name) for name in self._view.locked)
        return "" if stays else self._address.full(href.removeprefix("?"))

    def show_settings(self) -> None:
        """Show the form, so that one of its fields can be reached."""
        if self._view.embed and self._button.ariaExpanded == "false":
            self.toggle_settings()

    def toggle_settings(self) -> None:
        """Show the form, or hide it again."""
        shown = self._button.ariaExpanded == "true"
        others = [name for name in document.documentElement.dataset.panels.split() if name != SETTINGS]
        document.documentElement.dataset.panels = " ".join(others if shown else [*others, SETTINGS])
        self._button.ariaExpanded = "false" if shown else "true"

    def _hear(self, message: str) -> None:
        """The page around has said something; what is not a wish for other settings is left alone."""
        texts = read_settings(message)
        if texts:
            self._use(texts)
