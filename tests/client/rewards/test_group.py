"""Rewards by comparison: groups, shares of won pairs, and what becomes of failures, over a stub judge."""

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gradewire import AccessDenied, InvalidRequest, RankingCost, ServerUnreachable, Status, Winner
from gradewire.rewards import FailureHandling, GroupReward, RewardFailed, RewardFailureRate, RewardSample
from gradewire.rewards.trl import AsyncTrlReward, TrlReward
from gradewire.testing import StubTransport, echo_comparisons
from gradewire_proto.v1 import judging_pb2, types_pb2

Verdict = Callable[[judging_pb2.Pair], Winner | None]


def longer(pair: judging_pb2.Pair) -> Winner | None:
    """The longer answer wins; equally long ones tie, and nobody can decide about "odd"."""
    if "odd" in (pair.answer_a, pair.answer_b):
        return None
    if len(pair.answer_a) == len(pair.answer_b):
        return "tie"
    return "a" if len(pair.answer_a) > len(pair.answer_b) else "b"


class Judge(StubTransport):
    """Fails as often as the test says, then says who wins; keeps the pairs that it was shown."""

    def __init__(self, *troubles: Exception | int, winner: Verdict = longer) -> None:
        super().__init__(compare=self._reply)
        self.shown: list[judging_pb2.Pair] = []
        self._troubles, self._winner = list(troubles), winner

    def _reply(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        trouble = self._troubles.pop(0) if self._troubles else None
        if isinstance(trouble, Exception):
            raise trouble
        self.shown.extend(request.pairs)
        reply = echo_comparisons(request, winner=self._winner)
        if trouble is not None:
            reply.pairs[trouble].status = types_pb2.STATUS_UNAVAILABLE
            reply.pairs[trouble].winner = judging_pb2.WINNER_UNSPECIFIED
        return reply


def samples_of(*completions: Any, question: str = "q", references: tuple[str, ...] = ()) -> list[RewardSample]:
    return [RewardSample(completion, references, question) for completion in completions]


def test_a_reward_is_the_share_of_pairs_won_among_the_completions_of_the_prompt() -> None:
    judge = Judge()
    with GroupReward(judge) as scorer:
        mixed = [*samples_of("a", "aaa"), *samples_of("bb", "b", question="other"), *samples_of("aa")]
        assert scorer.plan(mixed).cost == RankingCost(4, 8)
        rewards = scorer.score(mixed)
        assert scorer.cost.pairs == 4
    assert [reward.value for reward in rewards] == [0.0, 1.0, 1.0, 0.0, 0.5]
    assert {reward.line for reward in rewards} == {"compare/1"}
    assert {frozenset((pair.answer_a, pair.answer_b)) for pair in judge.shown if pair.question == "q"} == {
        frozenset(two) for two in (("a", "aaa"), ("a", "aa"), ("aa", "aaa"))
    }


def test_equal_prompts_are_separate_groups_with_a_number_of_generations() -> None:
    with GroupReward(Judge(), num_generations=2) as scorer:
        rewards = scorer.score(samples_of("a", "aa", "aaaa", "aaa"))
        with pytest.raises(
            InvalidRequest, match="3 samples are no multiple of num_generations=2: give all completions"
        ):
            scorer.score(samples_of("a", "b", "c"))
    assert [reward.value for reward in rewards] == [0.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "other", [samples_of("a", question="another"), samples_of("a", references=("another",))], ids=["question", "gold"]
)
def test_completions_of_different_prompts_are_never_one_group(other: list[RewardSample]) -> None:
    judge = Judge()
    with GroupReward(judge, num_generations=2) as scorer:
        for samples in (samples_of("a", "aa", "aaa") + other, other + samples_of("a")):
            with pytest.raises(InvalidRequest, match=r"num_generations=2: samples \d and \d have different"):
                scorer.score(samples)
        with pytest.raises(InvalidRequest, match="num_generations=2"):
            scorer.plan(other + samples_of("a"))
    with GroupReward(judge, num_generations=2) as scorer, pytest.raises(InvalidRequest, match="samples 0 and 1 have"):
        TrlReward(scorer)(prompts=["Q", "P"], completions=["q1", "q2"], completion_ids=[[1], [1]])
    assert judge.shown == []


def test_a_group_that_no_ranking_takes_is_refused_before_the_judge_is_asked() -> None:
    judge = Judge()
    with GroupReward(judge) as scorer, pytest.raises(InvalidRequest, match="65 completions have the same question"):
        scorer.score(samples_of(*("a" * length for length in range(1, 66))))
    with (
        GroupReward(judge, max_pairs=2) as scorer,
        pytest.raises(InvalidRequest, match="max_pairs=2: 4 completions need at least 3 pairs"),
    ):
        scorer.score(samples_of("a", "aa", "aaa", "aaaa"))
    assert judge.shown == []


def test_what_cannot_be_compared_has_its_status_and_no_reward() -> None:
    chat = [{"role": "assistant", "content": "<think>dog? no</think> aaaaa"}]
    with GroupReward(Judge()) as scorer:
        rewards = scorer.score(samples_of(chat, "aaa", "bbb", "<think>never ends", None, "odd"))
        lonely = scorer.score(samples_of("a"))
    assert [reward.value for reward in rewards] == [1.0, 0.0, 0.0, None, None, None]
    assert [reward.status for reward in rewards] == [
        Status.OK,
        Status.OK,
        Status.OK,
        Status.EMPTY_PREDICTION,
        Status.INVALID_INPUT,
        Status.INCONSISTENT,
    ]
    assert rewards[0].answer == "aaaaa"
    assert rewards[3].reason == "the completion ends during the thinking"
    assert rewards[4].reason.startswith("the completion is None")
    assert (lonely[0].status, lonely[0].reason) == (Status.INVALID_INPUT, "give 2 to 64 answers, not 1")


def test_a_completion_that_only_ties_is_left_out_and_is_no_failure() -> None:
    with GroupReward(Judge(), failures=FailureHandling(policy="raise")) as scorer:
        rewards = scorer.score(samples_of("aa", "bb", "cc"))
    assert {(reward.value, reward.status, reward.reason) for reward in rewards} == {
        (None, Status.OK, "all 2 pairs of the answer are ties: left out")
    }


def test_the_policies_decide_about_failures() -> None:
    group = samples_of("a", "aa", "odd", " ")

    def values(**handling: Any) -> list[float | None]:
        with GroupReward(Judge(), failures=FailureHandling(**handling)) as scorer:
            return [reward.value for reward in scorer.score(group)]

    assert values() == [0.0, 1.0, None, None]
    assert values(policy="value", value=-1.0, empty_value=-2.0) == [0.0, 1.0, -1.0, -2.0]
    with pytest.raises(RewardFailed, match="1 INCONSISTENT"):
        values(policy="raise")
    with (
        GroupReward(Judge(winner=lambda _: None), failures=FailureHandling(window=32)) as scorer,
        pytest.raises(RewardFailureRate, match="32 of the last 32 rewards failed"),
    ):
        scorer.score(samples_of(*(letter * 3 for letter in "abcdefghijklmnopqrstuvwxyz012345")))


def test_hold_compares_only_the_pairs_again_that_failed() -> None:
    judge = Judge(ServerUnreachable("gone"), 1)
    with GroupReward(judge, failures=FailureHandling(policy="hold", hold_s=60)) as scorer:
        rewards = scorer.score(samples_of("a", "aa", "aaa"))
    assert [reward.value for reward in rewards] == [0.0, 0.5, 1.0]
    assert len(judge.shown) == 4


def test_a_server_that_is_gone_excludes_and_a_wrong_token_raises() -> None:
    unreachable = ServerUnreachable("nothing listens")
    with GroupReward(Judge(*[unreachable] * 99), deadline_s=0.3) as scorer:
        rewards = scorer.score(samples_of("a", "b"))
    assert {reward.value for reward in rewards} == {None}
    assert {reward.status for reward in rewards} <= {Status.UNAVAILABLE, Status.TIMEOUT}
    with GroupReward(Judge(*[AccessDenied("wrong token")] * 9)) as scorer, pytest.raises(AccessDenied):
        scorer.score(samples_of("a", "b"))
    unknown_host = ServerUnreachable("no such host")
    unknown_host.may_pass = False
    with GroupReward(Judge(*[unknown_host] * 99)) as scorer, pytest.raises(ServerUnreachable, match="no such host"):
        scorer.score(samples_of("a", "b"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "smile"}, "smile"),
        ({"by": "compare?image=true"}, "a reward sample has no picture"),
        ({"num_generations": 1}, "num_generations=1: give a number from 2 to 64"),
        ({"num_generations": 65}, "num_generations=65: give a number from 2 to 64"),
        ({"num_generations": 8, "max_pairs": 6}, "max_pairs=6: 8 completions need at least 7 pairs"),
        ({"max_pairs": 0}, "max_pairs=0: give a whole number"),
        ({"extraction": "box"}, "extraction='box'"),
        ({"server": 3}, "server is an int"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        GroupReward(**arguments)


def test_a_budget_limits_the_pairs_and_a_copy_has_the_same_settings() -> None:
    with GroupReward(Judge(), max_pairs=3, by="compare?references=true") as scorer:
        (first, *_) = scorer.score(samples_of("a", "aa", "aaa", "aaaa", references=("right",)))
        assert (first.value, scorer.cost.pairs, scorer.needs_references) == (0.0, 3, True)
    copy = pickle.loads(pickle.dumps(GroupReward("127.0.0.1:9", max_pairs=7)))  # noqa: S301 - made here
    assert copy.__getstate__() == GroupReward("127.0.0.1:9", max_pairs=7).__getstate__()


def test_concurrent_calls_on_several_loops_do_not_mix() -> None:
    with GroupReward(Judge()) as scorer:

        async def many() -> list[list[float | None]]:
            groups = [samples_of("a" * (place + 1), "a" * 20, question=str(place)) for place in range(8)]
            return [[r.value for r in found] for found in await asyncio.gather(*map(scorer.ascore, groups))]

        assert asyncio.run(many()) == asyncio.run(many()) == [[0.0, 1.0]] * 8


@pytest.mark.parametrize("kind", [TrlReward, AsyncTrlReward])
def test_trl_calls_it_like_a_scorer_and_needs_no_references(kind: type) -> None:
    batch: dict[str, Any] = {
        "prompts": [[{"role": "user", "content": "Which?"}]] * 3,
        "completions": [[{"role": "assistant", "content": text}] for text in ("a", "", "aaa")],
        "completion_ids": [[1]] * 3,
    }
    judge = Judge()
    with GroupReward(judge) as scorer:
        values = kind(scorer)(**batch)
        if asyncio.iscoroutine(values):
            values = asyncio.run(values)
    assert values == [0.0, None, 1.0]
    assert [(pair.question, list(pair.references)) for pair in judge.shown] == [("Which?", [])]
    with GroupReward(Judge(), "compare?references=true") as scorer:
        with pytest.raises(InvalidRequest, match="references: there is no column"):
            kind(scorer)._samples(batch["prompts"], batch["completions"], {"completion_ids": [[1]] * 3})
        (sample, *_) = kind(scorer)._samples(batch["prompts"], batch["completions"], {"answer": ["r", "s", "t"]})
        assert sample.references == ("r",)


def test_one_list_of_the_completions_gives_rewards_too() -> None:
    def by_length(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        reply = echo_comparisons(request, winner=lambda _: "tie")
        for pair, result in zip(request.pairs, reply.pairs, strict=True):
            lengths = [len(text) for text in (pair.answer_a, pair.answer_b, *pair.others)]
            ranks = [1 + sum(other > each for other in lengths) for each in lengths]
            result.winner = judging_pb2.WINNER_UNSPECIFIED
            result.lists.add(shown=range(len(ranks)), ranks=ranks)
        return reply

    with GroupReward(StubTransport(compare=by_length), "compare:listwise") as scorer:
        samples = samples_of("a", "aaa", "aa", "bb", "", None)
        assert scorer.plan(samples).cost == RankingCost(1, 4)
        rewards = scorer.score(samples)
        assert scorer.cost.pairs == 1
    assert [reward.value for reward in rewards] == [0.0, 1.0, 0.5, 0.5, None, None]
    with pytest.raises(InvalidRequest, match="max_pairs is for pairs"):
        GroupReward("h:1", "compare:listwise", max_pairs=3)
