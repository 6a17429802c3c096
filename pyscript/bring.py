"""Bringing a model or an adapter into the page: pasted, dropped, chosen, or fetched from the Hub when asked."""

from collections.abc import Callable, Mapping

from js import AbortController, Object, clearTimeout, document, fetch, setTimeout
from pyodide.ffi import JsException, create_once_callable, to_js

from vramplan.importing import hub
from vramplan.importing.foreign import MODEL
from vramplan.importing.imported import Imported, import_text
from vramplan.importing.model import DENSE_OFFERED
from vramplan.importing.problems import ImportProblem
from vramplan.importing.text import check_size, decoded
from pyscript.dom import Region
from pyscript.events import Later, listen, start
from pyscript.views import bring as view

READ_AFTER = 0
"""Milliseconds after a paste: when the box holds it."""


class Bring:
    """The panel of the form, and files dropped on the page. `use` takes the settings a file gives."""

    def __init__(self, texts: Callable[[], Mapping[str, str]], use: Callable[[Mapping[str, str]], None]):
        self._texts = texts
        self._use = use
        self._result = Region(view.RESULT)
        self._last = ("", "")
        self._model: Imported | None = None
        self._asking = None
        self._box = document.getElementById(view.TEXT)
        self._read_later = Later(self.read_box, READ_AFTER)
        file = document.getElementById(view.FILE)
        listen(self._box, "paste", lambda event: self._read_later.call())
        listen(file, "change", lambda event: self._take_files(file.files))
        named = document.getElementById(view.HUB)
        if named:
            listen(named, "keydown", self._on_key)
        for name in ("dragenter", "dragover"):
            listen(document, name, self._on_drag)
        listen(document, "dragleave", lambda event: self._mark(event.relatedTarget is not None and _has_files(event)))
        listen(document, "drop", self._on_drop)

    def read_box(self) -> None:
        """Read what is pasted."""
        self._read(self._box.value, "")

    def read_as_dense(self) -> None:
        """Read the last file again, its unknown type as a dense decoder."""
        self._read(*self._last, as_dense=True)

    def fetch(self) -> None:
        """Ask the Hub for the named model's config.json."""
        try:
            name = hub.model_id(document.getElementById(view.HUB).value)
        except ImportProblem as problem:
            self._refuse(problem)
        else:
            start(self._fetch(name))

    def cancel(self) -> None:
        """Give up a request."""
        if self._asking:
            self._asking.abort()

    def _read(self, text: str, source: str, *, as_dense: bool = False) -> None:
        self._last = (text, source)
        try:
            found = import_text(text, self._texts(), as_dense=as_dense, base=self._base())
        except ImportProblem as problem:
            self._refuse(problem)
            return
        if found.kind == MODEL:
            self._model = found
        self._show(view.result(found, source))
        if found.texts:
            self._use(found.texts)

    def _base(self) -> Imported | None:
        """The model an adapter is for: the one brought last, unless another was chosen since."""
        texts, model = self._texts(), self._model
        still = model and all(texts.get(name) == text for name, text in model.texts.items() if name not in ("method", "quantization"))
        return model if still else None

    def _refuse(self, problem: ImportProblem) -> None:
        self._show(view.problem(problem, dense=problem.hint == DENSE_OFFERED))

    def _show(self, tree) -> None:
        document.getElementById(view.PANEL).open = True
        self._result.paint(tree)

    def _take_files(self, files) -> None:
        if files.length:
            start(self._read_file(files.item(0), files.length))

    async def _read_file(self, file, count: int) -> None:
        try:
            if count > 1:
                raise ImportProblem("many_files", f"{count} files were given.", "Bring one at a time: the model first, then an adapter for it.")
            check_size(int(file.size))
            text = decoded((await file.arrayBuffer()).to_bytes())
        except ImportProblem as problem:
            self._refuse(problem)
        except JsException:
            self._refuse(ImportProblem("unreadable", "The browser could not read the file.", "Choose it again; a folder cannot be read."))
        else:
            self._read(text, file.name)
        document.getElementById(view.FILE).value = ""

    async def _fetch(self, name: str) -> None:
        self.cancel()
        asking = self._asking = AbortController.new()
        button = document.getElementById(view.HUB_BUTTON)
        button.disabled = True
        late = []

        def give_up() -> None:
            late.append(True)
            asking.abort()

        timer = setTimeout(create_once_callable(give_up), hub.TIMEOUT_SECONDS * 1_000)
        self._show(view.waiting(f"Asking for the config.json of {name} …"))
        try:
            text = await _config(name, document.getElementById(view.HUB).dataset.origin, asking.signal)
        except ImportProblem as problem:
            self._refuse(hub.too_slow() if late else hub.cancelled() if asking.signal.aborted else problem)
        else:
            self._read(text, name)
        finally:
            clearTimeout(timer)
            button.disabled = False
            self._asking = None

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
    return event.dataTransfer is not None and "Files" in list(event.dataTransfer.types)


async def _config(name: str, origin: str, signal) -> str:
    """The text of a model's config.json. Raises ImportProblem."""
    options = to_js({"signal": signal, "credentials": "omit", "referrerPolicy": "no-referrer", "cache": "no-cache"}, dict_converter=Object.fromEntries)
    try:
        answer = await fetch(hub.address(name, origin), options)
    except JsException:
        raise hub.unreachable() from None
    if not answer.ok:
        raise hub.refused(name, answer.status)
    length = answer.headers.get("Content-Length") or ""
    check_size(int(length) if length.isdecimal() else 0)
    try:
        return decoded((await answer.arrayBuffer()).to_bytes())
    except JsException:
        raise hub.cut_off() from None
