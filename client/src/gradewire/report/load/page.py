"""The page of a load run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gradewire.report import page
from gradewire.report.load.charts import plots
from gradewire.report.page import Charts, Heading, Page, Paragraph, Section, ShownTable
from gradewire.report.texts import ShownText, cut

if TYPE_CHECKING:
    from pathlib import Path

    from gradewire.report.load.input import LoadInput
    from gradewire.report.page import Block

_NOTE_CHARACTERS: Final = 1000
_CHECKS: Final = {None: "unmeasured", True: "kept", False: "broken"}


def write_load_page(path: Path, load: LoadInput) -> int:
    """Write the page: what was found, charts with a table beside each, all values. It loads nothing.

    Args:
        path: File to write; one that is there is replaced.
        load: What to show.

    Returns:
        Its size, bytes.

    Raises:
        MissingJinjaError: jinja2 is not installed.
        ReportTooLargeError: It would be larger than 1.9 MB.
        OSError: The file cannot be written.
    """
    return page.write_page(path, [load_page(load)])


def render(load: LoadInput) -> bytes:
    """Return the page in UTF-8; raises as `write_load_page`."""
    return page.render([load_page(load)])


def load_page(load: LoadInput) -> Page:
    """Return the page of a load run."""
    source = ShownText(cut(load.source, _NOTE_CHARACTERS))
    found: list[Block] = [
        Paragraph((ShownText(cut(note, _NOTE_CHARACTERS)),))
        for note in load.notes
        if not note.startswith("at twice the knee: ")
    ]
    if load.checks:
        found.append(Heading(("At twice the knee",)))
        found += [Paragraph((cut(text, _NOTE_CHARACTERS),), _CHECKS[holds]) for text, holds in load.checks]
    drawn: list[Block] = []
    for place, (chart, table) in enumerate(plots(load), 1):
        drawn += [Charts([chart], "wide"), ShownTable(f"t-plot-{place}", table)]
    steps = [ShownTable(f"t-steps-{place}", table) for place, table in enumerate(load.tables, 1)]
    return Page(
        title=f"Load on {source.before}",
        heading=("Load on ", source),
        lead=(f"{load.created}: {len(load.steps)} steps",),
        sections=[
            Section(id="found", title=("Found",), blocks=found),
            Section(id="plots", title=("Plots",), blocks=drawn or [Paragraph(("Nothing was measured.",))]),
            Section(id="steps", title=("Steps",), blocks=steps),
        ],
    )
