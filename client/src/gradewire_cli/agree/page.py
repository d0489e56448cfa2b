"""The HTML page of a run of `agree`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradewire_cli.agree.tables import abstention_lines
from gradewire_cli.pages.agreement import write_report
from gradewire_cli.pages.page import today, write_page_file
from gradewire_cli.pages.report import ReportInput, ReportRow
from gradewire_cli.results.interval_notes import agreement_interval_notes
from gradewire_stats.point_estimates import ALL_STATISTICS

if TYPE_CHECKING:
    from pathlib import Path

    from gradewire_cli.agree.result import AgreementResult


def write_page(path: Path, found: AgreementResult) -> None:
    """Write the HTML page of a run that kept its rows.

    Raises:
        InputError: It cannot be written, or what makes it is not installed.
    """
    run, labelled = found.run, found.labelled
    page = ReportInput(
        folder=run.source.folder,
        source=run.source.short_name,
        created=today(),
        rows=[
            ReportRow(
                id=row.id,
                question=str(item.get("question", "")),
                references=tuple(map(str, item.get("references", ()))),
                prediction=str(item.get("prediction", "")),
                label=float(label),
                picture=row.picture,
                labels=row.human.annotations,
                dataset=row.dataset,
                model=row.model,
                group=row.group,
                results=output["scores"],
            )
            for (row, output), label in zip(labelled.kept, found.rows.labels, strict=True)
            for item in [row.item or {}]
        ],
        judged=found.rows,
        agreement=found.report,
        unlabelled=labelled.unlabelled,
        unreadable=labelled.unreadable,
        annotators=found.annotators,
        notes=[
            *map(_sentence, agreement_interval_notes(found.report, ALL_STATISTICS)),
            f"Seed of the draws: {run.seed}.",
            *map(_sentence, abstention_lines(found)),
            *map(_sentence, labelled.left_out()),
        ],
    )
    write_page_file(path, lambda: write_report(path, page), quiet=run.quiet)


def _sentence(line: str) -> str:
    return f"{line[0].upper()}{line[1:]}."
