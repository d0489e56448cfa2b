"""Collect scores and labels as columns. Labels may come from an evaluator, and scores from earlier runs."""

from __future__ import annotations

import itertools
import math
from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.errors import InvalidRequest
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire.results import ScoreWarning, Status
from gradewire_cli.problems import InputError, nothing_scored
from gradewire_cli.results.accuracy_tables import People
from gradewire_cli.results.error_classes import WrongVerdicts
from gradewire_cli.results.results_table import TABLE_SUFFIXES
from gradewire_cli.results.resumable_output import read_results, verdict
from gradewire_cli.results.tables import Table
from gradewire_cli.results.tallies import MetricTally
from gradewire_cli.rows.proposed_flags import ProposedFlag, escaped, proposals_of
from gradewire_stats.agreement.rows import RIGHT_FROM, JudgedRows
from gradewire_stats.consensus import LabelRule, consensus, ratings_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gradewire_cli.rows.row import Row
    from gradewire_cli.scoring.labels_file import JoinedLabels

# Only the most frequent flags are shown, because a column of free text may have as many flags as rows.
_SHOWN_FLAGS = 10
# Maximum number of proposed flags in tables. JSON documents have all.
_SHOWN_PROPOSALS = 50


def label_named(labels: Sequence[str], name: str, option: str) -> str:
    """Return the label that `name` identifies.

    `name` may be the label itself, or a metric written as in --metrics, for example smile:v1 for the label smile.

    Raises:
        InputError: No metric has this name. The message lists the labels.
    """
    if name in labels:
        return name
    try:
        written = choose_metrics(name, MetricDefaults()).labels
    except InvalidRequest:
        written = ()
    if len(written) != 1 or written[0] not in labels:
        raise InputError(f"{option} {name}: no such metric. Choose one of {', '.join(labels)}")
    return written[0]


@dataclass(slots=True)
class EvaluatorLabels:
    """Scores and verdicts of the metric that replaces annotators.

    A row counts if it has a score from this metric, and also a verdict if the metric gives verdicts.

    Attributes:
        label: The metric's label in results, or "" before the first row.
        left_out: Number of rows that do not count.
    """

    name: str
    label: str = ""
    tally: MetricTally = field(default_factory=MetricTally)
    left_out: int = 0
    _scores: array[float] = field(default_factory=lambda: array("d"))
    _verdicts: array[float] = field(default_factory=lambda: array("d"))

    def take(self, output: Mapping[str, Any]) -> bool:
        """Add an output row; return False if the row does not count."""
        results = output["scores"]
        self.label = self.label or label_named(list(results), self.name, "--against")
        result = results[self.label]
        self.tally.add(self.label, result, identifier=output["id"])
        judged = verdict(self.label, result)
        unlike_others = bool(self._scores) and (judged is None) == self.has_verdicts
        if result["score"] is None or unlike_others:
            self.left_out += 1
            return False
        self._scores.append(result["score"])
        self._verdicts.append(math.nan if judged is None else float(judged))
        return True

    @property
    def has_verdicts(self) -> bool:
        """True if the metric gives verdicts."""
        return bool(self._verdicts) and not math.isnan(self._verdicts[0])

    @property
    def last_score(self) -> float:
        """The score of the last counted row."""
        return self._scores[-1]

    def verdicts(self) -> NDArray[np.float64]:
        """Return the verdicts, float64[rows]: 1 (right), 0 (wrong) or NaN (if the metric gives no verdicts)."""
        return np.array(self._verdicts)

    def summary(self, more: str = "") -> str:
        """Return a readable line: metric identifier, `more`, and failures."""
        return self.tally.summary(self.label, f" (replaces annotators{more})")


@dataclass(slots=True, kw_only=True)
class LabelledRows:
    """Columns under construction, with one entry per labelled row.

    Attributes:
        rule: Rule that combines annotators' labels. None means the row's label, or the annotators' mean if the row has
            no label.
        against: The evaluator that replaces annotators, or None if annotators labelled the rows.
        from_file: Labels from a file of their own, or None if the rows contain the labels.
        first_unreadable: Position and value of the first unreadable label, or "" if all labels are readable.
        flags: Number of labelled rows by flag, including rows that --without-flag leaves out.
        unlabelled_flags: Number of rows without a label by flag.
        proposed: Flags that rules propose for the labelled rows. Rows keep counting, whatever is proposed.
        wrong: Verdicts that differ from annotators' labels in [0, 1].
        kept: The labelled rows with their output rows, if `keeps_rows`.
        kept_wrong: Positions in `wrong.listed` of each kept row's wrong verdicts, by metric.
        server_version: gradewire version of the server that scored the rows, or "" if scores were read from files.
    """

    rule: LabelRule | None = None
    without_flags: frozenset[str] = frozenset()
    keeps_rows: bool = False
    against: EvaluatorLabels | None = None
    from_file: JoinedLabels | None = None
    tallies: dict[str, MetricTally] = field(default_factory=dict)
    unlabelled: int = 0
    unlabelled_flags: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    first_unreadable: str = ""
    flags: Counter[str] = field(default_factory=Counter)
    flagged_out: int = 0
    proposed: list[ProposedFlag] = field(default_factory=list)
    wrong: WrongVerdicts = field(default_factory=WrongVerdicts)
    kept: list[tuple[Row, Mapping[str, Any]]] = field(default_factory=list)
    kept_wrong: list[Mapping[str, int]] = field(default_factory=list)
    server_version: str = ""
    _scores: dict[str, array[float]] = field(default_factory=dict)
    _verdicts: dict[str, array[float]] = field(default_factory=dict)
    _certain: dict[str, bytearray] = field(default_factory=dict)
    _labels: array[float] = field(default_factory=lambda: array("d"))
    _annotations: list[tuple[float | None, ...]] = field(default_factory=list)
    _words: array[float] = field(default_factory=lambda: array("d"))
    _datasets: list[str] = field(default_factory=list)
    _models: list[str] = field(default_factory=list)
    _groups: list[str] = field(default_factory=list)
    _questions: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of labelled rows."""
        return len(self._labels)

    def labelled(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield rows with a usable label, and count skipped rows by reason.

        If an evaluator replaces annotators, human labels do not matter, and `add` skips rows without the
        evaluator's score.
        """
        for row in rows if self.from_file is None else self.from_file.joined(rows):
            if self.against is not None:
                if self._has_no_flag(row):
                    yield row
            elif row.human.unreadable:
                self.unreadable += 1
                self.first_unreadable = self.first_unreadable or f"{row.position}: {row.human.unreadable}"
            elif row.human.value is None:
                self.unlabelled += 1
                self.unlabelled_flags.update(set(row.flags))
            elif self._has_no_flag(row):
                yield row

    def _has_no_flag(self, row: Row) -> bool:
        self.flags.update(set(row.flags))
        out = not self.without_flags.isdisjoint(row.flags)
        self.flagged_out += out
        return not out

    def add(self, row: Row, output: Mapping[str, Any]) -> None:
        """Add a row from `labelled` with its output row."""
        label_value, annotations = row.human.value, row.human.annotations
        own = ""
        wrong: dict[str, int] = {}
        if self.against is not None:
            if not self.against.take(output):
                return
            label_value, annotations, own = self.against.last_score, (), self.against.label
        for label, result in output["scores"].items():
            if label == own:
                continue
            self.tallies.setdefault(label, MetricTally()).add(label, result, identifier=row.id)
            judged = verdict(label, result)
            score = math.nan if result["score"] is None else result["score"]
            if row.item and judged is not None and not own and _is_wrong(label_value, called_right=judged):
                found = self.wrong.add(row.item, label, result, called_right=judged, given=row.error_class)
                wrong |= {} if found is None else {label: found}
            self._scores.setdefault(label, array("d")).append(score)
            self._verdicts.setdefault(label, array("d")).append(math.nan if judged is None else float(judged))
            certain = ScoreWarning.UNCERTAIN not in result.get("warnings", ())
            self._certain.setdefault(label, bytearray()).append(certain)
        self._labels.append(math.nan if label_value is None else label_value)
        self._annotations.append(annotations)
        self._words.append(len(str(row.item["prediction"]).split()) if row.item else math.nan)
        self._datasets.append(row.dataset)
        self._models.append(row.model)
        self._groups.append(row.group)
        self._questions.append(row.question_key)
        self.proposed += proposals_of(row)
        if self.keeps_rows:
            self.kept.append((row, output))
            self.kept_wrong.append(wrong)

    def classes(self) -> list[dict[str, str]]:
        """Return the classes of each kept row's wrong verdicts, in words, by metric."""
        texts = ({metric: self.wrong.listed[at].text for metric, at in wrong.items()} for wrong in self.kept_wrong)
        return [{metric: text for metric, text in row.items() if text} for row in texts]

    def judged(self, *, with_groups: bool = False) -> JudgedRows:
        """Return the columns as arrays.

        Raises:
            InputError: There is no readable label, the labels do not fit the rule that combines them, or there is no
                metric to compare with the evaluator.
        """
        if not self._labels and self.against is not None and any(self.against.tally.failures.values()):
            failures = self.against.tally.failures
            if {status for status, number in failures.items() if number} == {Status.EMPTY_PREDICTION}:
                blank = failures[Status.EMPTY_PREDICTION]
                raise InputError(f"--against {self.against.name}: all {blank} answers are blank, so none has a score")
            raise nothing_scored(f"no row has a score for {self.against.name}", failures)
        if self._labels and not self._scores and self.against is not None:
            raise InputError(f"--against {self.against.name}: the scores have no other metric to compare with")
        if not self._labels and self.unreadable:
            raise InputError(f"{self.unreadable_labels}, and no row has a readable label. Use --map label=COLUMN")
        if not self._labels and self.flagged_out:
            raise InputError(f"--without-flag leaves no rows, because all {self.flagged_out} have one of these flags")
        if not self._labels and self.from_file is not None:
            raise InputError(f"no row has a label in {self.from_file.path}")
        if not self._labels:
            raise InputError("no row has a label (columns label, human_score, labels). Use --map label=COLUMN")
        return JudgedRows(
            scores={label: np.array(column) for label, column in self._scores.items()},
            verdicts={label: np.array(column) for label, column in self._verdicts.items()},
            labels=self._agreed(),
            datasets=self._datasets,
            models=self._models,
            questions=self._questions,
            groups=self._groups if with_groups else (),
        )

    def judged_by_verdict(self, *, with_groups: bool = False) -> JudgedRows:
        """Return `judged`, but with the evaluator's verdicts as labels if the evaluator gives verdicts."""
        rows = self.judged(with_groups=with_groups)
        if self.against is None or not self.against.has_verdicts:
            return rows
        return replace(rows, labels=self.against.verdicts())

    def certain(self, label: str) -> NDArray[np.bool_]:
        """Return bool[rows], False if the metric marks its verdict UNCERTAIN."""
        return np.frombuffer(bytes(self._certain[label]), dtype=np.bool_)

    def ratings(self) -> NDArray[np.float64]:
        """Return each row's labels by annotator, float64[rows, annotators], NaN for a missing label."""
        try:
            return ratings_of([_numbers(row) for row in self._annotations])
        except ValueError as error:
            raise InputError(f"labels: {error}") from error

    def lengths_words(self) -> NDArray[np.float64]:
        """Return the number of words in each prediction, float64[rows], NaN if the row is unreadable."""
        return np.array(self._words)

    @property
    def people(self) -> People:
        """The words that tables use for the annotators or the evaluator."""
        return People() if self.against is None else People.evaluator(self.against.label)

    @property
    def unreadable_labels(self) -> str:
        """A sentence on the number of unreadable labels, with the first such label."""
        first = f"first at {self.first_unreadable}; --label-map gives words a value"
        return f"{self.unreadable} rows have an unreadable label ({first})"

    @property
    def alone(self) -> int:
        """Number of rows that keep their own label despite --labels, because they list no annotators."""
        return sum(not annotations for annotations in self._annotations) if self.rule else 0

    def left_out(self) -> list[str]:
        """Return sentences on left-out rows and statistics, with reasons."""
        sentences = []
        if self.against is not None and self.against.left_out:
            sentences.append(
                f"left out {self.against.left_out} rows without a score or verdict from {self.against.label}"
            )
        if self.unlabelled:
            flagged = f" (flagged: {_counted(self.unlabelled_flags)})" if self.unlabelled_flags else ""
            sentences.append(f"left out {self.unlabelled} rows without a label{flagged}")
        if self.from_file is not None and self.from_file.without_row:
            sentences.append(f"left out {self.from_file.without_row} labels in {self.from_file.path} without a row")
        if self.from_file is not None and self.from_file.adds and not self.from_file.used:
            sentences.append(f"no row has a label in {self.from_file.path}, so it changes nothing")
        if self.unreadable:
            sentences.append(f"{self.unreadable_labels} and are left out")
        if self.flags:
            sentences.append(f"flagged rows: {_counted(self.flags)}; {self.flagged_out or 'none'} of them are left out")
        known = [label for label in self._labels if not math.isnan(label)]
        if self.against is None and known and not (min(known) >= 0 and max(known) <= 1):
            sentences.append(
                f"labels range from {min(known):g} to {max(known):g}, so AUC and the statistics of verdicts are "
                "missing. Use --label-map to map labels to numbers in [0, 1], where 0.5 or more counts as right"
            )
        if self.alone:
            sentences.append(f"{self.alone} rows have a single label, so --labels {self.rule} keeps this label")
        return sentences

    def proposal_notes(self) -> list[str]:
        """Return a sentence on the flags that rules propose, or [] if there are none."""
        if not self.proposed:
            return []
        counted = _counted(Counter(each.flag for each in self.proposed))
        check = "Check the rows under --all-tables or --json, and write the flags that are true into the column flags"
        return [f"rules propose flags ({counted}), and no row is left out for them. {check}"]

    def proposal_tables(self) -> list[Table]:
        """Return a table with a row for each proposed flag, at most 50, or [] if there are none."""
        if not self.proposed:
            return []
        shown = self.proposed[:_SHOWN_PROPOSALS]
        part = "" if len(shown) == len(self.proposed) else f", the first {len(shown)} of {len(self.proposed)}"
        rows = [[escaped(each.id), each.flag, each.reason] for each in shown]
        return [Table(f"Proposed flags{part}", ["row", "proposed flag", "reason"], rows)]

    def _agreed(self) -> NDArray[np.float64]:
        labels = np.array(self._labels)
        if self.rule is None:
            return labels
        try:
            agreed = consensus(ratings_of([_numbers(row) for row in self._annotations]), self.rule)
        except ValueError as error:
            raise InputError(f"--labels {self.rule}: {error}") from error
        return np.where(np.isnan(agreed), labels, agreed)


def _counted(flags: Counter[str]) -> str:
    most = sorted(flags.most_common(_SHOWN_FLAGS))
    counts = ", ".join(f"{flag if flag.isprintable() else ascii(flag)} {count}" for flag, count in most)
    return f"{counts} and {len(flags) - len(most)} more flags" if len(flags) > len(most) else counts


def _is_wrong(label: float | None, *, called_right: bool) -> bool:
    return label is not None and 0 <= label <= 1 and (label >= RIGHT_FROM) != called_right


def _numbers(annotations: Sequence[float | None]) -> list[float]:
    return [math.nan if label is None else label for label in annotations]


def with_stored_scores(rows: Iterator[Row], paths: Sequence[Path]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Join rows with earlier outputs by row index, and combine the metrics of several outputs.

    Raises:
        InputError: An output is missing, is too short, is not JSONL from `gradewire score`, belongs to other rows, or
            repeats a metric from another output.
    """
    copies = itertools.tee(rows, len(paths))
    for joined in zip(*(_joined(copy, path) for copy, path in zip(copies, paths, strict=True)), strict=True):
        row, first = joined[0]
        scores: dict[str, Any] = {}
        for path, (_, output) in zip(paths, joined, strict=True):
            if repeated := scores.keys() & output["scores"].keys():
                raise InputError(
                    f"{path} and another --scores file both have {min(repeated)}. Leave out one of these files"
                )
            scores |= output["scores"]
        yield row, {**first, "scores": scores}


def _joined(rows: Iterator[Row], path: Path) -> Iterator[tuple[Row, dict[str, Any]]]:
    if not path.is_file():
        raise InputError(f"{path} does not exist")
    if path.suffix.lower() in TABLE_SUFFIXES:
        raise InputError(f"{path}: --scores reads JSONL, not tables. Run: gradewire score --out FILE.jsonl")
    results = read_results(path)
    output: dict[str, Any] = {"index": -1}
    labels: list[str] | None = None
    for row in rows:
        while output["index"] < row.index:
            _, output = next(results, (0, {"index": math.inf}))
        if output["index"] != row.index:
            raise InputError(f"{path} has no scores for {row.position}. Complete it with gradewire score --resume")
        if not row.is_source_of(output):
            raise InputError(f"{path} was made from a different row at {row.position}. Score the file again")
        labels = labels or list(output["scores"])
        if list(output["scores"]) != labels:
            raise InputError(f"{path}: the metrics at {row.position} differ from the first row's. Score the file again")
        yield row, output
