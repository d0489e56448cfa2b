"""Resolves the options, with a connected client, to what is asked of every row: metrics, judges, corpora."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import click

from gradewire.metrics import Auto, Synthetic
from gradewire.metrics.choice import MetricChoice, MetricDefaults, choose_metrics
from gradewire.preparation import name_entries
from gradewire_cli.options.common import option_group
from gradewire_cli.options.connection import connection_options
from gradewire_cli.options.judge import judge_options
from gradewire_cli.options.metrics import (
    MetricOptions,
    cascade_options,
    metric_options,
    with_prompts,
)
from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.journal import files_of
from gradewire_cli.results.progress import progress
from gradewire_cli.results.results_file import CORPUS_PARAMETERS, may_pass, read_results
from gradewire_cli.rows.input_file import InputFile, input_options
from gradewire_cli.rows.row import result_key, with_picture_digests
from gradewire_cli.scoring.metrics import over_a_file, written_metrics
from gradewire_proto.wire_rules import split_pin

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire import AsyncClient, ModelList
    from gradewire.metrics.base import Metric

# One request of the client each; the encoder's batches are filled from all that is in flight.
BATCH_ROWS = 64
BATCHES_IN_FLIGHT = 4
# A judge on a CPU takes a second or more for a row, one on a GPU a hundredth: the first requests find out.
FIRST_JUDGED_ROWS = 4
# Requests of a judge's rows are made larger below, and smaller above: results show as progress, and what is in flight
# is done long before a deadline.
_QUICK_S = 10.0
_SLOW_S = 60.0


class AdaptiveBatchSize:
    """Number of rows in the next request: small for a judge of unknown speed, then by the time that answers take.

    Where no judge is asked, requests are as large as they get. `deadline_s` is that of one request, seconds.
    """

    def __init__(self, *, judged: bool, deadline_s: float) -> None:
        self.rows = FIRST_JUDGED_ROWS if judged else BATCH_ROWS
        self._judged = judged
        self._slow_s = min(_SLOW_S, deadline_s / BATCHES_IN_FLIGHT)
        self._quick_s = min(_QUICK_S, self._slow_s / 2)

    def took(self, seconds: float, *, rows: int, computed: int) -> None:
        """Learns how long a request took, unless fewer than half of its rows had to be computed.

        The others were answered from a cache alone, which says nothing of how long a judge takes.
        """
        if not self._judged or 2 * computed < rows:
            return
        if seconds > self._slow_s:
            self.rows = max(1, self.rows // 2)
        elif seconds < self._quick_s and rows >= self.rows:
            self.rows = min(BATCH_ROWS, 2 * self.rows)


_FIELDS = ("question", "references", "synthetic_answers")


@dataclass(slots=True)
class FileReferences:
    """The distinct references of a file.

    Attributes:
        entries: What `Client.prepare` takes.
        positions: Where each was seen first.
        problems: Of rows that cannot be read.
        rows: Rows of the file.
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
        """Reads a file; raises InputError where no row has references."""
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
    """Prepares the references of the file where a metric needs a prepared corpus, and no other set is named.

    A cider that names no corpus takes this one too: its default, the items of one request, would be a batch of rows
    here, and give the same row another score in another file. The rows of the file are read once more for it.

    Returns:
        What was chosen, with the name of the set where one was prepared.

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
        report = await client.prepare(entries, metrics=weighted, progress=lambda step: shown.done(step.entries_done))
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
    """Refuses to score the rest of a file with a metric whose corpus are the rows that are scored together.

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
    """Whether a metric's scores depend on which other references are counted."""
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


# FILE, what it is scored by, and where.
scoring_options = option_group(input_options, metric_options, judge_options, cascade_options, connection_options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePlan:
    """What is asked of every row; nothing is left to be resolved.

    Attributes:
        chosen: The metrics, with all defaults filled in, and the reference set.
        synthetic: Synthetic answers of a smile that does not say its own.
        retries: How often rows are sent again when the server says that this may help.
        pictures: Folder that rows name their pictures from, where a metric shows them; None: none does.
        judge_elsewhere: Whether a judge that is asked runs behind a server of its own, which may be paid.
    """

    chosen: MetricChoice
    synthetic: Synthetic = "none"
    retries: int = 0
    judge_elsewhere: bool = False
    pictures: Path | None = None

    def arguments(self) -> dict[str, Any]:
        """Arguments of `Client.score`."""
        return {"metrics": self.chosen.named, "reference_set": self.chosen.reference_set or None}


async def resolve_plan(
    client: AsyncClient, options: MetricOptions, source: InputFile, *, has_synthetic: bool, quiet: bool
) -> ScorePlan:
    """Resolves `all`, prompt files, defaults and corpora; prints the remarks on the judges that are asked.

    Where no option says otherwise, smile takes the synthetic answers that the rows carry. Where a metric takes the
    references of the file as its corpus, the rows are read once more.

    Raises:
        InputError: A prompt file, or a corpus, fits none of the metrics or not this file.
        GradewireError: The server is not there, or a metric is not to be understood.
    """
    items = None if source.is_stdin else lambda: _items(source)
    written = await written_metrics(client, options, items)
    metrics = labelled_metrics(written, options)
    synthetic = options.synthetic or ("prepared" if options.reference_set else "inline" if has_synthetic else "none")
    defaults = MetricDefaults(options.preset, synthetic, options.model, options.reference_set, options.judge)
    chosen = choose_metrics(metrics, defaults)
    await _check_models(client, chosen.metrics)
    # Nobody should pay for a worse answer, or trust a judge that is for tests, without having been told.
    elsewhere = False
    if asked := [metric for metric in chosen.metrics if metric.asks_judge()]:
        listed = await client.models()
        elsewhere = any(runs_elsewhere(listed, metric) for metric in asked)
        for line in dict.fromkeys(_remarks(asked, listed)):
            click.echo(line, err=True)
    return ScorePlan(
        chosen=await with_file_corpus(client, source, chosen, quiet=quiet),
        synthetic=synthetic,
        retries=options.retries,
        judge_elsewhere=elsewhere,
        pictures=source.folder if chosen.shows_images else None,
    )


def _items(source: InputFile) -> Iterator[Mapping[str, Any]]:
    return (row.item for row in source.open().rows if row.item is not None)


def labelled_metrics(written: Sequence[Metric], options: MetricOptions) -> dict[str, Metric]:
    """Return the metrics by their labels, which go by what was written and not by what is filled in.

    Each has its prompt file; an auto that says neither risk nor budget has that of the options.

    Raises:
        InputError: A prompt file is for none of the metrics, or two are for the same; or there is no such auto.
    """
    labels = choose_metrics(written, MetricDefaults()).labels
    metrics = dict(zip(labels, with_prompts(written, options.prompts), strict=True))
    values: dict[str, Any] = {"risk": options.risk, "judge_budget": options.judge_budget}
    told = [f"--{name.replace('_', '-')}" for name, value in values.items() if value is not None]
    if not told:
        return metrics
    open_ones = {
        label: replace(metric, **values)
        for label, metric in metrics.items()
        if isinstance(metric, Auto) and metric.risk is None and metric.judge_budget is None
    }
    if not open_ones:
        raise InputError(f"{told[0]} is for an auto that says neither risk nor judge_budget: name it in --metrics")
    return {**metrics, **open_ones}


async def _check_models(client: AsyncClient, metrics: Sequence[Metric]) -> None:
    """Refuses models that the server does not know, before their rows would all fail."""
    named = {
        (_kind_of_model(metric), str(model).partition("@")[0])
        for metric in metrics
        if (model := getattr(metric, "model", None))
    }
    named |= {("grader", grader.partition("@")[0]) for metric in metrics if (grader := getattr(metric, "grader", None))}
    named |= {("judge", name) for metric in metrics if metric.asks_judge() and (name := judge_name(metric))}
    if not named:
        return
    listed = (await client.models()).models
    for kind, name in sorted(named):
        known = [model.name for model in listed if model.kind == kind]
        # A server that lists none does not say what it has.
        if known and name not in known:
            raise InputError(
                f"{name}: the server knows no such {kind}, it knows {', '.join(known)} (gradewire models list)"
            )


def _kind_of_model(metric: Metric) -> str:
    if metric.needs_judge:
        return "judge"
    return "grader" if metric.needs_grader else "encoder"


def _remarks(requested: Sequence[Metric], listed: ModelList) -> list[str]:
    advice = {metric.name: metric.advice for metric in listed.metrics if metric.advice}
    lines = [f"{metric.name}: {advice[metric.name]}" for metric in requested if metric.name in advice]
    judges = {judge_name(metric) for metric in requested}
    return [*lines, *judge_remarks(listed, judges)]


def judge_name(metric: Metric) -> str:
    """The judge that a metric names, without its digest; "" for the server's default."""
    return str(getattr(metric, metric.judge_parameter or "model", None) or "").partition("@")[0]


def runs_elsewhere(listed: ModelList, metric: Metric) -> bool:
    """Whether the judge of a metric runs behind a server of its own."""
    name = judge_name(metric)
    return any(
        model.numeric_class.startswith("remote") and (model.name == name or (model.is_default and not name))
        for model in listed.models
        if model.kind == "judge"
    )


def judge_remarks(listed: ModelList, judges: Collection[str]) -> list[str]:
    """Remarks of the server on these judges; "" stands for its default judge."""
    return [
        f"judge {model.name}: {remark}"
        for model in listed.models
        if model.kind == "judge" and (model.name in judges or (model.is_default and "" in judges))
        for remark in model.remarks
    ]
