import math
from collections.abc import Sequence
from typing import Any

import pytest

from gradewire import Client, ItemScores, MetricScore, Status
from gradewire.testing import StubTransport, echo_scores
from gradewire_stats.comparison import RowColumns, compare_results


def results(scores: Sequence[float | None], *, label: str = "smile", ids: Sequence[str] = ()) -> list[ItemScores]:
    return [
        ItemScores(
            place,
            ids[place] if ids else "",
            {
                label: MetricScore(
                    score,
                    Status.OK if score is not None else Status.TIMEOUT,
                    correct=None if score is None else score >= 0.5,
                )
            },
        )
        for place, score in enumerate(scores)
    ]


def test_two_reports_of_a_client_are_compared() -> None:
    client = Client(
        transport=StubTransport(lambda request: echo_scores(request, score=lambda item: len(item.prediction) / 10))
    )
    before, after = (
        client.score([{"prediction": text, "references": ["x"]} for text in texts], metrics="smile")
        for texts in (["a", "bb", "ccc"], ["aaaa", "bb", "c"])
    )
    found = compare_results(before, after).overall
    assert found.metrics["smile"].difference.value == pytest.approx(0.1 / 3)
    outcomes = found.outcomes["smile"]
    assert (outcomes.wins, outcomes.ties, outcomes.losses) == (1, 2, 0)


def test_verdicts_failures_and_groups_are_told() -> None:
    before, after = results([0.1, 0.9, 0.9, None]), results([0.9, 0.9, 0.1, 0.9])
    found = compare_results(before, after, columns=RowColumns(groups=["x", "y", "", "x"]))
    metric = found.overall.metrics["smile"]
    assert (metric.pairs, metric.scored, metric.failed) == (4, 3, (1, 0))
    assert metric.verdicts is not None
    assert (metric.verdicts.only_baseline, metric.verdicts.only_candidate, metric.verdicts.both) == (1, 1, 1)
    assert {name: group.pairs for name, group in found.groups.items()} == {"x": 2, "y": 1}
    assert found.groups["x"].outcomes["smile"].wins == 1


def test_questions_of_one_key_are_drawn_together() -> None:
    scores = [0.1, 0.9] * 20
    alone = compare_results(results(scores), results(scores[::-1])).overall.metrics["smile"].difference
    keys = [str(place // 2) for place in range(40)]
    both = compare_results(results(scores), results(scores[::-1]), columns=RowColumns(questions=keys)).overall
    together = both.metrics["smile"].difference
    assert alone.low < 0 < alone.high
    assert (together.questions, together.low, together.high) == (20, 0, 0)


def test_verdicts_prefer_where_they_are_asked_to() -> None:
    found = compare_results(results([0.4, 0.6]), results([0.5, 0.9]), tie_margin="verdict").overall.outcomes["smile"]
    assert (found.wins, found.ties) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"baseline": []}, "0 baseline and 2 candidate results"),
        ({"candidate": results([0.1])}, "2 baseline and 1 candidate results"),
        ({"candidate": results([0.1, 0.2], label="bleu")}, "have no common metric: smile and bleu"),
        (
            {"candidate": results([0.1, 0.2], ids=["b", "a"])},
            "result 0 is for 'a' in baseline and for 'b' in candidate",
        ),
        ({"columns": RowColumns(groups=["x"])}, "groups has 1 values for 2 results"),
        ({"candidate": [*results([0.1]), *results([0.1], label="bleu")]}, "result 1 and the first result have"),
    ],
)
def test_lists_that_do_not_belong_together_are_refused(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"baseline": results([0.1, 0.2], ids=["a", "b"]), "candidate": results([0.1, 0.2])}
    with pytest.raises(ValueError, match=message):
        compare_results(**(given | arguments))


def test_results_without_any_score_give_no_figure_and_no_error() -> None:
    found = compare_results(results([None, None]), results([None, 0.5])).overall
    assert math.isnan(found.metrics["smile"].difference.value)
    assert found.outcomes["smile"].undecided == 2
