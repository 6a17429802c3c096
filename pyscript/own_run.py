"""A run of one's own on the page: what is pasted or chosen is read, and shown against the estimate.

What reads and explains is imported when it is first needed: few visitors bring a measurement, all wait for the start.
"""

from collections.abc import Callable, Mapping

from js import document
from pyodide.ffi import JsException

from vramplan import language
from vramplan.ledger import Estimate
from pyscript.dom import Region
from pyscript.events import Later, listen, start
from pyscript.views import own_run as view

EXPLAIN_AFTER = 350
"""Milliseconds after a change in which nothing else changes: then every other setting is tried."""

READ_AFTER = 0
"""Milliseconds after a paste: when the box holds it."""

SETTING = "measured"
"""The setting that holds what was measured."""


class OwnRun:
    """The part for one's own run. `current` gives the estimate on the page, `use` takes a setting over."""

    def __init__(self, current: Callable[[], Estimate | None], use: Callable[[Mapping[str, str]], None]):
        self._current = current
        self._use = use
        self._read, self._result, self._why, self._script = (Region(name) for name in (view.READ, view.RESULT, view.WHY, view.SCRIPT))
        self._box = document.getElementById(view.TEXT)
        self._told = document.getElementById(view.TOLD)
        self._fold = document.getElementById(view.SCRIPT_FOLD)
        self._file = document.getElementById(view.FILE)
        self._read_later = Later(self.read_box, READ_AFTER)
        self._explain_later = Later(self._explain, EXPLAIN_AFTER)
        part = document.getElementById(view.PART)
        listen(self._box, "paste", lambda event: self._read_later.call())
        listen(self._file, "change", lambda event: self._take(self._file.files))
        listen(part, "drop", self._on_drop)
        listen(self._fold, "toggle", lambda event: self._show_script())

    def read_box(self) -> None:
        """Read what is pasted."""
        from vramplan.measured_run.reading import read_text

        self._take_over(lambda: read_text(self._box.value))

    def show(self, estimate: Estimate | None) -> None:
        """Show what was measured beside the estimate that is on the page now; nothing where either is missing."""
        self._explain_later.cancel()
        self._show_script()
        if estimate is None or not estimate.settings.measured:
            self._result.hide()
            self._why.hide()
            return
        from vramplan import own_run
        from pyscript.views import own_run_result

        self._result.paint(own_run_result.result(own_run.own_run(estimate)))
        self._explain_later.call()

    def _explain(self) -> None:
        """Try every other setting."""
        from vramplan import own_run
        from pyscript.views import own_run_result

        estimate = self._current()
        told = own_run.explained(estimate) if estimate and estimate.settings.measured else None
        if told and told.sentences:
            self._why.paint(own_run_result.why(told))
        else:
            self._why.hide()

    def _show_script(self) -> None:
        """The script for the run that is on the page now, while the part with it is open."""
        if not self._fold.open:
            return
        from vramplan import measure
        from vramplan.errors import NotExpressible

        estimate = self._current()
        if estimate is None:
            self._script.paint(view.no_script("There is a script as soon as the run can be counted."))
            return
        try:
            self._script.paint(view.script(measure.script(estimate.settings), measure.needs(estimate.settings)))
        except NotExpressible as reason:
            self._script.paint(view.no_script(reason.message))

    def _take_over(self, read) -> None:
        from vramplan import own_run
        from vramplan.errors import NotExpressible
        from vramplan.importing.problems import ImportProblem
        from pyscript.views import own_run_result

        try:
            reading = read()
            estimate = self._current()
            if estimate is None:
                raise ImportProblem("not_counted", "There is no estimate to hold it against.", "Correct the settings first.")
            measured = own_run.with_reading(estimate, reading).settings.measured
        except (ImportProblem, NotExpressible) as problem:
            told = problem if isinstance(problem, ImportProblem) else ImportProblem("not_counted", problem.message, "")
            self._read.renew(own_run_result.problem(told))
            self._told.textContent = language.told(str(told))
            return
        self._read.renew(own_run_result.read(reading, own_run.block_rows(reading.blocks)))
        self._use({SETTING: measured})
        told = own_run.own_run(self._current())
        self._told.textContent = language.told(" ".join((f"Read: {reading.source}.", *told.sentences, told.adjusted)))

    def _take(self, files) -> None:
        if files.length:
            start(self._read_file(files.item(0)))

    async def _read_file(self, file) -> None:
        from vramplan.importing.problems import ImportProblem
        from vramplan.measured_run.pickled import ADVICE, MAX_BYTES
        from vramplan.measured_run.reading import read_file

        def content():
            if data is None:
                raise ImportProblem("unreadable", "The browser could not read the file.", "Choose it again; a folder cannot be read.")
            if file.size > MAX_BYTES:
                raise ImportProblem("too_large", f"The file has {int(file.size):,} bytes; at most {MAX_BYTES:,} are read.", ADVICE)
            return read_file(data)

        try:
            data = (await file.arrayBuffer()).to_bytes() if file.size <= MAX_BYTES else b""
        except JsException:
            data = None
        self._take_over(content)
        self._file.value = ""

    def _on_drop(self, event) -> None:
        """A file that is dropped here is a measurement; anywhere else it is a model or an adapter."""
        if event.dataTransfer and event.dataTransfer.files.length:
            event.preventDefault()
            event.stopPropagation()
            document.body.classList.remove("dropping")
            self._take(event.dataTransfer.files)
