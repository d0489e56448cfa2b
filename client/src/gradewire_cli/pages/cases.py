"""The worst disagreements between metrics and annotators, for the agreement page."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_cli.pages.agreement_input import ReportInput, ReportRow
from gradewire_cli.pages.pictures import Album, ShownPicture
from gradewire_cli.pages.texts import ShownText, find_window, normal_form, shown, signed, visible
from gradewire_cli.results.tables import number
from gradewire_stats import scipy_stats
from gradewire_stats.agreement.rows import RIGHT_FROM, right

Direction = Literal["high", "low"]
Basis = Literal["verdict", "rank"]
# A rank is far off if the relative positions by score and by label differ by at least this share.
FAR = 0.25
_QUESTION_CHARACTERS = 600
_PREDICTION_CHARACTERS = 1200
_REFERENCE_CHARACTERS = 200
_REFERENCES_CHARACTERS = 1500
_PART_CHARACTERS = 100
_LINE_CHARACTERS = 600
_ANNOTATORS = 40
_NOT_PARTS = {"score", "status", "message", "warnings", "matched_reference", "line", "correct"}
# The page omits these fields. It shows the labels together with their probabilities instead.
_NOT_SHOWN = {"prompt_tokens", "generated_tokens", "labels", "features", "fit"}
_EXPLANATIONS = {"reason"}


@dataclass(frozen=True, slots=True)
class Disagreements:
    """Rows on which a metric and annotators disagree, in one direction.

    Attributes:
        rows: int[shown], positions of the rows, worst first.
        by_verdict: bool[shown], True if verdict and label differ, False if the score's rank is far off.
        score_ranks: float[shown], the row's position among scored rows by score, from 0 (lowest) to 1 (highest).
        label_ranks: float[shown], the row's position by label, in the same range.
        totals: Number of disagreeing rows by type of evidence (verdict or rank).
    """

    rows: NDArray[np.intp]
    by_verdict: NDArray[np.bool_]
    score_ranks: NDArray[np.float64]
    label_ranks: NDArray[np.float64]
    totals: Mapping[Basis, int]


def worst(
    scores: NDArray[np.float64], verdicts: NDArray[np.float64], labels: NDArray[np.float64], *, most: int
) -> dict[Direction, Disagreements]:
    """Return the rows on which a metric and annotators disagree, with the largest gap between score and label first.

    A row with a verdict disagrees if the verdict differs from the label. Without a verdict, or with labels outside
    [0, 1], a row must meet two conditions to disagree. First, its positions by score and by label must differ by at
    least a quarter of the rows. Second, there must be another row with a better label but a lower score ("high"), or
    with a worse label but a higher score ("low").
    Among equally bad rows, select evenly over the file, because neighbouring rows may have the same question.

    Args:
        scores: float64[rows]. NaN marks failed rows, which are skipped.
        verdicts: float64[rows]: 1 (right), 0 (wrong) or NaN (no verdict).
        labels: float64[rows] without NaN.
        most: Maximum number of rows for each direction.

    Returns:
        "high": rows called right or scored too high. "low": rows called wrong or scored too low.
    """
    scored = np.flatnonzero(~np.isnan(scores))
    values, judged, called = scores[scored], labels[scored], verdicts[scored]
    by_score, by_label = _places(values), _places(judged)
    gap = by_score - by_label
    is_right = right(labels)
    has_verdict = ~np.isnan(called) if is_right is not None else np.zeros(len(scored), dtype=np.bool_)
    says_right, is_good = called >= RIGHT_FROM, judged >= RIGHT_FROM
    too_high = np.where(
        has_verdict, says_right & ~is_good, (gap >= FAR) & (_least_score_above(values, judged) < values)
    )
    too_low = np.where(
        has_verdict, ~says_right & is_good, (gap <= -FAR) & (-_least_score_above(-values, -judged) > values)
    )

    def picked(found: NDArray[np.bool_], how_bad: NDArray[np.float64]) -> Disagreements:
        places = np.flatnonzero(found)
        shown = places[_worst_places(how_bad[places], most)]
        counts: dict[Basis, tuple[NDArray[np.bool_], int]] = {
            "verdict": (has_verdict, int((found & has_verdict).sum())),
            "rank": (~has_verdict, int((found & ~has_verdict).sum())),
        }
        return Disagreements(
            rows=scored[shown],
            by_verdict=has_verdict[shown],
            score_ranks=by_score[shown],
            label_ranks=by_label[shown],
            totals={basis: count for basis, (there, count) in counts.items() if there.any()},
        )

    return {"high": picked(too_high, gap), "low": picked(too_low, -gap)}


def _places(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each value's relative position as float64[rows]. Equal values share a mean position."""
    if not len(values):
        return values
    ranks: NDArray[np.float64] = (scipy_stats().rankdata(values) - 0.5) / len(values)
    return ranks


def _least_score_above(values: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each row, the lowest value among rows with a larger label, or infinity without such rows."""
    levels, level = np.unique(labels, return_inverse=True)
    least = np.full(len(levels) + 1, np.inf)
    np.minimum.at(least, level, values)
    beyond: NDArray[np.float64] = np.minimum.accumulate(least[::-1])[::-1][1:][level]
    return beyond


def _worst_places(how_bad: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return the positions of the largest values as int[shown]. If values at the limit are equal, select evenly."""
    order = np.lexsort((np.arange(len(how_bad)), -how_bad))
    if len(how_bad) > most > 0:
        edge = how_bad[order[most - 1]]
        surely = order[how_bad[order] > edge]
        tied = order[how_bad[order] == edge]
        spread = np.linspace(0, len(tied) - 1, most - len(surely)).round().astype(np.intp)
        order = np.concatenate([surely, tied[spread]])
    return order[:most]


@dataclass(frozen=True, slots=True)
class Found:
    """A reason to show an answer.

    Attributes:
        place: Position in the metric's list of disagreements, from 1 (worst).
        by: Evidence of the disagreement.
        ranks: A text with the ranks by score and by label, or "" if the evidence is the verdict.
    """

    metric: int
    direction: Direction
    place: int
    by: Basis
    ranks: str


@dataclass(frozen=True, slots=True)
class ShownReference:
    """A reference, with the names of metrics that matched it with a score above 0."""

    number: int
    text: ShownText
    matched_by: str


@dataclass(frozen=True, slots=True)
class ResultLine:
    """One metric's result. Without a score, `score` contains the status."""

    metric: str
    score: str
    verdict: str
    reference: str
    parts: str
    notes: str


@dataclass(frozen=True, slots=True)
class Case:
    """An answer on which a metric and annotators disagree. `side` is the label's side: "right", "wrong", or ""."""

    row: ReportRow
    id: str
    label: str
    side: str
    annotators: str
    flags: str
    picture: ShownPicture | None
    question: ShownText
    references: Sequence[ShownReference]
    references_left_out: int
    prediction: ShownText
    mark: str
    results: Sequence[ResultLine]
    found: Sequence[Found]


@dataclass(frozen=True, slots=True)
class Cases:
    """All shown answers, sorted by the number of metrics that disagree with annotators, largest number first.

    Attributes:
        totals: Number of disagreeing rows by metric, direction and evidence.
        most: Maximum number of answers for each metric and direction.
    """

    cases: Sequence[Case]
    totals: Mapping[tuple[str, Direction, Basis], int]
    most: int


def cases(report: ReportInput, album: Album, *, most: int) -> Cases:
    """Return every metric's worst disagreements, at most `most` in each direction, with their pictures."""
    found: defaultdict[int, list[Found]] = defaultdict(list)
    totals: dict[tuple[str, Direction, Basis], int] = {}
    judged = report.judged
    for place, (metric, scores) in enumerate(judged.scores.items()):
        for direction, picked in worst(scores, judged.verdicts[metric], judged.labels, most=most).items():
            totals |= {(metric, direction, by): count for by, count in picked.totals.items()}
            for rank, row in enumerate(picked.rows.tolist()):
                found[row].append(_found(picked, rank, metric=place, direction=direction))
    order = sorted(found, key=lambda row: (-len(found[row]), min(one.place for one in found[row]), row))
    return Cases([_case(report, album, row, found[row]) for row in order], totals, most)


def _found(picked: Disagreements, rank: int, *, metric: int, direction: Direction) -> Found:
    if picked.by_verdict[rank]:
        return Found(metric, direction, rank + 1, "verdict", "")
    ranks = f"at {picked.score_ranks[rank]:.0%} of the rows by score, at {picked.label_ranks[rank]:.0%} by label"
    return Found(metric, direction, rank + 1, "rank", ranks)


def _case(report: ReportInput, album: Album, position: int, found: Sequence[Found]) -> Case:
    row = report.rows[position]
    metrics = list(report.judged.scores)
    prediction, mark = _marked(row, [metrics[one.metric] for one in found])
    references, left_out = _references(row)
    return Case(
        row=row,
        id=visible(row.id[:_REFERENCE_CHARACTERS]),
        label=f"{row.label:g}",
        side=("right" if row.label >= RIGHT_FROM else "wrong") if 0 <= row.label <= 1 else "",
        annotators=", ".join(
            [
                *("none" if label is None else f"{label:g}" for label in row.labels[:_ANNOTATORS]),
                *([f"and {len(row.labels) - _ANNOTATORS} more"] if len(row.labels) > _ANNOTATORS else []),
            ]
        ),
        flags=_cut_text("; ".join(map(visible, row.flags))),
        picture=album.picture(row.picture),
        question=shown(normal_form(row.question), max_characters=_QUESTION_CHARACTERS),
        references=references,
        references_left_out=left_out,
        prediction=prediction,
        mark=mark,
        results=[_result(row, metric, report.judged.verdicts[metric][position]) for metric in metrics],
        found=found,
    )


def _marked(row: ReportRow, first: Sequence[str]) -> tuple[ShownText, str]:
    """Return the prediction with one metric's best window marked, and a note. Prefer a metric in `first`."""
    text = normal_form(row.prediction)
    windows = {metric: str(result["best_window"]) for metric, result in row.results.items() if "best_window" in result}
    metric = next((metric for metric in [*first, *windows] if metric in windows), None)
    if metric is None:
        return shown(text, max_characters=_PREDICTION_CHARACTERS), ""
    place = find_window(text, windows[metric])
    same = ", ".join(other for other, window in windows.items() if window == windows[metric])
    if place is None:
        return shown(text, max_characters=_PREDICTION_CHARACTERS), f"The best window of {same} was not found."
    note = f"Marked: the best window of {same}{'' if place.exact else ', approximately'}."
    return shown(text, max_characters=_PREDICTION_CHARACTERS, mark=place), note


def _references(row: ReportRow) -> tuple[list[ShownReference], int]:
    """Return all matched references, as many other references as fit, and the number of omitted references."""
    matched: defaultdict[int, list[str]] = defaultdict(list)
    for metric, result in row.results.items():
        # With a score of 0, the result names the first reference although this reference does not match.
        if result.get("matched_reference") is not None and (result.get("score") or 0) > 0:
            matched[int(result["matched_reference"])].append(metric)
    kept, room = [], _REFERENCES_CHARACTERS
    for place, reference in enumerate(row.references):
        length = min(len(reference), _REFERENCE_CHARACTERS)
        if place not in matched and length > room:
            continue
        room -= length
        text = shown(normal_form(reference), max_characters=_REFERENCE_CHARACTERS)
        kept.append(ShownReference(place + 1, text, ", ".join(matched[place])))
    return kept, len(row.references) - len(kept)


def _result(row: ReportRow, metric: str, verdict: float) -> ResultLine:
    result = row.results.get(metric, {})
    score = result.get("score")
    notes = [visible(str(warning)[:_PART_CHARACTERS]) for warning in result.get("warnings", ())]
    if result.get("message"):
        notes.append(visible(str(result["message"])[:_PART_CHARACTERS]))
    if classes := row.classes.get(metric):
        notes.append(f"class: {visible(classes)}")
    reference = result.get("matched_reference")
    parts = ", ".join(_named_part(result, name) for name, value in result.items() if _is_part(name, value))
    return ResultLine(
        metric=metric,
        score=visible(str(result.get("status", "no result"))[:_PART_CHARACTERS])
        if score is None
        else signed(number(float(score))),
        verdict="" if np.isnan(verdict) else "right" if verdict >= RIGHT_FROM else "wrong",
        reference="" if reference is None else str(int(reference) + 1),
        parts=_cut_text(parts),
        notes=_cut_text("; ".join(notes)),
    )


def _cut_text(text: str) -> str:
    return text if len(text) <= _LINE_CHARACTERS else f"{text[:_LINE_CHARACTERS]}…"


def _is_part(name: str, value: Any) -> bool:
    return name not in _NOT_PARTS | _NOT_SHOWN and value is not None and value not in ("", [])


def _named_part(result: Mapping[str, Any], name: str) -> str:
    labels = result.get("labels")
    if name == "probabilities" and isinstance(labels, list) and len(labels) == len(result[name]):
        each = (f"{visible(str(label))} {_part(value)}" for label, value in zip(labels, result[name], strict=True))
        return f"probabilities {' / '.join(each)}"
    return f"{name} {_part(result[name], most=_LINE_CHARACTERS if name in _EXPLANATIONS else _PART_CHARACTERS)}"


def _part(value: Any, *, most: int = _PART_CHARACTERS) -> str:
    if isinstance(value, float):
        return signed(number(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " / ".join(map(_part, value[:8]))
    if isinstance(value, str):
        cut = "…" if len(value) > most else ""
        return f"“{visible(value[:most])}{cut}”"
    return visible(str(value)[:most])
