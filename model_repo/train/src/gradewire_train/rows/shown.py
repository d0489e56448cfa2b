"""Show a grader's rows to users, and write them as JSON lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from gradewire_train.examples import lines_digest
from gradewire_train.graded.wording import DrawnRow
from gradewire_train.rows.row import GraderRow


class ShownRow(NamedTuple):
    """A row to show or write; `line` is its JSON."""

    kind: str
    question: str
    references: tuple[str, ...]
    prediction: str
    right: bool
    line: str


def drawn(row: DrawnRow) -> ShownRow:
    """Return a drawn row to show."""
    found = row.drawn
    return ShownRow(row.kind, found.question, found.references, found.prediction, found.right, row.json())


def changed(row: GraderRow) -> ShownRow:
    """Return a row from `counterfactuals` to show; the kind of change is the last word of its ID."""
    kind = row.id.rpartition(" ")[2]
    return ShownRow(kind, row.question, row.references, row.prediction, row.label > 0, row.json())


def show(rows: Sequence[ShownRow], out: Path | None) -> None:
    """Print all rows, or write them to `out`; then print each kind's counts, and a digest of the lines."""
    if out is None:
        for row in rows:
            click.echo(f"{row.kind}: {row.question}\n  = {' | '.join(row.references)}")
            click.echo(f"  {'+' if row.right else '-'} {row.prediction}")
    else:
        out.write_text("".join(f"{row.line}\n" for row in rows), encoding="utf-8")
    for kind in dict.fromkeys(row.kind for row in rows):
        own = [row for row in rows if row.kind == kind]
        words = sum(len(row.prediction.split()) for row in own) / len(own)
        right = sum(row.right for row in own)
        click.echo(f"{kind}: {len(own)} rows, {right} of them right, answers of {words:.1f} words on average")
    click.echo(f"{len(rows)} rows, SHA-256 {lines_digest(row.line for row in rows)}")
