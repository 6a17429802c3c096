"""`vramplan lengths`: a file of token lengths, and what it comes to as text."""

from vramplan import lengths_report, tables
from vramplan.fetching import file_bytes
from vramplan.importing.length_files import FORMATS, MAX_BYTES, LengthFile, check_length_size, read_length_bytes
from vramplan.importing.problems import ImportProblem
from vramplan.length_fit import LengthFit
from vramplan.lengthchart import layout


def read(path: str | None, column: str | None) -> LengthFile:
    """The lengths in a file (- is standard input). Raises ImportProblem."""
    if path is None:
        raise ImportProblem("no_file", "No file was named.", f"Name one, or - for standard input. {FORMATS}")
    return read_length_bytes(file_bytes(path, MAX_BYTES, check_length_size), column or "")


def table(file: LengthFile, found: LengthFit) -> str:
    """Headline, percentiles, ways to make batches, and the histogram with bars."""
    drawn = layout(found)
    most = max(bar.samples for bar in drawn.bars)
    marks = [("Tokens", "", "Longer samples", "Peak GiB", "", "")]
    marks += [(row.label, row.tokens, row.longer, row.peak, row.verdict, tables.NOW if row.current else "") for row in lengths_report.mark_rows(found)]
    batches = [("Batches", "Rows", "Padding", "A micro-batch does not fit")]
    batches += [(row.label, row.rows, row.padding, row.too_large) for row in lengths_report.batches_rows(found)]
    samples = {lengths_report.span_text(bar): bar.samples for bar in drawn.bars}
    bars = [("Tokens", "Samples", "Share", "Up to here", "", "")]
    bars += [(row.span, row.samples, row.share, row.upto, tables.bar(samples[row.span] / most), row.fits) for row in lengths_report.bar_rows(found, drawn)]
    return "\n\n".join((
        tables.headline(found.estimate),
        "\n".join((lengths_report.read_sentence(file), lengths_report.advice(found))),
        tables.columns(marks, left=(0, 4, 5)),
        "\n".join(lengths_report.sentences(found)),
        f"{tables.columns(batches)}\n  {lengths_report.BATCHES_NOTE}",
        tables.columns(bars, left=(4, 5)),
    ))
