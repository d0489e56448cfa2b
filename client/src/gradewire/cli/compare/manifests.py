"""What a run was made with, and in what two runs differ."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gradewire.cli.output.metric_lines import line_parts
from gradewire.cli.problems import InputError, named_errors
from gradewire.manifests import ManifestError, manifest_path, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire.cli.choosing.pairs import Answer
    from gradewire.cli.compare.input.collected import Collected
    from gradewire.cli.compare.input.sides import Side
    from gradewire.manifests import RunManifest

_LEFT_OUT = "what it says of the run is left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideManifest:
    """What one side was made with.

    Attributes:
        files: Its files; empty where one file has the rows of all sides.
        rows: Its rows.
        words_per_answer: Mean number of words between blanks, of the answers whose text is there; None without any.
        lines: What reproduces each metric, by label.
        statuses: Scored rows by label and status.
        warnings: Scored rows by label and warning.
        run: What its summary says of the run: versions, where it was scored, notes.
    """

    files: Sequence[str]
    rows: int
    words_per_answer: float | None
    lines: Mapping[str, str]
    statuses: Mapping[str, Mapping[str, int]]
    warnings: Mapping[str, Mapping[str, int]]
    run: Mapping[str, Any] = field(default_factory=dict)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Single facts by what they are called."""
        if self.files:
            yield "file", ", ".join(self.files)
        yield "rows", str(self.rows)
        if self.words_per_answer is not None:
            yield "words an answer", f"{self.words_per_answer:.1f}"
        for label, line in self.lines.items():
            yield from ((f"{label}: {name}", value) for name, value in line_parts(line).items() if value)
        for kind in (self.statuses, self.warnings):
            for label, counts in kind.items():
                yield from ((f"{label}: {name}", str(count)) for name, count in sorted(counts.items()))
        for name, value in self.run.items():
            yield name.replace("_", " "), "; ".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True, slots=True)
class ManifestDifference:
    """A fact in which two sides differ; "" where one does not have it."""

    fact: str
    baseline: str
    candidate: str


def manifest_of(side: Side, collected: Collected, run: Mapping[str, Any]) -> SideManifest:
    """The manifest of a side, counted from its rows; `run` is what is known of how they were scored."""
    answers: list[Answer] = [collected.answer(row) for row in side.rows]
    statuses: dict[str, Counter[str]] = {}
    warnings: dict[str, Counter[str]] = {}
    for answer in answers:
        for label, result in answer.results.items():
            statuses.setdefault(label, Counter())[result.status] += 1
            warnings.setdefault(label, Counter()).update(result.warnings)
    words = [len(text.split()) for answer in answers if (text := answer.text("prediction"))]
    return SideManifest(
        files=side.files,
        rows=len(side.rows),
        words_per_answer=fmean(words) if words else None,
        lines=collected.lines_of(side.rows[0]),
        statuses=statuses,
        warnings=warnings,
        run=run,
    )


def differences(baseline: SideManifest, candidate: SideManifest) -> list[ManifestDifference]:
    """The facts in which two manifests differ, in the order of the first that has them."""
    before, after = dict(baseline.facts()), dict(candidate.facts())
    return [
        ManifestDifference(name, before.get(name, ""), after.get(name, ""))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def unlike_metrics(baseline: SideManifest, candidate: SideManifest) -> list[str]:
    """Labels under which the sides were scored by different definitions, so that scores do not compare."""
    shared = [label for label in baseline.lines if label in candidate.lines]
    return [label for label in shared if baseline.lines[label] != candidate.lines[label]]


def runs_beside(
    lines_by_output: Mapping[str, Mapping[str, str]], rows_by_output: Mapping[str, int]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What the manifests beside outputs say of the runs that wrote them, and notes where one cannot be used.

    Args:
        lines_by_output: Outputs of `gradewire score` and `gradewire bulk`, with what reproduces the metrics of each.
        rows_by_output: How many rows each has; without those whose number is not known.
    """
    runs: dict[str, dict[str, Any]] = {}
    missing, notes = [], []
    for output, lines in lines_by_output.items():
        runs[output] = {}
        path = manifest_path(Path(output))
        if not path.exists():
            missing.append(f"{output} has no manifest ({path.name}), as one of a run that did not end")
            continue
        try:
            manifest = read_manifest(path)
        except (ManifestError, OSError) as error:
            notes.append(f"{error}; {_LEFT_OUT}")
            continue
        if manifest.metrics != dict(lines):
            notes.append(f"{path} is not that of {output}, whose metrics are others; {_LEFT_OUT}")
        elif (rows := rows_by_output.get(output, manifest.counts.rows)) != manifest.counts.rows:
            notes.append(f"{path} is of {manifest.counts.rows} rows, and {output} has {rows}; {_LEFT_OUT}")
        else:
            runs[output] = _run_of(manifest)
    # Where no output has one there is nothing that one side lacks.
    return runs, notes + ([f"{lack}; {_LEFT_OUT}" for lack in missing] if any(runs.values()) else [])


def _run_of(manifest: RunManifest) -> dict[str, Any]:
    cost = None if manifest.cost is None else manifest.cost.price
    told = {
        "gradewire_version": manifest.versions.gradewire,
        "server_version": manifest.versions.server,
        "protocol": manifest.versions.protocol,
        "place": manifest.place,
        "processor": manifest.machine.processor,
        "judge_price": cost,
        "notes": list(manifest.notes),
    }
    return {name: value for name, value in told.items() if value}


def read_summary(path: Path, output: str, lines: Mapping[str, str]) -> dict[str, Any]:
    """What `gradewire score --summary-json`, or a manifest that stands elsewhere, says of the run that wrote `output`.

    Args:
        path: The summary or manifest.
        output: For messages.
        lines: What reproduces the metrics of that output.

    Raises:
        InputError: The file is neither, or that of another output.
    """
    with named_errors(path):
        text = path.read_bytes()
    try:
        document = json.loads(text)
        if "format" in document:
            manifest = read_manifest(path)
            told, there = _run_of(manifest), dict(manifest.metrics)
        else:
            told, there = _summarized(document)
    except ManifestError as error:
        raise InputError(f"--summary {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"--summary {path}: is no summary of gradewire score --summary-json, and no manifest"
        ) from error
    if other := [label for label in lines if there.get(label) != lines[label]]:
        raise InputError(
            f"--summary {path}: is not that of {output}: {other[0]} is {there.get(other[0])} there and "
            f"{lines[other[0]]} in the output; give summaries in the order of the files"
        )
    return told


def _summarized(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What a summary says of its run, and its lines by label."""
    run, metrics = document["run"], document["metrics"]
    told = {name: run[name] for name in ("server_version", "place", "notes") if run.get(name)}
    there = {label: found["line"] for label, found in metrics.items()}
    return {"gradewire_version": document["gradewire_version"], **told}, there
