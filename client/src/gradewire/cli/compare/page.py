"""Makes the HTML page of a comparison."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING

from gradewire.cli.compare.tables import difference_table, figure_notes, figure_tables
from gradewire.cli.problems import InputError, named_errors
from gradewire.report.comparison.input import CandidateSection, ChangedAnswer, ComparisonInput, OutcomeCounts
from gradewire.report.comparison.page import write_comparison
from gradewire.report.figures import Figure as ShownFigure
from gradewire.report.page import ReportTooLargeError
from gradewire.report.rendering import MissingJinjaError
from gradewire.report.tables import Column, Line, Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gradewire.cli.compare.changed import ChangedRow
    from gradewire.cli.compare.conditions import CheckedCondition
    from gradewire.cli.compare.result import CompareResult, SideComparison
    from gradewire.cli.output.figures import Figure
    from gradewire.cli.output.tables import FigureTable

_VERDICTS = {True: "right", False: "wrong", None: ""}


def write_page(path: Path, found: CompareResult, source: str, conditions: Sequence[CheckedCondition]) -> int:
    """Writes the HTML page of a comparison, and returns its size in bytes.

    Raises:
        InputError: It cannot be written, or what makes it is not installed.
    """
    baseline = found.sides[0].baseline
    page = ComparisonInput(
        source=source,
        created=dt.datetime.now(tz=dt.UTC).date().isoformat(),
        baseline=baseline,
        chooser=", ".join(str(value) if name == "by" else f"{name} {value}" for name, value in found.identity.items()),
        candidates=[_candidate(side, found.chooser) for side in found.sides],
        notes=figure_notes(found),
        conditions=[(str(each), each.holds or bool(each.problem)) for each in conditions],
        lines=list(found.manifests[baseline].lines.items()),
    )
    try:
        with named_errors(path):
            return write_comparison(path, page)
    except MissingJinjaError as error:
        raise InputError(str(error)) from error
    except ReportTooLargeError as error:
        raise InputError(f"{path}: {error}") from error


def _candidate(side: SideComparison, chooser: str) -> CandidateSection:
    by = chooser if chooser in side.changed else next(iter(side.changed), "")
    changed = side.changed.get(by)
    differences = difference_table(side)
    return CandidateSection(
        candidate=side.candidate,
        pairs=side.overall.pairs,
        tables=[_table(table) for table in figure_tables(side)],
        outcomes=[
            OutcomeCounts(chooser=name, wins=of.wins, ties=of.ties, losses=of.losses, undecided=of.undecided)
            for name, of in side.overall.outcomes.items()
        ],
        changed_by=by,
        gained=[_answer(row) for row in changed.gained] if changed else [],
        lost=[_answer(row) for row in changed.lost] if changed else [],
        differences=_table(differences) if differences else None,
    )


def _answer(row: ChangedRow) -> ChangedAnswer:
    return ChangedAnswer(
        id=row.id,
        question=row.question,
        references=row.references,
        baseline=row.baseline_answer,
        candidate=row.candidate_answer,
        baseline_score=row.baseline_score,
        candidate_score=row.candidate_score,
        baseline_verdict=_VERDICTS[row.baseline_correct],
        candidate_verdict=_VERDICTS[row.candidate_correct],
    )


def _table(table: FigureTable) -> Table:
    columns = [Column(name, numeric=place >= table.heads) for place, name in enumerate(table.columns)]
    return Table(table.title, columns, [Line([_cell(cell) for cell in row]) for row in table.rows], table.heads)


def _cell(cell: Figure | str) -> ShownFigure:
    if isinstance(cell, str):
        return ShownFigure(cell, order=cell.casefold())
    value = cell.p_value if math.isnan(cell.value) else cell.value
    return ShownFigure(cell.text, order="" if math.isnan(value) else f"{value:.6g}")
