"""Reading what was brought into the page; imported for the first file, text or name, see bring.py."""

from collections.abc import Callable, Mapping, Sequence

import host
from js import AbortController, Object, document, fetch
from pyodide.ffi import JsException, to_js

from vramplan import brought, language
from vramplan.catalogue import DIMENSIONS, TRAITS, defaults
from vramplan.importing import hub
from vramplan.importing.foreign import MODEL, SETTINGS
from vramplan.importing.imported import Imported, import_text
from vramplan.importing.model import CAN_BE_DENSE
from vramplan.importing.problems import ImportProblem
from vramplan.importing.text import check_announced, check_size, decoded
from vramplan.training_files.training import needs_yaml
from pyscript.dom import Region
from pyscript.events import Later, start
from pyscript.views import bring as panel
from pyscript.views import brought as view

LOADING = "Loading what reads training files …"


class Reader:
    """Reads, and shows what it came to. `use` takes the settings a file gives, and the query strings of its pinned runs.

    What was asked for last counts: a new file, text or name gives up what is still under way.
    """

    def __init__(self, texts: Callable[[], Mapping[str, str]], use: Callable[[Mapping[str, str], Sequence[str]], None]):
        self._texts = texts
        self._use = use
        self._result = Region(panel.RESULT)
        self._last = ("", "")
        self._model: Imported | None = None
        self._chosen: dict[str, str] = {}
        self._asking = None
        self._give_up_later = Later(self._give_up, hub.TIMEOUT_MILLISECONDS)
        self._late = False

    def read_box(self) -> None:
        """Read what is pasted."""
        self._begin()
        self._read(document.getElementById(panel.TEXT).value, "")

    def read_as_dense(self) -> None:
        """Read the last file again, its unknown type as a dense decoder."""
        self._begin()
        self._read(*self._last, as_dense=True)
        document.getElementById(panel.RESULT).focus()

    def fetch(self) -> None:
        """Ask the Hub for the named model's config.json."""
        asking = self._begin()
        try:
            name = hub.model_id(document.getElementById(panel.HUB).value)
        except ImportProblem as problem:
            self._refuse(problem)
        else:
            start(self._fetch(name, asking))

    def cancel(self) -> None:
        """Give up a request."""
        self._begin()
        self._refuse(hub.cancelled())
        document.getElementById(panel.RESULT).focus()

    def _begin(self):
        """Give up what is under way, and begin something new; what comes late can see that it is no longer wanted."""
        if self._asking:
            self._asking.abort()
        self._give_up_later.cancel()
        self._late = False
        self._asking = AbortController.new()
        return self._asking

    def _give_up(self) -> None:
        self._late = True
        self._asking.abort()

    def _read(self, text: str, source: str, *, as_dense: bool = False) -> None:
        self._last = (text, source)
        if needs_yaml(text):
            start(self._load_and_read(text, source, self._asking))
        else:
            self._read_now(text, source, as_dense=as_dense)

    async def _load_and_read(self, text: str, source: str, asking) -> None:
        """Read YAML, for which a part is loaded the first time."""
        self._show(view.waiting(LOADING), LOADING)
        try:
            await host.loadExtras()
        except JsException:
            if self._asking is asking:
                self._refuse(ImportProblem("not_loaded", "The part that reads training files could not be downloaded.", "Check the connection and try again."))
            return
        if self._asking is asking:
            self._read_now(text, source)

    def _read_now(self, text: str, source: str, *, as_dense: bool = False) -> None:
        try:
            found = import_text(text, self._texts(), as_dense=as_dense, base=self._base())
        except ImportProblem as problem:
            self._refuse(problem)
            return
        self._show(view.result(found, source), brought.spoken(found))
        if found.texts:
            self._use(defaults() | found.texts if found.kind == SETTINGS else found.texts, found.pins)
        if found.kind == MODEL:
            self._model, self._chosen = found, self._model_texts()

    def _model_texts(self) -> dict[str, str]:
        texts = self._texts()
        return {name: texts[name] for name in ("model", *DIMENSIONS, *TRAITS)}

    def _base(self) -> Imported | None:
        """The model an adapter is for: the one brought last, unless another was chosen since."""
        return self._model if self._model and self._chosen == self._model_texts() else None

    def _refuse(self, problem: ImportProblem) -> None:
        self._show(view.problem(problem, dense=problem.code == CAN_BE_DENSE), str(problem))

    def _show(self, tree, told: str) -> None:
        document.getElementById(panel.PANEL).open = True
        self._result.renew(tree)
        document.getElementById(panel.TOLD).textContent = language.told(told)

    def take_files(self, files) -> None:
        """Read a file that was chosen or dropped; of several, say why not. files: a FileList that is not empty."""
        start(self._read_file(files.item(0), files.length, self._begin()))

    async def _read_file(self, file, count: int, asking) -> None:
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
            if self._asking is asking:
                self._read(text, file.name)
        document.getElementById(panel.FILE).value = ""

    async def _fetch(self, name: str, asking) -> None:
        self._give_up_later.call()
        waiting = f"Asking for the config.json of {name} …"
        self._show(view.waiting(waiting), waiting)
        try:
            text = await _config(name, document.getElementById(panel.HUB).dataset.origin, asking.signal)
        except ImportProblem as problem:
            if self._asking is asking:
                self._refuse(hub.too_slow() if self._late else problem)
        else:
            if self._asking is asking:
                self._read(text, name)
        if self._asking is asking:
            self._give_up_later.cancel()


async def _config(name: str, origin: str, signal) -> str:
    """The text of a model's config.json. Raises ImportProblem."""
    options = to_js({"signal": signal, "credentials": "omit", "referrerPolicy": "no-referrer", "cache": "no-cache"}, dict_converter=Object.fromEntries)
    try:
        answer = await fetch(hub.address(name, origin), options)
    except JsException:
        raise hub.unreachable() from None
    if not answer.ok:
        raise hub.refused(name, answer.status)
    check_announced(answer.headers.get("Content-Length") or "")
    try:
        return decoded(await _body(answer))
    except JsException:
        raise hub.cut_off() from None


async def _body(answer) -> bytes:
    """The bytes of an answer, refused as soon as there are too many."""
    reader, data = answer.body.getReader(), bytearray()
    while not (part := await reader.read()).done:
        data += part.value.to_bytes()
        check_size(len(data))
    return bytes(data)
