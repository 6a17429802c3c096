"""Token lengths of one's own data on the page: what is pasted, dropped or chosen stays here, and is held against every run that follows.

What reads and works it out is imported when it is first needed.
"""

from collections.abc import Callable

from js import document, window
from pyodide.ffi import JsException, create_proxy

from vramplan import language
from vramplan.ledger import Estimate
from pyscript.dom import Region
from pyscript.events import Later, guarded, listen, start
from pyscript.results import PHONE
from pyscript.views import lengths as view

READ_AFTER, SHOW_AFTER = 0, 150
"""Milliseconds after a paste, when the box holds it; and without a change of settings before they are held against the run."""

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson")
"""Names of files of lengths; no model or adapter comes in such a file, so they are read here wherever they are dropped."""


class LengthsSide:
    """The part for token lengths. `current` gives the estimate on the page, `phone` whether the narrow drawing is wanted."""

    def __init__(self, current: Callable[[], Estimate | None]):
        self._current = current
        self._result, self._columns = Region(view.RESULT), Region(view.COLUMNS)
        self._fold, self._box, self._file, self._told, self._problem = (
            document.getElementById(name) for name in (view.FOLD, view.TEXT, view.FILE, view.TOLD, view.PROBLEM)
        )
        self._data: bytes | str = ""
        self._read = None
        self._phone = window.matchMedia(PHONE)
        self._read_later = Later(self.read_box, READ_AFTER)
        self._show_later = Later(self._show, SHOW_AFTER)
        listen(self._box, "paste", lambda event: self._read_later.call())
        listen(self._file, "change", lambda event: self._take(self._file.files))
        listen(document.getElementById(view.COLUMNS), "change", lambda event: self._take_over(event.target.value))
        listen(self._phone, "change", lambda event: self.renew())
        document.addEventListener("drop", create_proxy(guarded(self._on_drop)), True)

    def read_box(self) -> None:
        """Read what is pasted."""
        self._data = self._box.value
        self._take_over()

    def renew(self) -> None:
        """Hold the lengths against the run that is on the page now, once nothing else changes; nothing where either is missing."""
        if self._read:
            self._show_later.call()

    def _take_over(self, column: str = "") -> None:
        """Read what was brought, one column of it where one is named."""
        from vramplan import lengths_report
        from vramplan.importing.length_files import WhichColumn, read_length_bytes, read_lengths
        from vramplan.importing.problems import ImportProblem
        from pyscript.views import lengths_result

        self._fold.open = True
        read = read_lengths if isinstance(self._data, str) else read_length_bytes
        try:
            self._read = read(self._data, column)
        except ImportProblem as problem:
            self._read = None
            self._result.hide()
            choices = problem.choices if isinstance(problem, WhichColumn) else ()
            self._say(str(problem), problem=True)
        else:
            choices = self._read.choices if len(self._read.choices) > 1 else ()
            self._say(lengths_report.read_sentence(self._read))
        if choices:
            self._columns.paint(lengths_result.columns(choices, self._read.column if self._read else ""))
        elif not column:
            self._columns.hide()
        self._show_later.cancel()
        self._show()

    def _show(self) -> None:
        from vramplan import lengthchart, lengths_report
        from vramplan.errors import NotExpressible
        from vramplan.length_fit import length_fit
        from pyscript.views import lengths_result

        estimate = self._current()
        if not self._read or estimate is None:
            self._result.hide()
            return
        try:
            found = length_fit(self._read.lengths, estimate)
        except NotExpressible as reason:
            self._result.paint(lengths_result.no_result(reason.message))
            return
        drawn = lengthchart.layout(found, frame=lengthchart.NARROW if self._phone.matches else lengthchart.WIDE)
        self._result.paint(lengths_result.result(
            drawn, lengths_report.line_texts(drawn), lengths_report.histogram_label(drawn),
            (lengths_report.read_sentence(self._read), lengths_report.advice(found), *lengths_report.sentences(found)),
            lengths_report.mark_rows(found), lengths_report.batches_rows(found), lengths_report.BATCHES_NOTE, lengths_report.bar_rows(found, drawn),
        ))

    def _say(self, text: str, *, problem: bool = False) -> None:
        """Show what is wrong, if anything is; a screen reader hears either."""
        self._told.textContent = language.told(text)
        self._problem.textContent = language.told(text) if problem else ""
        self._problem.hidden = not problem
        self._box.setAttribute("aria-invalid", "true" if problem else "false")

    def _take(self, files) -> None:
        if files.length:
            start(self._read_file(files.item(0)))

    async def _read_file(self, file) -> None:
        from vramplan.importing.length_files import check_length_size
        from vramplan.importing.problems import ImportProblem

        try:
            check_length_size(int(file.size))
            self._data = (await file.arrayBuffer()).to_bytes()
        except ImportProblem as problem:
            self._refuse(str(problem))
        except JsException:
            self._refuse("The browser could not read the file. Choose it again; a folder cannot be read.")
        else:
            self._take_over()
        self._file.value = ""

    def _refuse(self, why: str) -> None:
        self._read = None
        self._fold.open = True
        self._columns.hide()
        self._result.hide()
        self._say(why, problem=True)

    def _on_drop(self, event) -> None:
        """A file that is dropped on the part, or is named like one of lengths, is read here; any other goes on to where it is for."""
        files = event.dataTransfer.files if event.dataTransfer else None
        if not files or not files.length:
            return
        part = document.getElementById(view.PART)
        if part.contains(event.target) or files.item(0).name.lower().endswith(SUFFIXES):
            event.preventDefault()
            event.stopPropagation()
            document.body.classList.remove("dropping")
            self._take(files)
            part.scrollIntoView()
