"""The Share dialog: the run in every form it is offered in. What a frame shows is chosen there, and shown as it will be."""

from collections.abc import Iterable

from js import document

from vramplan.badge import Badge, badge
from vramplan.ledger import Estimate
from vramplan.settings import Settings
from vramplan.view import PANELS, THEMES, View
from pyscript.dom import Region
from pyscript.events import Later, listen
from pyscript.exports import Exports
from pyscript.views import exports as exports_view
from pyscript.views import share as view

NOTHING = "about:blank"
"""What a frame shows that shows nothing."""

PREVIEW_AFTER = 400
"""Milliseconds without another choice before the frame is shown anew."""


class Share:
    """What is shared, and in which form. script: address of the script that sizes frames."""

    def __init__(self, script: str):
        self._script = script
        self._dialog = document.getElementById("share")
        self._part = document.getElementById(f"{view.FRAME}-part")
        self._link, self._frame, self._badge, self._more = (Region(name) for name in ("share-content", view.FRAME, view.BADGE, "share-more"))
        self.exports = Exports()
        self.badge: Badge | None = None
        self._shown = View(embed=True)
        self._sized = True
        self._address = ""
        self._fields: tuple[str, ...] = ()
        self._estimate: Estimate | None = None
        self._later = Later(self._paint_frame, PREVIEW_AFTER)
        listen(self._dialog, "change", self._on_change)
        listen(self._dialog, "close", lambda event: self._paint_frame())
        listen(self._part, "toggle", lambda event: self._paint_frame())

    @property
    def is_open(self) -> bool:
        """Whether the dialog is on the screen."""
        return bool(self._dialog.open)

    def open(self, settings: Settings | None, estimate: Estimate | None, address: str, fields: Iterable[str], *, left_out: str) -> None:
        """Show a run. address: opens it. fields: settings it has. left_out: what the address has no room for, in words."""
        self._address, self._fields, self._estimate = address, tuple(fields), estimate
        self.badge = badge(estimate) if estimate else None
        self._link.paint(view.link(address, left_out))
        self._badge.paint(view.badge(self.badge, address))
        self._more.paint(view.more(settings, counted=estimate is not None))
        self.exports.show(estimate, address)
        self._dialog.showModal()
        self._paint_frame()

    def close(self) -> None:
        """Close the dialog."""
        self._dialog.close()

    def _on_change(self, event) -> None:
        if event.target.id == exports_view.CHOICE:
            self.exports.choose(event.target.value, self._estimate, self._address)
        elif self._part.contains(event.target):
            theme = document.getElementById(view.THEME).value
            panels = _ticked(view.PANEL)
            self._shown = View(True, tuple(name for name in PANELS if name in panels) or self._shown.panels, _ticked(view.LOCK), theme if theme in THEMES else self._shown.theme)
            self._sized = bool(document.getElementById(view.SIZED).checked)
            self._later.call()

    def _paint_frame(self) -> None:
        """Show the markup, and the frame while somebody sees it. The frame makes no steps of the history."""
        self._frame.paint(view.frame(self._shown, self._address, self._script, self._fields, sized=self._sized))
        preview = document.getElementById(view.PREVIEW)
        wanted = view.frame_address(self._shown, self._address) if self.is_open and self._part.open else NOTHING
        if (preview.dataset.shown if hasattr(preview.dataset, "shown") else NOTHING) != wanted:
            preview.dataset.shown = wanted
            preview.contentWindow.location.replace(wanted)


def _ticked(name: str) -> tuple[str, ...]:
    """Values of the ticked boxes of this name."""
    return tuple(box.value for box in document.querySelectorAll(f"input[name='{name}']:checked"))
