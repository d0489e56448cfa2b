"""Measure how well judges and metrics choose between a right and a wrong answer.

Writes benchmarks/results/comparisons.md. Each question that has both kinds of answers gives a pair, in a seeded random
order. Verdicts are stored in --results/store, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from benchmarks.common.measurements import write_block
from benchmarks.common.rows import DATA_DIRECTORY, Row, read_lines

from gradewire import Comparison, Pair, Scorer, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

ROOT: Final = Path(__file__).resolve().parents[2]
DATASETS: Final = ("nq", "tq")
VERDICTS: Final = ("compare", "compare?references=true")
REASONS: Final = ("compare?mode=reason", "compare?mode=reason&references=true")
METRICS: Final = ("smile", "correctness")
_DRAWS: Final = 5000
_OTHER: Final = {"a": "b", "b": "a", "tie": "tie"}


@dataclass(frozen=True)
class Drawn:
    """A pair, and the answer that annotators call right."""

    pair: Pair
    right: str


@dataclass(frozen=True)
class Outcome:
    """A judge's or metric's verdict on a pair.

    Attributes:
        winner: "a", "b" or "tie"; None if the two orders contradict each other or the judge's answer is unparsable.
        leaning: The more probable answer over both orders, or "tie".
        first: For each order, 1 if the judge preferred the first answer, 0 if the second, 0.5 for a tie; () for a
            metric.
        consistent: True if both orders have the same winner.
    """

    winner: str | None
    leaning: str
    first: tuple[float, ...] = ()
    consistent: bool = True


def drawn_pairs(rows: Iterable[Row], count: int) -> list[Drawn]:
    """Draw equally many pairs from each data set; the right answer is first in half of the pairs."""
    by_question: dict[str, dict[str, tuple[list[Row], list[Row]]]] = {dataset: {} for dataset in DATASETS}
    for row in rows:
        right, wrong = by_question[row["dataset"]].setdefault(row["question"], ([], []))
        (right if row["label"] else wrong).append(row)
    found = []
    for dataset in DATASETS:
        draw = random.Random(f"gradewire pairs {dataset}")  # noqa: S311 - no secret
        both = [sides for sides in by_question[dataset].values() if all(sides)]
        for number, (right, wrong) in enumerate(draw.sample(both, min(count // len(DATASETS), len(both)))):
            good, bad = draw.choice(right), draw.choice(wrong)
            a, b = (good, bad) if number % 2 else (bad, good)
            pair = Pair(
                good["question"], a["prediction"], b["prediction"], references=good["references"], id=good["id"]
            )
            found.append(Drawn(pair, "a" if number % 2 else "b"))
    return found


def judged(found: Comparison) -> Outcome:
    """Return the outcome of a judge's comparison."""
    winners = [order.winner for order in found.orders]
    first = tuple(
        0.5 if order.winner in {"tie", None} else float(order.winner == order.first) for order in found.orders
    )
    a, b = found.probability_a or 0.0, found.probability_b or 0.0
    leaning = "tie" if a == b else "a" if a > b else "b"
    return Outcome(found.winner, leaning, first, consistent=len(set(winners)) == 1 and None not in winners)


def preferred(a: float | None, b: float | None) -> Outcome:
    """Return the outcome for a metric's two scores; an answer without a score loses."""
    mine, other = (-1.0 if score is None else score for score in (a, b))
    winner = "tie" if mine == other else "a" if mine > other else "b"
    return Outcome(winner, winner)


def main() -> None:
    """Judge missing pairs, and replace the document's block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the rows")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "pairs")
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "comparisons.md")
    parser.add_argument("--judges", type=Path, required=True, help="directory of built judges")
    parser.add_argument("--pairs", type=int, default=80)
    parser.add_argument("--reasoned", type=int, default=20, help="number of pairs that are also judged with a reason")
    options = parser.parse_args()
    drawn = drawn_pairs(read_lines(options.data / "evouna_dev.jsonl"), options.pairs)
    few = drawn[:: max(1, len(drawn) // options.reasoned)][: options.reasoned]
    options.results.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {"disk_directory": options.results / "store", "judge_repository": options.judges}
    with Scorer.embedded(judge_backend="embedded", **settings) as scorer:
        verdicts = {by: _compared(scorer, drawn, by) for by in VERDICTS}
        scores = {name: _scored(scorer, drawn, name) for name in METRICS}
        reasons = {by: _compared(scorer, few, by) for by in (*VERDICTS, *REASONS)}
    baselines = {
        "length (words)": [_by(each.pair, lambda answer: float(len(answer.split()))) for each in drawn],
        "random": [preferred(*random.Random(f"{each.pair.id} coin").sample((0.0, 1.0), 2)) for each in drawn],  # noqa: S311
    }
    tables = [
        f"{len(drawn)} pairs.\n",
        table(drawn, {**verdicts, **scores, **baselines}),
        f"\n{len(few)} of them, with a reason first:\n",
        table(few, reasons),
    ]
    write_block(options.document, "judge-pairs", "\n".join(tables))


def _compared(scorer: Scorer, drawn: Sequence[Drawn], by: str) -> list[Outcome]:
    def tell(done: int, total: int) -> None:
        sys.stderr.write(f"{by}: {done} of {total}\n")

    found = scorer.compare([each.pair for each in drawn], by, progress=tell)
    lost = [each.message for each in found if each.status not in {Status.OK, Status.INCONSISTENT, Status.UNPARSABLE}]
    if lost:
        raise SystemExit(f"{by}: {len(lost)} pairs were not judged: {lost[0]}")
    return list(map(judged, found))


def _scored(scorer: Scorer, drawn: Sequence[Drawn], metric: str) -> list[Outcome]:
    items = [
        {"question": each.pair.question, "references": each.pair.references, "prediction": answer}
        for each in drawn
        for answer in (each.pair.answer_a, each.pair.answer_b)
    ]
    scores = [item.scores[metric].score for item in scorer.score(items, metric)]
    return [preferred(a, b) for a, b in zip(scores[::2], scores[1::2], strict=True)]


def _by(pair: Pair, value: Callable[[str], float]) -> Outcome:
    return preferred(value(pair.answer_a), value(pair.answer_b))


def table(drawn: Sequence[Drawn], outcomes: dict[str, list[Outcome]]) -> str:
    """Return a table of each judge's results, with intervals."""
    head = (
        "| chooser | right | wrong | tie | no winner | accuracy (half for ties) | accuracy (more probable) | "
        "orders agree | prefers the first |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    return "\n".join([head, *(_line(name, drawn, said) for name, said in outcomes.items())])


def _line(name: str, drawn: Sequence[Drawn], said: Sequence[Outcome]) -> str:
    right = np.array([each.right for each in drawn])
    winners = [outcome.winner for outcome in said]
    wins = np.array([_points(outcome.winner, good) for outcome, good in zip(said, right, strict=True)])
    leaning = np.array([_points(outcome.leaning, good) for outcome, good in zip(said, right, strict=True)])
    counted = [
        sum(winner == good for winner, good in zip(winners, right, strict=True)),
        sum(winner == _OTHER[good] for winner, good in zip(winners, right, strict=True)),
        winners.count("tie"),
        winners.count(None),
    ]
    cells = [*map(str, counted), _estimate(wins), _estimate(leaning)]
    if said[0].first:
        agree = np.array([float(outcome.consistent) for outcome in said])
        first = np.array([float(np.mean(outcome.first)) if outcome.first else 0.5 for outcome in said])
        cells += [_estimate(agree), _estimate(first)]
    else:
        cells += ["", ""]
    return f"| `{name}` | {' | '.join(cells)} |"


def _points(winner: str | None, right: str) -> float:
    return 0.5 if winner in {"tie", None} else float(winner == right)


def _estimate(values: NDArray[np.float64]) -> str:
    """Return the mean with its 95 % bootstrap interval."""
    draw = np.random.default_rng(0)
    means = values[draw.integers(0, len(values), (_DRAWS, len(values)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
