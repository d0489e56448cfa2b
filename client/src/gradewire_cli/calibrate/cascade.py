"""`gradewire calibrate --metric auto`: fits the bands of the cascade, and measures them on other questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.metrics import Auto, Correctness
from gradewire.metrics.choice import format_metric_line, parse_metric_line
from gradewire_cli.calibrate.rows import LabelledScores, labelled_scores
from gradewire_cli.problems import InputError
from gradewire_cli.results.tables import Table, number
from gradewire_stats.agreement.statistics import MissingScipyError
from gradewire_stats.calibration.cascade import CascadeFit, CascadeRows, HeldRisk, JudgeGain, fit_cascade, held_risks
from gradewire_stats.calibration.labelled_rows import Half, half_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradewire_cli.scoring.labelled_rows import LabelledRows


HeldOut = Mapping[str, "tuple[HeldRisk, ...]"]
"""Risks of fits on other questions: every one, by the rows that they were made on and measured on, in words."""
VERSION = 1
_EXACT = "exact_match"
_CHEAP = Correctness(confidence=0.5)
"""At this confidence UNCERTAIN marks denials alone, as the metric `auto` reads it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredCascade:
    """Labelled rows with what all three metrics say of them.

    Attributes:
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
        """Return rows that are fitted on: all, or those of a half of the questions."""
        return len(self.rows if half is None else self.rows.half(half))


def cascade_metrics(metric: Auto) -> str:
    """Return the metrics whose results a fit of `auto` is made of."""
    return f"{_EXACT},{format_metric_line(_CHEAP)},{_judge_label(metric)}"


def scored_cascade(labelled: LabelledRows, metric: Auto) -> ScoredCascade:
    """Read the rows that have a probability; those that the judge did not grade count for the bands alone."""
    cheap, _ = labelled_scores(labelled, _CHEAP, half=None)
    label = _judge_label(metric)
    if missing := {_EXACT, label} - labelled.tallies.keys():
        raise InputError(f"the scores have no {' and no '.join(sorted(missing))}: score with {cascade_metrics(metric)}")
    column = next(name for name in labelled.tallies if name.startswith(Correctness.name))
    outputs = [output["scores"] for _, output in labelled.kept if output["scores"][column]["score"] is not None]
    judged = [scores[label] for scores in outputs]
    first = next((result for result in judged if result["score"] is not None), None)
    if first is None:
        reasons = ", ".join(f"{status} {count}" for status, count in labelled.tallies[label].failures.items())
        raise InputError(f"no row has a score of {label}: {reasons}")
    line = parse_metric_line(first["line"])
    judge, prompt = str(getattr(line, "model", "")), str(getattr(line, "prompt", ""))
    rows = CascadeRows(
        exact=np.array([scores[_EXACT]["score"] == 1 for scores in outputs], dtype=np.bool_),
        probability=cheap.scores,
        denied=np.array(["UNCERTAIN" in result.get("warnings", ()) for result in cheap.results], dtype=np.bool_),
        right=cheap.right,
        judge_verdicts=_numbers(judged, "correct"),
        judge_scores=_numbers(judged, "score"),
        questions=cheap.questions,
    )
    model, _, digest = judge.partition("@")
    provenance = {
        "metric_version": VERSION,
        "correctness_fit": cheap.results[0]["fit"],
        "judge": metric.judge or "lave",
        "judge_model": model,
        "judge_digest": digest,
        "prompt_digest": prompt.partition("@")[2],
    }
    parameters = (
        ("caption", str(bool(metric.caption)).lower()),
        ("judge", metric.judge or "lave"),
        ("judge_model", model),
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
        unjudged=Counter(result["status"] for result in judged if result["score"] is None),
        digests=digests,
    )


def fitted_cascade(  # noqa: PLR0913 - what is fitted, on what, and three numbers
    scored: ScoredCascade, provenance: Mapping[str, Any], *, half: Half | None, delta: float, resamples: int, seed: int
) -> tuple[CascadeFit, HeldOut]:
    """Fit the bands and measure them on questions that were not fitted on.

    With a half named, the fit is made there and measured on the other one. Without, it is made on all rows, and fits
    on either half are measured on the other.

    Raises:
        InputError: A half is empty, or scipy is not installed.
    """
    halves = {"a": scored.rows.half("a"), "b": scored.rows.half("b")}
    if half is not None and not all(map(len, halves.values())):
        raise InputError(f"--half {half}: all rows belong to one half of the questions; leave it out")

    def fit(rows: CascadeRows) -> CascadeFit:
        return fit_cascade(rows, provenance, delta=delta, resamples=resamples, seed=seed)

    try:
        fits = {name: fit(rows) for name, rows in halves.items() if len(rows) and half in {None, name}}
        other = {"a": "b", "b": "a"}
        held = {
            f"fitted on half {name}, read on half {other[name]}": held_risks(found, rows)
            for name, found in fits.items()
            if len(rows := halves[other[name]])
        }
        return (fits[half] if half is not None else fit(scored.rows)), held
    except MissingScipyError as error:
        raise InputError(f"fitting needs scipy: {error}") from error


def cascade_values(fit: CascadeFit, held: HeldOut) -> tuple[tuple[str, float], ...]:
    """Return what the stored calibration tells people of its worth."""
    wide = fit.gains[-1]
    found = {"judge_accuracy": wide.judge, "cheap_accuracy": wide.cheap, "judged_rows": float(wide.rows)}
    for risk in next(iter(held.values()), ()):
        found[f"wrong_at_risk_{risk.risk:g}_held_out".replace(".", "_")] = risk.wrong_share
    return tuple((name, value) for name, value in found.items() if math.isfinite(value))


def _judge_label(metric: Auto) -> str:
    return f"{metric.judge or 'lave'}{'?caption=true' if metric.caption else ''}"


def _numbers(results: Sequence[Mapping[str, Any]], name: str) -> NDArray[np.float64]:
    """Return float64[rows]; NaN where a result has no score, or not this value."""
    values = (result.get(name) if result["score"] is not None else None for result in results)
    return np.array([math.nan if value is None else float(value) for value in values])


_SHOWN_RISKS = (0.01, 0.02, 0.05, 0.1, 0.2)


def cascade_tables(fit: CascadeFit, held: HeldOut) -> Iterator[Table]:
    """Yield the bands of the usual risks, how they held on other questions, and the judge beside the cheap verdicts."""
    yield Table(
        f"Bands, each with the probability {1 - fit.delta:g}",
        ["risk", "accepted from confidence", "accepted, one of each question", "wrong of them"],
        [
            [f"{each.risk:g}", _confidence(each.accepts_from), str(each.accepted), str(each.wrong)]
            for each in fit.risks
            if each.risk in _SHOWN_RISKS
        ],
    )
    for on, risks in held.items():
        yield Table(
            f"How it held: {on}",
            ["risk", "rows", "accepted", "wrong of them", "share", "held", "judge asked", "accuracy, all rows"],
            [
                [
                    *(f"{each.risk:g}", str(each.rows), str(each.accepted), str(each.wrong), number(each.wrong_share)),
                    *("yes" if each.held else "no", str(each.judged), number(each.accuracy)),
                ]
                for each in risks
                if each.risk in _SHOWN_RISKS
            ],
        )
    yield Table(
        "The judge beside exact_match and correctness, on the least certain rows",
        ["share of rows", "judged rows", "accuracy without it", "of the judge", "judge minus, interval", "adds"],
        [_gain(each) for each in fit.gains],
    )


def judge_line(fit: CascadeFit, judge: str) -> str:
    """Return where the judge is asked, in a sentence."""
    if fit.judged_below is None:
        return (
            f"{judge} is refused: on no share of the least certain rows does the interval of what it adds lie above 0, "
            "so auto never lets it decide"
        )
    share = max(each.share for each in fit.gains if each.adds)
    return (
        f"{judge} is asked below the confidence {_confidence(fit.judged_below)}: the least certain {share:.0%} of rows"
    )


def cascade_warnings(scored: ScoredCascade, told: Iterable[str]) -> Iterator[str]:
    """Yield warnings about the rows, a sentence each; `told` are the lines of what was fitted for the encoder."""
    lines = [line for line in told if line.startswith("fitted for correctness")]
    for name, digest in scored.digests.items():
        if digest and any(digest[:12] in line for line in lines):
            way_out = {"half a of these rows": "--half b", "half b of these rows": "--half a"}.get(name, "others")
            yield (
                f"warning: correctness was fitted on {name}, so its probabilities look surer there than they are "
                f"elsewhere: fit auto on {way_out}, and believe no figure that is read there"
            )
    if scored.unjudged:
        reasons = ", ".join(f"{status} {count}" for status, count in sorted(scored.unjudged.items()))
        yield f"warning: rows without a judge's verdict count for the bands alone: {reasons}"
    if scored.cheap.failed:
        yield f"warning: {scored.cheap.failed} rows have no probability and were left out"


def _gain(gain: JudgeGain) -> list[str]:
    between = f"{gain.judge - gain.cheap:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
    if math.isnan(gain.low):
        between = "too few rows"
    adds = "yes" if gain.adds else "no"
    return [f"{gain.share:.0%}", str(gain.rows), number(gain.cheap), number(gain.judge), between, adds]


def _confidence(value: float) -> str:
    if math.isinf(value):
        return "nothing"
    if value > 2:
        return "of any kind"
    return "exact matches" if value == 2 else f"{value:.4f}"
