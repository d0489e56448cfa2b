"""`gradewire calibrate --metric auto`: fits the bands of the cascade, and measures them on other questions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.agreement.fitting.cascade.rows import CascadeRows
from gradewire.agreement.fitting.halves import half_of
from gradewire.agreement.optional_imports import MissingScipyError
from gradewire.cli.calibrate.rows import labelled_scores
from gradewire.cli.problems import InputError
from gradewire.metric_types import Correctness
from gradewire.metric_types.line import format_metric_line, parse_metric_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.agreement.fitting.cascade.figures import HeldRisk
    from gradewire.agreement.fitting.cascade.fit import CascadeFit
    from gradewire.agreement.fitting.halves import Half
    from gradewire.cli.calibrate.rows import LabelledScores
    from gradewire.cli.run.labelled_rows import LabelledRows
    from gradewire.metric_types import Auto

VERSION = 1
_EXACT = "exact_match"
_CHEAP = Correctness(confidence=0.5)
"""At this confidence UNCERTAIN marks denials alone, as the metric `auto` reads it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredCascade:
    """Labelled rows with what all three metrics say of them.

    Attributes:
        rows: As the fit takes them.
        cheap: The same rows with the results of `correctness`.
        encoder: NAME@DIGEST, 12 digits.
        provenance: What the fit says of itself: of `auto`, of `correctness`, judge and prompt.
        parameters: What the fit holds for, as a metric line writes it.
        unjudged: Rows that the judge did not grade, by status.
        digests: SHA-256 of all rows and of either half, as a fit of `correctness` names what it was made on.
    """

    rows: CascadeRows
    cheap: LabelledScores
    encoder: str
    provenance: Mapping[str, Any]
    parameters: tuple[tuple[str, str], ...]
    unjudged: Mapping[str, int]
    digests: Mapping[str, str]

    def count_of(self, half: Half | None) -> int:
        """Rows that are fitted on: all, or those of a half of the questions."""
        return len(self.rows if half is None else self.rows.half(half))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """How a fit on other questions held.

    Attributes:
        on: The rows that it is measured on, in words.
        risks: Of every risk.
    """

    on: str
    risks: tuple[HeldRisk, ...]


def asked_metrics(metric: Auto) -> str:
    """The metrics whose results a fit of `auto` is made of."""
    return f"{_EXACT},{format_metric_line(_CHEAP)},{_judge_label(metric)}"


def scored_cascade(labelled: LabelledRows, metric: Auto) -> ScoredCascade:
    """Reads the rows that have a probability; those that the judge did not grade count for the bands alone.

    Raises:
        InputError: A metric is not among the scores, or there is no row, or no judge's answer.
    """
    cheap, _ = labelled_scores(labelled, _CHEAP, half=None)
    label = _judge_label(metric)
    if missing := {_EXACT, label} - labelled.tallies.keys():
        raise InputError(f"the scores have no {' and no '.join(sorted(missing))}: score with {asked_metrics(metric)}")
    column = next(name for name in labelled.tallies if name.startswith(Correctness.name))
    outputs = [output["scores"] for _, output in labelled.kept if output["scores"][column]["score"] is not None]
    judged = [scores[label] for scores in outputs]
    first = next((result for result in judged if result["score"] is not None), None)
    if first is None:
        reasons = ", ".join(f"{status} {count}" for status, count in labelled.tallies[label].failures.items())
        raise InputError(f"no row has a score of {label}: {reasons}")
    line = parse_metric_line(first["line"])
    judge, prompt = str(getattr(line, "model", "")), str(getattr(line, "prompt", ""))
    unjudged: dict[str, int] = {}
    for result in judged:
        if result["score"] is None:
            unjudged[result["status"]] = unjudged.get(result["status"], 0) + 1
    rows = CascadeRows.of(
        exact=np.array([scores[_EXACT]["score"] == 1 for scores in outputs], dtype=np.bool_),
        probability=cheap.scores,
        denied=np.array(["UNCERTAIN" in result.get("warnings", ()) for result in cheap.results], dtype=np.bool_),
        right=cheap.right,
        judge_verdicts=np.array([_number(result.get("correct"), result) for result in judged]),
        judge_scores=np.array([_number(result["score"], result) for result in judged]),
        questions=cheap.questions,
    )
    provenance = {
        "metric_version": VERSION,
        "correctness_fit": cheap.results[0]["fit"],
        "judge": metric.judge or "lave",
        "judge_model": judge.partition("@")[0],
        "judge_digest": judge.partition("@")[2],
        "prompt_digest": prompt.partition("@")[2],
    }
    parameters = (
        ("caption", str(bool(metric.caption)).lower()),
        ("judge", metric.judge or "lave"),
        ("judge_model", judge.partition("@")[0]),
    )
    encoder = str(getattr(parse_metric_line(cheap.line), "model", ""))
    digests = {"these very rows": cheap.sha256}
    if len({half_of(question) for question in cheap.questions}) > 1:
        one, other = labelled_scores(labelled, _CHEAP, half="a")
        digests |= {"half a of these rows": one.sha256, "half b of these rows": other.sha256 if other else ""}
    return ScoredCascade(
        rows=rows,
        cheap=cheap,
        encoder=encoder,
        provenance=provenance,
        parameters=parameters,
        unjudged=unjudged,
        digests=digests,
    )


def fitted_cascade(  # noqa: PLR0913 - what is fitted, on what, and three numbers
    scored: ScoredCascade, provenance: Mapping[str, Any], *, half: Half | None, delta: float, resamples: int, seed: int
) -> tuple[CascadeFit, tuple[HeldOut, ...]]:
    """Fits the bands and measures them on questions that were not fitted on.

    With a half named, the fit is made there and measured on the other one. Without, it is made on all rows, and fits
    on either half are measured on the other.

    Raises:
        InputError: A half is empty, or scipy is not installed.
    """
    from gradewire.agreement.fitting.cascade.figures import held_risks  # noqa: PLC0415 - as above
    from gradewire.agreement.fitting.cascade.fit import fit_cascade  # noqa: PLC0415 - loads scipy, after the scores

    halves = {"a": scored.rows.half("a"), "b": scored.rows.half("b")}
    if half is not None and not all(map(len, halves.values())):
        raise InputError(f"--half {half}: all rows belong to one half of the questions; leave it out")

    def fit(rows: CascadeRows) -> CascadeFit:
        return fit_cascade(rows, provenance, delta=delta, resamples=resamples, seed=seed)

    try:
        fits = {name: fit(rows) for name, rows in halves.items() if len(rows) and half in {None, name}}
        other = {"a": "b", "b": "a"}
        held = [
            HeldOut(on=f"fitted on half {name}, read on half {other[name]}", risks=held_risks(found, rows))
            for name, found in fits.items()
            if len(rows := halves[other[name]])
        ]
        return (fits[half] if half is not None else fit(scored.rows)), tuple(held)
    except MissingScipyError as error:
        raise InputError(f"fitting needs scipy: {error}") from error


def cascade_figures(fit: CascadeFit, held: tuple[HeldOut, ...]) -> tuple[tuple[str, float], ...]:
    """What the stored calibration tells people of its worth."""
    wide = fit.gains[-1]
    found = {"judge_accuracy": wide.judge, "cheap_accuracy": wide.cheap, "judged_rows": float(wide.rows)}
    for each in held[:1]:
        found |= {f"wrong_at_risk_{risk.risk:g}_held_out".replace(".", "_"): risk.wrong_share for risk in each.risks}
    return tuple((name, value) for name, value in found.items() if math.isfinite(value))


def _judge_label(metric: Auto) -> str:
    return f"{metric.judge or 'lave'}{'?caption=true' if metric.caption else ''}"


def _number(value: object, result: Mapping[str, Any]) -> float:
    return math.nan if result["score"] is None or value is None else float(value)  # type: ignore[arg-type]
