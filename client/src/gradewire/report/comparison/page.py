"""Renders and writes the page of a comparison, within its size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gradewire.report.bounded import MAX_NAME_CHARACTERS
from gradewire.report.figures import Figure, number
from gradewire.report.page import MAX_BYTES, ReportTooLargeError
from gradewire.report.rendering import page_assets, template_of
from gradewire.report.tables import Line, Table
from gradewire.report.texts import ShownText, normal_form, shown, visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gradewire.report.comparison.input import CandidateSection, ChangedAnswer, ComparisonInput, OutcomeCounts

# Rows that changed most in either direction, characters of their texts, lines of a table: the first of these with which
# the page is small enough.
_AMOUNTS = ((25, 1200, 400), (10, 600, 200), (5, 300, 60), (0, 0, 20))
_REFERENCES = 5
_LINE_CHARACTERS = 2000
_CELL_CHARACTERS = 200
# Units of the drawing.
_BAR_LENGTH = 260.0


@dataclass(frozen=True, slots=True)
class _Bar:
    """Lengths of the three parts, in units of the drawing, and where each begins."""

    chooser: str
    parts: Sequence[tuple[str, float, float]]
    text: str


@dataclass(frozen=True, slots=True)
class _ShownAnswer:
    """A changed row with texts that are cut and made visible."""

    id: str
    question: ShownText
    references: Sequence[ShownText]
    sides: Sequence[tuple[str, str, str, ShownText]]
    difference: str


def write_comparison(path: Path, comparison: ComparisonInput) -> int:
    """Writes the page: figures with their intervals, wins, ties and losses, changed rows, what else differs.

    It loads nothing, and shows up to 25 rows in either direction with texts cut at 1 200 characters, fewer and shorter
    ones where it would grow beyond 1.9 MB; names are cut at 80 characters.

    Args:
        path: File to write; one that is there is replaced.
        comparison: What to show.

    Returns:
        Its size, bytes.

    Raises:
        MissingJinjaError: jinja2 is not installed.
        ReportTooLargeError: It would be larger than 1.9 MB without a changed row.
        OSError: The file cannot be written.
    """
    page = render(comparison)
    path.write_bytes(page)
    return len(page)


def render(comparison: ComparisonInput) -> bytes:
    """The page in UTF-8; raises as `write_comparison`."""
    template = template_of("comparison.html")
    content = page_assets(("common.js",), ("report.css", "comparison.css")) | {
        "source": visible(comparison.source[:_LINE_CHARACTERS]),
        "created": comparison.created,
        "baseline": _name(comparison.baseline),
        "chooser": visible(comparison.chooser[:_LINE_CHARACTERS]),
        "notes": [visible(note[:_LINE_CHARACTERS]) for note in comparison.notes],
        "conditions": [(visible(text[:_LINE_CHARACTERS]), holds) for text, holds in comparison.conditions],
        "lines": [(_name(label), visible(line[:_LINE_CHARACTERS])) for label, line in comparison.lines],
    }
    for amounts in _AMOUNTS:
        sections = [_section(comparison, candidate, *amounts) for candidate in comparison.candidates]
        page = template.render(content, sections=sections).encode(errors="replace")
        if len(page) <= MAX_BYTES:
            return page
    raise ReportTooLargeError(f"the page would have {len(page):,} bytes without a single answer")


def _section(
    comparison: ComparisonInput, candidate: CandidateSection, rows: int, characters: int, lines: int
) -> dict[str, object]:
    names = (_name(comparison.baseline), _name(candidate.candidate))
    return {
        "candidate": names[1],
        "pairs": candidate.pairs,
        "tables": [_table(table, lines) for table in candidate.tables],
        "bars": [_bar(counts) for counts in candidate.outcomes],
        "changed_by": _name(candidate.changed_by),
        "changed": [
            (title, [_shown(answer, names, characters) for answer in answers[:rows]])
            for title, answers in (("gained", candidate.gained), ("lost", candidate.lost))
        ],
        "differences": None if candidate.differences is None else _table(candidate.differences, lines),
    }


def _name(text: str) -> str:
    return visible(text if len(text) <= MAX_NAME_CHARACTERS else f"{text[: MAX_NAME_CHARACTERS - 1]}…")


def _table(table: Table, most: int) -> Table:
    """The table with cells fit to be shown, and so many lines at most."""
    lines = [Line([_cell(cell) for cell in line.cells]) for line in table.lines[:most]]
    note = f"The first {most:,} of {len(table.lines):,} lines are shown." if len(table.lines) > most else ""
    columns = [replace(column, name=_name(column.name)) for column in table.columns]
    return Table(visible(table.caption[:_CELL_CHARACTERS]), columns, lines, table.heads, note)


def _cell(cell: Figure) -> Figure:
    text = cell.text if len(cell.text) <= _CELL_CHARACTERS else f"{cell.text[: _CELL_CHARACTERS - 1]}…"
    return replace(cell, text=visible(text), order=visible(cell.order[:_CELL_CHARACTERS]))


def _bar(counts: OutcomeCounts) -> _Bar:
    numbers = {"right": counts.wins, "between": counts.ties, "wrong": counts.losses}
    decided = sum(numbers.values())
    parts, begin = [], 0.0
    for kind, pairs in numbers.items():
        length = _BAR_LENGTH * pairs / decided if decided else 0.0
        parts.append((kind, round(begin, 2), round(length, 2)))
        begin += length
    text = f"{counts.wins:,} won, {counts.ties:,} tied, {counts.losses:,} lost"
    return _Bar(_name(counts.chooser), parts, text + (f", {counts.undecided:,} undecided" if counts.undecided else ""))


def _shown(answer: ChangedAnswer, names: tuple[str, str], characters: int) -> _ShownAnswer:
    def cut(text: str) -> ShownText:
        return shown(normal_form(text), max_characters=characters)

    scores = (answer.baseline_score, answer.candidate_score)
    verdicts = (answer.baseline_verdict, answer.candidate_verdict)
    texts = (answer.baseline, answer.candidate)
    return _ShownAnswer(
        _name(answer.id),
        cut(answer.question),
        [cut(reference) for reference in answer.references[:_REFERENCES]],
        [
            (name, number(score), verdict, cut(text))
            for name, score, verdict, text in zip(names, scores, verdicts, texts, strict=True)
        ],
        number(scores[1] - scores[0]),
    )
