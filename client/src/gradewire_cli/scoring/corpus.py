"""Corpora for metrics that weight words: the file's references, or the rows of one request."""

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
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire import AsyncClient
    from gradewire.metrics.base import Metric
    from gradewire_cli.rows.input_file import InputFile

BATCH_ROWS: Final = 64
"""Number of rows in one request. The encoder fills its batches from all requests in flight."""
_FIELDS = ("question", "references", "synthetic_answers")


@dataclass(slots=True)
class FileReferences:
    """A file's distinct references.

    Attributes:
        entry_of: Position in `entries` by row index.
        has_synthetic: True if the first rows all have synthetic answers.
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
        """Read a file's references; raise InputError if no row has references."""
        opened = source.open()
        found = cls(has_synthetic=opened.has_synthetic)
        seen: dict[str, int] = {}
        for row in opened.rows:
            found.rows += 1
            if row.item is None:
                found.problems.append(row.problem)
                continue
            if row.item.get("answerable") is False:
                continue  # a question without an answer has nothing to prepare
            entry = {name: row.item[name] for name in _FIELDS if name in row.item}
            key = json.dumps(entry, sort_keys=True, default=repr)
            if key not in seen:
                seen[key] = len(found.entries)
                found.entries.append(entry)
                found.positions.append(row.position)
            found.entry_of[row.index] = seen[key]
        found.notes += (*opened.notes, *opened.late_notes)
        if not found.entries:
            raise InputError(f"{source.name}: no row has references")
        return found


async def with_file_corpus(
    client: AsyncClient, source: InputFile, chosen: MetricChoice, *, quiet: bool
) -> MetricChoice:
    """Prepare the file's references if a metric needs a prepared corpus and the options name no reference set.

    Raises:
        InputError: A metric with corpus=request needs more than one request, or standard input would be read twice.
        GradewireError: The server is down, or refuses the call.
    """
    metrics = {label: over_a_file(metric) for label, metric in chosen.named.items()}
    if any(_corpus(metric) == "request" for metric in metrics.values()):
        _refuse_many_rows(source)
    weighted = [metric for metric in metrics.values() if _corpus(metric) == "prepared"]
    if not weighted or (chosen.reference_set and source.is_stdin):
        return choose_metrics(metrics, MetricDefaults(reference_set=chosen.reference_set or None))
    if source.is_stdin:
        names = ", ".join(metric.name for metric in weighted)
        raise InputError(f"{names} would read standard input twice. Name a file, or use --reference-set")
    entries = FileReferences.read(source).entries
    return await _prepared(client, entries, source.name, metrics, chosen.reference_set, quiet=quiet)


async def with_corpus(
    client: AsyncClient, entries: Sequence[Mapping[str, Any]], name: str, chosen: MetricChoice, *, quiet: bool
) -> MetricChoice:
    """Prepare these references if a metric needs a prepared corpus. Return the metrics with their reference set.

    Args:
        client: Client of the server that will score.
        entries: Distinct questions with their references.
        name: Name of the entries' file, for messages.
        chosen: Metrics.
        quiet: Report nothing on standard error.

    Raises:
        InputError: A metric takes its corpus from the items of one request, or names another file's corpus.
        GradewireError: The server is down, or refuses the call.
    """
    metrics = {label: over_a_file(metric) for label, metric in chosen.named.items()}
    if by_request := [metric.name for metric in metrics.values() if _corpus(metric) == "request"]:
        raise InputError(
            f"{by_request[0]} with corpus=request counts the rows of one request, and there are several. Use "
            "corpus=prepared (bertscore: idf=prepared)"
        )
    if not any(_corpus(metric) == "prepared" for metric in metrics.values()):
        return chosen
    return await _prepared(client, entries, name, metrics, chosen.reference_set, quiet=quiet)


async def _prepared(  # noqa: PLR0913 - two collaborators, the entries with their name, and the metrics with their set
    client: AsyncClient,
    entries: Sequence[Mapping[str, Any]],
    name: str,
    metrics: Mapping[str, Metric],
    reference_set: str,
    *,
    quiet: bool,
) -> MetricChoice:
    weighted = [metric for metric in metrics.values() if _corpus(metric) == "prepared"]
    # If a metric identifier names this file's set, prepare the set again, because this server may lack it.
    if reference_set and split_pin(reference_set)[0] != name_entries(entries):
        return choose_metrics(metrics, MetricDefaults(reference_set=reference_set))
    with progress("counting references", len(entries), quiet=quiet) as shown:
        report = await client.prepare(entries, metrics=weighted, progress=lambda step: shown(step.entries_done, ""))
    if not quiet:
        left_out = f", {len(report.failures)} failed" if report.failures else ""
        click.echo(
            f"corpus: counted {len(entries) - len(report.failures)} reference lists in {name}"
            f"{left_out} (reference set {report.reference_set})",
            err=True,
        )
    # A metric identifier may require an earlier version of the file's corpus.
    return choose_metrics(metrics, MetricDefaults(reference_set=reference_set or report.reference_set))


def refuse_part_of_a_request(chosen: MetricChoice, source: InputFile, out: Path, pictures: Path | None = None) -> None:
    """Refuse to resume if a metric weights words within one request and only some of the rows are left.

    Unreadable rows do not count, because they are never sent. The earlier output `out` need not exist.

    Raises:
        InputError: Only some rows have a final result, or the output cannot be read. No file was changed.
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
            f"{', '.join(names)}: corpus=request counts the rows of one request, but only {left} of {len(rows)} rows "
            f"{'is' if left == 1 else 'are'} left, so word weights would differ from the weights in {out}. Score all "
            "rows again with --overwrite, or use corpus=prepared (bertscore: idf=prepared)"
        )


def _corpus(metric: Metric) -> Any:
    return next((value for name in CORPUS_PARAMETERS if (value := getattr(metric, name, None))), None)


def _refuse_many_rows(source: InputFile) -> None:
    rows = source.count()
    if rows is None or rows > BATCH_ROWS:
        there = "standard input" if rows is None else f"{source.name} has {rows} rows and"
        raise InputError(
            f"corpus=request: {there} may need several requests of {BATCH_ROWS} rows, each with its own weights. "
            "Use corpus=prepared (bertscore: idf=prepared), which counts the file's references"
        )


def over_a_file(metric: Metric) -> Metric:
    """Return the metric; if the metric needs a corpus but names none, add a prepared corpus.

    The server's default corpus is the items of one request, so a row's score would depend on neighbouring rows.
    """
    corpus = metric.prepared_parameter if metric.needs_corpus else None
    if corpus is None or getattr(metric, corpus) is not None:
        return metric
    named: dict[str, Any] = {corpus: "prepared"}
    return replace(metric, **named)
