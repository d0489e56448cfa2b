"""What a run was made with, and in what two runs differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from gradewire.cli.output.metric_lines import line_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire.cli.choosing.pairs import Answer
    from gradewire.cli.compare.input.collected import Collected
    from gradewire.cli.compare.input.sides import Side

INPUTS: Final = "inputs"
"""In what is known of a run: its input files, a text each. Of these the ones that differ are told, and no others."""
PARAMETERS: Final = "parameters"
"""In what is known of a run: further options by name."""
_MOST_INPUTS: Final = 4


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
        run: What its manifest or summary says of the run: versions, where it was scored, inputs, parameters, notes.
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
            if name == PARAMETERS:
                yield from ((f"parameter {option}", told) for option, told in value.items())
            elif name != INPUTS:
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
    """The facts in which two manifests differ, in the order of the first that has them; at last the inputs."""
    before, after = dict(baseline.facts()), dict(candidate.facts())
    found = [
        ManifestDifference(name, before.get(name, ""), after.get(name, ""))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
    inputs = [list(side.run.get(INPUTS, ())) for side in (baseline, candidate)]
    own = [_listed([each for each in mine if each not in others]) for mine, others in (inputs, inputs[::-1])]
    return [*found, ManifestDifference(INPUTS, *own)] if any(own) else found


def _listed(inputs: Sequence[str]) -> str:
    more = len(inputs) - _MOST_INPUTS
    return ", ".join(inputs[:_MOST_INPUTS]) + (f" and {more} more" if more > 0 else "")


def unlike_metrics(baseline: SideManifest, candidate: SideManifest) -> list[str]:
    """Labels under which the sides were scored by different definitions, so that scores do not compare."""
    shared = [label for label in baseline.lines if label in candidate.lines]
    return [label for label in shared if baseline.lines[label] != candidate.lines[label]]
