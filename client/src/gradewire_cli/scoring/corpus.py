"""The corpus of metrics that weigh words: the references of the file, or the rows of one request."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

import click

from gradewire.metrics.choice import MetricChoice, MetricDefaults, choose_metrics
from gradewire.references import name_entries
from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.journal import files_of
from gradewire_cli.results.progress import progress
from gradewire_cli.results.resumable_output import CORPUS_PARAMETERS, may_pass, read_results
from gradewire_cli.rows.row import result_key, with_picture_digests
from gradewire_proto.wire_rules import split_pin

if TYPE_CHECKING:
    from pathlib import Path

    from gradewire import AsyncClient
    from gradewire.metrics.base import Metric
    from gradewire_cli.rows.input_file import InputFile

BATCH_ROWS: Final = 64
"""Rows of one request; the encoder's batches are filled from all that is in flight."""
_FIELDS = ("question", "references", "synthetic_answers")


@dataclass(slots=True)
class FileReferences:
    """The distinct references of a file.

    Attributes:
        entries: What `Client.prepare` takes.
        entry_of: Position in `entries` by row number.
        has_synthetic: Whether all of the first rows carry synthetic answers.
        notes: What people should know of the cells, in sentences.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rows: int = 0
    entry_of: dict[int, int] = field(default_factory=dict)
    has_synthetic: bool = False
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, source: InputFile) -> Self:
        """Read a file; raises InputError where no row has references."""
        opened = source.open()
        found = cls(has_synthetic=opened.has_synthetic)
        seen: dict[str, int] = {}
        for row in opened.rows:
            found.rows += 1
            if row.item is None:
                found.problems.append(row.problem)
                continue
            entry = {name: row.item[name] for name in _FIELDS if name in row.item}
            key = json.dumps(entry, sort_keys=True, default=repr)
            if key not in seen:
                seen[key] = len(found.entries)
                found.entries.append(entry)
                found.positions.append(row.position)
            found.entry_of[row.index] = seen[key]
        found.notes += (*opened.notes, *opened.late_notes)
        if not found.entries:
            raise InputError(f"{source.name}: there is no row with references")
        return found


async def with_file_corpus(
    client: AsyncClient, source: InputFile, chosen: MetricChoice, *, quiet: bool
) -> MetricChoice:
    """Prepare the references of the file where a metric needs a prepared corpus, and no other set is named.

    A cider that names no corpus takes this one too: its default, the items of one request, would be a batch of rows
    here, and give the same row another score in another file. The rows of the file are read once more for it.

    Raises:
        InputError: A metric asks for the corpus of a request over more rows than one request holds, or the file is
            standard input, which cannot be read twice.
        GradewireError: The server is not there, or refuses.
    """
    metrics = {label: over_a_file(metric) for label, metric in chosen.named.items()}
    if any(_corpus(metric) == "request" for metric in metrics.values()):
        _refuse_many_rows(source)
    weighted = [metric for metric in metrics.values() if _corpus(metric) == "prepared"]
    if not weighted or (chosen.reference_set and source.is_stdin):
        return choose_metrics(metrics, MetricDefaults(reference_set=chosen.reference_set or None))
    if source.is_stdin:
        names = ", ".join(metric.name for metric in weighted)
        raise InputError(f"{names}: standard input cannot be read twice; give a file, or --reference-set")
    entries = FileReferences.read(source).entries
    # A line of this file names the file's own set, which another store or server may not have.
    if chosen.reference_set and split_pin(chosen.reference_set)[0] != name_entries(entries):
        return choose_metrics(metrics, MetricDefaults(reference_set=chosen.reference_set))
    with progress("counting references", len(entries), quiet=quiet) as shown:
        report = await client.prepare(entries, metrics=weighted, progress=lambda step: shown(step.entries_done, ""))
    if not quiet:
        left_out = f", {len(report.failures)} could not be" if report.failures else ""
        click.echo(
            f"corpus: {len(entries) - len(report.failures)} reference lists of {source.name} are counted"
            f"{left_out} (reference set {report.reference_set})",
            err=True,
        )
    # A line may insist on the corpus that the file had when it was written.
    return choose_metrics(metrics, MetricDefaults(reference_set=chosen.reference_set or report.reference_set))


def refuse_part_of_a_request(chosen: MetricChoice, source: InputFile, out: Path, pictures: Path | None = None) -> None:
    """Refuse to score the rest of a file with a metric whose corpus are the rows that are scored together.

    Rows that no request can hold, because they cannot be read, count on neither side. `out` is the output of an earlier
    run and need not be there; `pictures` as in `ScorePlan`.

    Raises:
        InputError: Some of the rows have a result that stands, others have none; or the output cannot be read. Nothing
            was changed.
    """
    names = [metric.name for metric in chosen.metrics if _corpus(metric) == "request"]
    if not names:
        return
    done = set()
    for path in files_of(out)[:2]:
        with named_errors(path):
            results = read_results(path) if path.exists() else ()
            done |= {result_key(result) for _, result in results if not may_pass(result)}
    rows = {row.key for row in with_picture_digests(source.open().rows, pictures) if row.item is not None}
    if rows & done and (left := len(rows - done)):
        raise InputError(
            f"{', '.join(names)}: corpus=request counts the rows that are scored together, and of {len(rows)} rows "
            f"{left} {'is' if left == 1 else 'are'} left: their weights would be others than those of {out}. Score all "
            "again with --overwrite, or write corpus=prepared (bertscore: idf=prepared)"
        )


def takes_corpus(metric: Metric) -> bool:
    """Tell whether a metric's scores depend on which other references are counted."""
    return _corpus(over_a_file(metric)) in {"request", "prepared"}


def _corpus(metric: Metric) -> Any:
    return next((value for name in CORPUS_PARAMETERS if (value := getattr(metric, name, None))), None)


def _refuse_many_rows(source: InputFile) -> None:
    rows = source.count()
    if rows is None or rows > BATCH_ROWS:
        there = "standard input" if rows is None else f"{source.name} has {rows} rows and"
        raise InputError(
            f"corpus=request: {there} may need more than one request, of {BATCH_ROWS} rows each, and each would have "
            "weights of its own: write corpus=prepared (bertscore: idf=prepared), which takes the file's references"
        )


def over_a_file(metric: Metric) -> Metric:
    """Return a metric that counts over a corpus, and names none, with the prepared one.

    Its default, the items of one request, would be a batch of rows here, and give a row another score in another file.
    """
    corpus = metric.prepared_parameter if metric.needs_corpus else None
    if corpus is None or getattr(metric, corpus) is not None:
        return metric
    named: dict[str, Any] = {corpus: "prepared"}
    return replace(metric, **named)
