"""`gradewire calibrate --metric auto`: fit the cascade's confidence bands, and measure them on held-out questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.metrics import Auto, Correctness
from gradewire.metrics.choice import format_metric_line, parse_metric_line
from gradewire_cli.calibrate.rows import LabelledScores, labelled_scores, no_score
from gradewire_cli.lazy_commands import server_module
from gradewire_cli.problems import InputError
from gradewire_proto.wire_rules import NO_GRADER
from gradewire_stats import MissingScipyError
from gradewire_stats.calibration.cascade import CascadeFit, CascadeRows, HeldRisk, fit_cascade, held_risks
from gradewire_stats.calibration.labelled_rows import Half, half_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradewire_cli.rows.row import Row
    from gradewire_cli.scoring.labelled_rows import LabelledRows


HeldOut = Mapping[str, "tuple[HeldRisk, ...]"]
"""Risks on held-out questions, by a title such as "fitted on half a, measured on half b"."""
VERSION = 1
_EXACT = "exact_match"
_CHEAP = Correctness(confidence=0.5, grader=NO_GRADER)
"""The metric as `auto` asks it: without a grader, and UNCERTAIN only where a rule or a doubt finds something."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredCascade:
    """Labelled rows with the results of exact_match, correctness and a judge.

    Attributes:
        encoder: NAME@DIGEST, with the digest's first 12 digits.
        provenance: The version of `auto`, the fit of `correctness`, the judge and the prompt.
        unjudged: Number of rows without a judge's score, by status.
        digests: SHA-256 of all rows and of each half. A fit of `correctness` on the same rows contains the same digest.
    """

    rows: CascadeRows
    cheap: LabelledScores
    encoder: str
    provenance: Mapping[str, Any]
    parameters: tuple[tuple[str, str], ...]
    unjudged: Mapping[str, int]
    digests: Mapping[str, str]

    def count_of(self, half: Half | None) -> int:
        """Return the number of rows to fit on: all rows, or the rows in one half of the questions."""
        return len(self.rows if half is None else self.rows.half(half))


def cascade_metrics(metric: Auto) -> str:
    """Return the comma-separated metrics that a fit of `auto` needs."""
    return f"{_EXACT},{format_metric_line(_CHEAP)},{_judge_label(metric)}"


def scored_cascade(labelled: LabelledRows, metric: Auto) -> ScoredCascade:
    """Return the rows that have a probability. Rows without a judge's score count only for the bands.

    Raises:
        InputError: The scores lack a metric, or no row has a probability.
    """
    cheap, _ = labelled_scores(labelled, _CHEAP, half=None)
    label = _judge_label(metric)
    if missing := {_EXACT, label} - labelled.tallies.keys():
        raise InputError(
            f"the scores lack {' and '.join(sorted(missing))}. Score with --metrics '{cascade_metrics(metric)}'"
        )
    column = next(name for name in labelled.tallies if name.startswith(Correctness.name))
    kept = [(row, output["scores"]) for row, output in labelled.kept if output["scores"][column]["score"] is not None]
    outputs = [scores for _, scores in kept]
    judged = [scores[label] for scores in outputs]
    first = next((result for result in judged if result["score"] is not None), None)
    if first is None:
        raise no_score(label, labelled)
    line = parse_metric_line(first["line"])
    judge, prompt = str(getattr(line, "model", "")), str(getattr(line, "prompt", ""))
    rows = CascadeRows(
        exact=np.array([_is_literal(row, scores[_EXACT]) for row, scores in kept], dtype=np.bool_),
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


def fitted_cascade(  # noqa: PLR0913 - rows, provenance and four settings
    scored: ScoredCascade, provenance: Mapping[str, Any], *, half: Half | None, delta: float, resamples: int, seed: int
) -> tuple[CascadeFit, HeldOut]:
    """Fit the bands and measure them on held-out questions.

    With `half`, fit on this half of the questions and measure on the other half. Without `half`, fit on all rows, and
    measure on each half with a separate fit on the other half.

    Raises:
        InputError: A half is empty, or scipy is not installed.
    """
    halves = {"a": scored.rows.half("a"), "b": scored.rows.half("b")}
    if half is not None and not all(map(len, halves.values())):
        raise InputError(f"--fit-half {half}: all rows belong to one half of the questions. Leave out --fit-half")

    def fit(rows: CascadeRows) -> CascadeFit:
        return fit_cascade(rows, provenance, delta=delta, resamples=resamples, seed=seed)

    try:
        fits = {name: fit(rows) for name, rows in halves.items() if len(rows) and half in {None, name}}
        other = {"a": "b", "b": "a"}
        held = {
            f"fitted on half {name}, measured on half {other[name]}": held_risks(found, rows)
            for name, found in fits.items()
            if len(rows := halves[other[name]])
        }
        return (fits[half] if half is not None else fit(scored.rows)), held
    except MissingScipyError as error:
        raise InputError(f"{error}") from error


def cascade_values(fit: CascadeFit, held: HeldOut) -> tuple[tuple[str, float], ...]:
    """Return the quality statistics to store with a calibration."""
    wide = fit.gains[-1]
    found = {"judge_accuracy": wide.judge, "cheap_accuracy": wide.cheap, "judged_rows": float(wide.rows)}
    for risk in next(iter(held.values()), ()):
        found[f"wrong_at_risk_{risk.risk:g}_held_out".replace(".", "_")] = risk.wrong_share
    return tuple((name, value) for name, value in found.items() if math.isfinite(value))


def _is_literal(row: Row, matched: Mapping[str, Any]) -> bool:
    """Return True if `auto` would let exact_match decide: its match is literal."""
    if row.item is None or matched["score"] != 1:
        return False
    fits = server_module("gradewire_cli.server_fits")
    return bool(fits.is_literal(row.item["prediction"], row.item["references"]))


def _judge_label(metric: Auto) -> str:
    return f"{metric.judge or 'lave'}{'?caption=true' if metric.caption else ''}"


def _numbers(results: Sequence[Mapping[str, Any]], name: str) -> NDArray[np.float64]:
    """Return a field's values as float64[rows], with NaN for a result without a score or this field."""
    values = (result.get(name) if result["score"] is not None else None for result in results)
    return np.array([math.nan if value is None else float(value) for value in values])
