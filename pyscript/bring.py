"""Bringing a model, an adapter or a training file into the page: pasted, dropped, chosen, or fetched from the Hub when asked.

What reads it is imported when it is first needed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from js import document

from pyscript.events import Later, listen
from pyscript.views import bring as view

READ_AFTER = 0
"""Milliseconds after a paste: when the box holds it."""


class Bring:
    """The panel of the form, and files dropped on the page. `use` takes the settings a file gives, and the query strings of its pinned runs."""

    def __init__(self, texts: Callable[[], Mapping[str, str]], use: Callable[[Mapping[str, str], Sequence[str]], None]):
        self._texts = texts
        self._use = use
        self._read_later = Later(self.read_box, READ_AFTER)
        file = document.getElementById(view.FILE)
        listen(document.getElementById(view.TEXT), "paste", lambda event: self._read_later.call())
        listen(file, "change", lambda event: self._take_files(file.files))
        named = document.getElementById(view.HUB)
        if named:
            listen(named, "keydown", self._on_key)
        for name in ("dragenter", "dragover"):
            listen(document, name, self._on_drag)
        listen(document, "dragleave", lambda event: self._mark(bool(event.relatedTarget) and _has_files(event)))
        listen(document, "drop", self._on_drop)
        self._take_files(file.files)

    def read_box(self) -> None:
        """Read what is pasted."""
        self._reader.read_box()

    def read_as_dense(self) -> None:
        """Read the last file again, its unknown type as a dense decoder."""
        self._reader.read_as_dense()

    def fetch(self) -> None:
        """Ask the Hub for the named model's config.json."""
        self._reader.fetch()

    def cancel(self) -> None:
        """Give up a request."""
        self._reader.cancel()

    @cached_property
    def _reader(self):
        from pyscript.reader import Reader

        return Reader(self._texts, self._use)

    def _take_files(self, files) -> None:
        if files.length:
            self._reader.take_files(files)

    def _on_key(self, event) -> None:
        if event.key == "Enter":
            event.preventDefault()
            self.fetch()

    def _on_drag(self, event) -> None:
        if _has_files(event):
            event.preventDefault()
            self._mark(True)

    def _on_drop(self, event) -> None:
        if _has_files(event):
            event.preventDefault()
            self._mark(False)
            self._take_files(event.dataTransfer.files)
            document.getElementById(view.PANEL).scrollIntoView()

    def _mark(self, on: bool) -> None:
        document.body.classList.toggle("dropping", on)


def _has_files(event) -> bool:
    return bool(event.dataTransfer) and "Files" in list(event.dataTransfer.types)
