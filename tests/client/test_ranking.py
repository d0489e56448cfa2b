"""Answers to one question are ranked over a stub that says who wins each pair."""

import math
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire import (
    AsyncClient,
    CacheHits,
    Candidates,
    Client,
    Comparison,
    InvalidRequest,
    ListVerdict,
    Pair,
    RankingCost,
    RankingPlan,
    Status,
    Winner,
)
from gradewire.pairs import OrderVerdict
from gradewire.ranking import MOST_ANSWERS, QuestionPlan, schedule
from gradewire.testing import StubTransport, echo_comparisons
from gradewire_proto.v1 import judging_pb2, types_pb2

Verdict = Callable[[judging_pb2.Pair], Winner | None]


class Judge(StubTransport):
    """Says who wins, and keeps the pairs that it was shown."""

    def __init__(self, winner: Verdict) -> None:
        super().__init__(compare=self._reply)
        self.shown: list[judging_pb2.Pair] = []
        self._winner = winner

    def _reply(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        self.shown.extend(request.pairs)
        reply = echo_comparisons(request, winner=self._winner)
        for pair in reply.pairs:
            pair.prompt_tokens, pair.generated_tokens = 100, 2
        return reply


def longer(pair: judging_pb2.Pair) -> Winner | None:
    """The longer answer wins, and equally long ones tie."""
    if len(pair.answer_a) == len(pair.answer_b):
        return "tie"
    return "a" if len(pair.answer_a) > len(pair.answer_b) else "b"


def test_each_answer_has_its_share_of_won_pairs_and_a_rank() -> None:
    judge = Judge(longer)
    with Client(transport=judge) as client:
        (found,) = client.rank([Candidates("Which?", ["aa", "a", "aaaa", "bb"], id="7", group="easy")])
    assert [answer.score for answer in found.answers] == [0.5, 0.0, 1.0, 0.5]
    assert [answer.rank for answer in found.answers] == [2, 4, 1, 2]
    assert (found.answers[0].wins, found.answers[0].losses, found.answers[0].ties) == (1, 1, 1)
    assert (found.order, found.id, found.group, found.status) == ([2, 0, 3, 1], "7", "easy", Status.OK)
    assert found.line == "compare/1"
    assert (len(judge.shown), found.cost) == (6, RankingCost(6, 12, 600, 12))


async def test_the_asynchronous_client_ranks_too() -> None:
    async with AsyncClient(transport=Judge(longer)) as client:
        found = await client.rank([{"prompt": "Which?", "answers": ["a", "aa"]}], "compare?references=true")
    assert [answer.rank for answer in found[0].answers] == [2, 1]
    assert found[0].line == "compare/1?references=true"


def test_ties_and_failures_are_counted_and_not_scored() -> None:
    def verdict(pair: judging_pb2.Pair) -> Winner | None:
        if "odd" in (pair.answer_a, pair.answer_b):
            return None
        return "tie" if "flat" in (pair.answer_a, pair.answer_b) else longer(pair)

    with Client(transport=Judge(verdict)) as client:
        (found,) = client.rank([{"question": "q", "answers": ["long one", "odd", "flat", "short"]}])
    best, odd, flat, short = found.answers
    assert (best.score, best.wins, best.ties, best.undecided) == (1.0, 1, 1, 1)
    assert (short.score, short.rank) == (0.0, 2)
    assert (odd.score, odd.rank, odd.status, odd.undecided) == (None, None, Status.INCONSISTENT, 3)
    assert odd.message.startswith("no pair of the answer has a winner")
    assert (flat.status, flat.ties, flat.undecided) == (Status.INCONSISTENT, 2, 1)
    with Client(transport=Judge(lambda _: "tie")) as client:
        (tied,) = client.rank([{"question": "q", "answers": ["x", "y", "z"]}])
    assert {(answer.score, answer.status, answer.message) for answer in tied.answers} == {
        (None, Status.TIED, "all 2 pairs of the answer are ties")
    }
    with Client(transport=Judge(lambda _: "tie")) as client:
        (two,) = client.rank([{"question": "q", "answers": ["x", "y"]}])
    assert (two.status, two.answers[0].message) == (Status.OK, "the only pair of the answer is a tie")


def test_a_message_names_no_position_that_the_caller_does_not_know() -> None:
    def failed(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        reply = echo_comparisons(request, winner=lambda _: None)
        for pair in reply.pairs:
            pair.status, pair.message = types_pb2.STATUS_UNPARSABLE, "pair: the judge wrote a poem"
        return reply

    with Client(transport=StubTransport(compare=failed)) as client:
        (found,) = client.rank([{"question": "q", "answers": ["a", "b"]}])
    assert {(answer.status, answer.message) for answer in found.answers} == {
        (Status.UNPARSABLE, "no pair of the answer has a winner: the judge wrote a poem")
    }


def test_answers_that_cannot_be_compared_do_not_stop_the_others() -> None:
    judge = Judge(longer)
    with Client(transport=judge) as client:
        (found,) = client.rank([Candidates("q", ["aa", " . ", None, "a", "\ud800a"])])
    assert [answer.status for answer in found.answers] == [
        Status.OK,
        Status.EMPTY_PREDICTION,
        Status.INVALID_INPUT,
        Status.OK,
        Status.INVALID_INPUT,
    ]
    assert [answer.score for answer in found.answers] == [1.0, None, None, 0.0, None]
    assert len(judge.shown) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"role": "assistant", "content": "a"}, "the answer is a dict: give a string"),
        (["a"], "the answer is a list: give a string"),
        (True, "the answer is True, a truth value"),
        (b"b", "the answer is bytes: give a string"),
        (math.inf, "the answer is inf: give a string or a finite number"),
        (math.nan, "the answer is None: the model has no output"),
        ("a\udc00", "the answer has a lone surrogate"),
    ],
)
@pytest.mark.parametrize("kind", [dict, Candidates])
def test_an_answer_that_is_no_text_costs_only_itself(kind: Any, answer: Any, message: str) -> None:
    with Client(transport=Judge(longer)) as client:
        (found,) = client.rank([kind(question="q", answers=["aa", answer, "a", 7])])
    assert (found.status, found.order[0]) == (Status.OK, 0)
    assert [each.status for each in found.answers] == [Status.OK, Status.INVALID_INPUT, Status.OK, Status.OK]
    assert found.answers[1].message.startswith(message)


@pytest.mark.parametrize(
    ("failures", "status"),
    [
        (["UNAVAILABLE"] * 3, "UNAVAILABLE"),
        (["TIMEOUT", "UNAVAILABLE", "TIMEOUT"], "TIMEOUT"),
        (["JUDGE_CANNOT_SEE"] * 3, "JUDGE_CANNOT_SEE"),
        (["UNAVAILABLE", "UNAVAILABLE", "INCONSISTENT"], "OK"),
        (["UNAVAILABLE", "OK", "UNAVAILABLE"], "OK"),
    ],
)
def test_a_question_without_any_verdict_has_the_most_frequent_failure(failures: list[str], status: str) -> None:
    def reply(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        found = echo_comparisons(request, winner=longer)
        for pair, failure in zip(found.pairs, failures, strict=True):
            pair.status = types_pb2.Status.Value(f"STATUS_{failure}")
            pair.message = "" if failure == "OK" else f"pair: {failure.lower()}"
        return found

    with Client(transport=StubTransport(compare=reply), deadline_s=0.5) as client:
        (found,) = client.rank([{"question": "q", "answers": ["a", "aa", "aaa"]}])
    assert found.status == status
    assert found.message == ("" if status == "OK" else f"no pair could be compared: {status.lower()}")


def test_equal_answers_are_sent_once_and_count_as_often_as_given() -> None:
    cycle = {("x", "y"): "a", ("y", "z"): "a", ("x", "z"): "b"}
    judge = Judge(lambda pair: cycle[pair.answer_a, pair.answer_b])  # type: ignore[arg-type, return-value]
    with Client(transport=judge) as client:
        (found,) = client.rank([{"question": "q", "answers": ["x", "y", " x", "z", "x\n"]}])
    assert len(judge.shown) == 3
    assert [answer.score for answer in found.answers] == [0.5, 0.25, 0.5, 0.75, 0.5]
    assert (found.answers[0].ties, found.answers[1].ties) == (2, 0)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (3, "candidates[1] is an int: give a mapping or a gradewire.Candidates"),
        ({"question": "q"}, "candidates[1].answers is not a list of answers (found: question): give a list of strings"),
        ({"question": "q", "answers": "a"}, "candidates[1].answers is not a list of answers"),
        (
            {"question": "q", "answers": None, "id": "7"},
            "candidates[1].answers is not a list of answers (found: question,",
        ),
        (Candidates("q", "ab"), "candidates[1].answers is not a list of answers (found: a str)"),
        ({"question": "q", "answers": ["a", b"b"]}, "only 1 of 2 answers can be compared"),
        ({"question": ["q"], "answers": ["a", "b"]}, "candidates[1].question is a list: give a string"),
        ({"question": " ", "answers": ["a", "b"]}, "the question is empty: a judge needs it to compare answers"),
        ({"question": "q", "answers": ["a"]}, "give 2 to 64 answers, not 1"),
        ({"question": "q", "answers": ["a"] * 65}, "give 2 to 64 answers, not 65"),
        ({"question": "q", "answers": ["a", ""]}, "only 1 of 2 answers can be compared"),
    ],
)
def test_a_wrong_row_fails_alone(row: Any, message: str) -> None:
    with Client(transport=Judge(longer)) as client:
        before, found, after = client.rank(
            [{"question": "q", "answers": ["a", "aa"]}, row, {"question": "q", "answers": ["aa", "a"]}]
        )
    assert (found.status, found.message.startswith(message)) == (Status.INVALID_INPUT, True), found.message
    assert all(answer.score is None and answer.status is not Status.OK for answer in found.answers)
    assert [[answer.rank for answer in each.answers] for each in (before, after)] == [[2, 1], [1, 2]]


def test_a_table_is_read_and_names_of_columns_are_the_usual_ones() -> None:
    judge = Judge(longer)
    table = pd.DataFrame({"Prompt": ["q"], "completions": [["a", "aa"]], "target": ["right"], "caption": ["seen"]})
    with Client(transport=judge) as client:
        (found,) = client.rank(table, "compare?references=true&caption=true")
    assert found.order == [1, 0]
    (pair,) = judge.shown
    assert (pair.question, list(pair.references), list(pair.captions)) == ("q", ["right"], ["seen"])


def test_pictures_of_both_columns_are_shown_and_a_repeated_one_once() -> None:
    judge = Judge(longer)
    row = {"question": "q", "answers": ["a", "aa"], "image": b"one", "images": [b"two", b"one", b"three"]}
    with Client(transport=judge) as client:
        client.rank([row, row | {"images": None}], "compare?image=true")
    assert [[image.data for image in pair.images] for pair in judge.shown] == [[b"two", b"one", b"three"], [b"one"]]


@pytest.mark.parametrize(
    ("hits", "orders", "cost"),
    [
        (CacheHits(computed=2), 2, RankingCost(1, 2, 101, 9)),
        (CacheHits(disk=2), 2, RankingCost(1, 0, 0, 0, 2)),
        (CacheHits(memory=1, computed=1), 2, RankingCost(1, 1, 50, 4, 1)),
        (CacheHits(joined=1, redis=1), 2, RankingCost(1, 0, 0, 0, 2)),
        (CacheHits(memory=3, computed=1), 2, RankingCost(1, 1, 25, 2, 1)),  # mode=reason: two calls for a verdict
        (CacheHits(), 2, RankingCost(1, 2, 101, 9)),
        (CacheHits(), 0, RankingCost(1, 0, 101, 9)),
    ],
)
def test_the_cost_counts_only_what_the_judge_computed(hits: CacheHits, orders: int, cost: RankingCost) -> None:
    verdicts = (OrderVerdict("a", "a"), OrderVerdict("b", "a"))[:orders]
    comparison = Comparison("a", Status.OK, orders=verdicts, prompt_tokens=101, generated_tokens=9, cache_hits=hits)
    assert QuestionPlan.of(0, Candidates("q", ["a", "b"])).ranking([comparison]).cost == cost
    assert cost + cost == RankingCost(2, *(2 * each for each in astuple(cost)[1:]))


def test_the_cost_is_known_before_and_a_budget_limits_it() -> None:
    rows = [Candidates("q", ["a" * length for length in range(1, 9)]), Candidates("q", ["a", "b"])]
    assert RankingPlan.of(rows).cost == RankingCost(29, 58)
    assert RankingPlan.of(rows, 12).cost == RankingCost(13, 26)
    judge = Judge(longer)
    with Client(transport=judge) as client:
        found = client.rank(rows, max_pairs=12)[0]
        too_few = client.rank(rows, max_pairs=6)
    assert (found.cost.pairs, found.answers[7].score, found.answers[0].score) == (12, 1.0, 0.0)
    assert all(answer.wins + answer.losses == 3 for answer in found.answers)
    assert (too_few[0].status, too_few[0].message) == (
        Status.INVALID_PARAMETER,
        "max_pairs=6: 8 answers need at least 7 pairs",
    )
    assert too_few[1].status is Status.OK
    with pytest.raises(InvalidRequest, match="max_pairs=0: give a whole number, 1 or more"):
        RankingPlan.of(rows, 0)
    with pytest.raises(InvalidRequest, match="candidates is one Candidates: give a list"):
        RankingPlan.of(rows[0])  # type: ignore[arg-type]


@given(st.integers(2, MOST_ANSWERS), st.data())
def test_a_budget_of_pairs_connects_all_answers_evenly(count: int, data: st.DataObject) -> None:
    every = count * (count - 1) // 2
    most = data.draw(st.integers(count - 1, every))
    pairs = schedule(count, most)
    assert len(pairs) == len(set(pairs)) == most
    assert all(0 <= a < b < count for a, b in pairs)
    linked = {0}
    while more := {place for pair in pairs if linked & set(pair) for place in pair} - linked:
        linked |= more
    assert linked == set(range(count))
    times = [sum(place in pair for pair in pairs) for place in range(count)]
    assert max(times) - min(times) <= 2 - (count % 2 == 0)
    assert set(schedule(count)) == {(a, b) for b in range(count) for a in range(b)}


OUTCOMES = st.sampled_from(["a", "b", "tie", None])


@given(st.lists(st.sampled_from(["x", "y", "z", "", "w w", "w  w"]) | st.none(), min_size=0, max_size=8), st.data())
def test_scores_are_shares_and_counts_add_up_for_any_verdicts(answers: list[str | None], data: st.DataObject) -> None:
    plan = QuestionPlan.of(0, Candidates("q", answers))
    winners = [data.draw(OUTCOMES) for _ in plan.pairs]
    comparisons = [Comparison(each, Status.OK if each else Status.INCONSISTENT) for each in winners]
    found = plan.ranking(comparisons)
    assert len(found.answers) == len(answers)
    compared = [answer for answer in found.answers if answer.wins + answer.losses + answer.ties + answer.undecided]
    assert all(answer.wins + answer.losses + answer.ties + answer.undecided == len(compared) - 1 for answer in compared)
    assert sum(answer.wins for answer in compared) == sum(answer.losses for answer in compared)
    for answer in found.answers:
        assert (answer.score is None) == (answer.status is not Status.OK) == (answer.rank is None)
        assert answer.score is None or (0 <= answer.score <= 1 and math.isfinite(answer.score))
    ranks = sorted(answer.rank for answer in found.answers if answer.rank is not None)
    assert ranks[:1] in ([], [1])
    assert found.order == sorted(found.order, key=lambda place: -(found.answers[place].score or 0))


def lists_of(*ranks: tuple[int, ...], status: int = types_pb2.STATUS_OK) -> StubTransport:
    """A judge that has these rankings of each list, and keeps what it was shown."""

    def reply(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        stub.shown.extend(request.pairs)  # type: ignore[attr-defined]
        made = echo_comparisons(request, winner=lambda _: "tie")
        for result in made.pairs:
            result.status, result.winner = status, judging_pb2.WINNER_UNSPECIFIED  # type: ignore[assignment]
            del result.orders[:]
            for each in ranks:
                result.lists.add(shown=range(len(each)), ranks=each)
            result.cache_hits.computed, result.prompt_tokens, result.generated_tokens = len(ranks), 100, 8
        return made

    stub = StubTransport(compare=reply)
    stub.shown = []  # type: ignore[attr-defined]
    return stub


LISTED: Candidates = Candidates("Which?", ["a", "b", " ", "a ", "c"], references=["gold"], id="7")


@pytest.mark.parametrize(
    ("by", "scores", "ranks", "undecided"),
    [
        # b is ahead of a in all orders; c is ahead of a in three and of b in two of the four.
        ("compare:listwise", [0.0, 1.0, None, 0.0, None], [2, 1, None, 2, None], [1, 1, 0, 1, 3]),
        ("compare:listwise?decision=majority", [0.0, 1.0, None, 0.0, 1.0], [3, 1, None, 3, 1], [0, 1, 0, 0, 1]),
    ],
)
def test_a_list_is_one_question_and_its_rankings_decide_each_pair(
    by: str, scores: list[float | None], ranks: list[int | None], undecided: list[int]
) -> None:
    judge = lists_of((3, 1, 2), (3, 2, 1), (3, 2, 1), (2, 1, 3))
    with Client(transport=judge) as client:
        (found,) = client.rank([LISTED], by)
    (sent,) = judge.shown  # type: ignore[attr-defined]
    assert (sent.answer_a, sent.answer_b, list(sent.others), list(sent.references)) == ("a", "b", ["c"], ["gold"])
    assert [answer.score for answer in found.answers] == scores
    assert [answer.rank for answer in found.answers] == ranks
    assert [answer.undecided for answer in found.answers] == undecided
    assert found.answers[2].status is Status.EMPTY_PREDICTION
    assert found.cost == RankingCost(1, 4, 100, 8)
    assert RankingPlan.of([LISTED], by=by).cost == RankingCost(1, 4)


def test_equal_ranks_in_all_orders_are_ties_and_mixed_ones_no_win() -> None:
    with Client(transport=lists_of((1, 1, 3), (1, 1, 2), (1, 1, 2), (1, 1, 1))) as client:
        (found,) = client.rank([Candidates("q", ["a", "b", "c"])], "compare:listwise")
        (major,) = client.rank([Candidates("q", ["a", "b", "c"])], "compare:listwise?decision=majority")
    assert [(each.ties, each.undecided, each.status) for each in found.answers] == [
        (1, 1, Status.INCONSISTENT),
        (1, 1, Status.INCONSISTENT),
        (0, 2, Status.INCONSISTENT),
    ]
    assert found.answers[2].message.endswith("one answer is ahead of the other in 3 and behind it in 0 of 4 orders")
    assert [answer.score for answer in major.answers] == [1.0, 1.0, 0.0]


def test_a_list_without_rankings_is_left_out_whole() -> None:
    for status, ranks, expected in (
        (types_pb2.STATUS_UNPARSABLE, ((), (2, 1, 3)), Status.UNPARSABLE),
        (types_pb2.STATUS_OK, (), Status.INTERNAL),
        (types_pb2.STATUS_OK, ((2, 1), (1, 2)), Status.INTERNAL),
    ):
        with Client(transport=lists_of(*ranks, status=status)) as client:
            (found,) = client.rank([Candidates("q", ["a", "b", "c"])], "compare:listwise")
        assert found.status is expected
        assert {(answer.score, answer.status) for answer in found.answers} == {(None, expected)}


def test_a_list_that_a_rule_decides_costs_no_verdict() -> None:
    alike = Comparison(None, Status.OK, decided_by="rule", lists=(ListVerdict((0, 1), (1, 1)),))
    plan = RankingPlan.of([Candidates("q", ["a b", "a\u200b b"])], by="compare:listwise")
    (found,) = plan.rankings([alike])
    assert found.cost == RankingCost(1, 0)
    assert [answer.status for answer in found.answers] == [Status.TIED, Status.TIED]


def test_one_distinct_answer_is_no_list() -> None:
    judge = lists_of((1, 2))
    with Client(transport=judge) as client:
        (found,) = client.rank([Candidates("q", ["a", "a "])], "compare:listwise")
    assert judge.shown == []  # type: ignore[attr-defined]
    assert [answer.status for answer in found.answers] == [Status.TIED, Status.TIED]
    assert RankingPlan.of([Candidates("q", ["a", "b"])], by="compare:listwise").cost == RankingCost(1, 2)


def test_a_list_has_no_number_of_pairs() -> None:
    with pytest.raises(InvalidRequest, match="max_pairs is for pairs"):
        RankingPlan.of([LISTED], 4, "compare:listwise")


@pytest.mark.parametrize("others", ["bc", ["b", 3], ["\ud800"], 7])
def test_further_answers_that_are_no_texts_are_told_apart(others: Any) -> None:
    with Client(transport=lists_of((1, 2))) as client:
        (found,) = client.compare([Pair("q", "a", "b", others=others)], "compare:listwise")
    assert found.status is Status.INVALID_INPUT
    assert found.message.startswith("pairs[0].others is ")
