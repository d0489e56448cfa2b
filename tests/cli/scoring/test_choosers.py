"""A judge as chooser: winners by model, in the order of the pairs, and kept so that a break loses none."""

import json
from pathlib import Path

import pytest
from tests.cli.samples import pair

from gradewire import AsyncClient, Compare, InvalidRequest, Winner
from gradewire.testing import StubTransport, echo_comparisons
from gradewire_cli.results.journal import Journal
from gradewire_cli.scoring.choosers import JudgeChooser, MetricChooser
from gradewire_cli.scoring.pair_engine import AnswerPair, Choice, PairEngine
from gradewire_proto.v1 import judging_pb2
from gradewire_stats.comparison.paired_rows import TieMargin


class Judge:
    """Prefers the longer answer, and none of equally long ones; notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[judging_pb2.Pair] = []

    def __call__(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        self.asked += [each for each in request.pairs if each.id]
        return echo_comparisons(request, winner=self._winner)

    @staticmethod
    def _winner(pair: judging_pb2.Pair) -> Winner | None:
        apart = len(pair.answer_a) - len(pair.answer_b)
        return "a" if apart > 0 else "b" if apart < 0 else None


async def opened(judge: Judge, by: Compare | None = None) -> JudgeChooser:
    client = AsyncClient(transport=StubTransport(compare=judge))
    return await JudgeChooser.open(client, by or Compare(references=True, model="j"), "compare", priority="bulk")


async def choices(chooser: JudgeChooser, count: int) -> list[tuple[int, Choice]]:
    found = [each async for batch in chooser.choose([pair(number) for number in range(count)]) for each in batch]
    return [(each.index, choice) for each, choice in found]


async def test_winners_are_models_with_what_both_orders_said() -> None:
    judge = Judge()
    chooser = await opened(judge)
    ((_, choice),) = await choices(chooser, 1)

    assert chooser.identity == {"by": "compare/1?model=j&references=true"}
    assert judge.asked[0].question == "question 0?"
    assert list(judge.asked[0].references) == ["cat", "kitten"]
    assert (choice.winner, choice.status, choice.probability_b) == ("model_b", "OK", 1.0)
    assert choice.orders == (
        {"first": "model_a", "winner": "model_b", "probability_a": 0.0, "probability_b": 1.0, "probability_tie": 0.0},
        {"first": "model_b", "winner": "model_b", "probability_a": 0.0, "probability_b": 1.0, "probability_tie": 0.0},
    )


async def test_pairs_come_in_their_order_however_many_there_are() -> None:
    found = await choices(await opened(Judge()), 500)
    assert [index for index, _ in found] == list(range(500))


async def test_a_run_that_goes_on_asks_for_what_is_missing_alone(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    pairs = [pair(number) for number in range(40)]
    judge = Judge()
    chooser = await opened(judge)
    with Journal(path) as journal:
        engine = PairEngine(chooser, journal)
        engine.open(resume=False)
        await engine.judge(pairs)
    whole = path.read_bytes()
    kept = whole.splitlines(keepends=True)[:17]
    path.write_bytes(b"".join(kept) + b'{"id": "torn')

    again = Judge()
    chooser = await opened(again)
    with Journal(path) as journal:
        engine = PairEngine(chooser, journal)
        engine.open(resume=True)
        chosen = await engine.judge(pairs)
        engine.finish(chosen)
    assert path.read_bytes() == whole
    assert sorted(int(each.id[1:]) for each in again.asked) == list(range(17, 40))
    assert [each.index for each, _ in chosen] == list(range(40))
    assert json.loads(kept[0])["orders"][1]["first"] == "model_b"


async def test_a_judge_that_the_server_does_not_have_is_an_error_at_once() -> None:
    def refusing(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        raise InvalidRequest(f"no judge {request.parameters.model}")

    with pytest.raises(InvalidRequest, match="no judge j"):
        await JudgeChooser.open(AsyncClient(transport=StubTransport(compare=refusing)), Compare(model="j"), "compare")


async def chosen(pairs: list[AnswerPair], tie_margin: TieMargin = 0.2) -> list[Choice]:
    chooser = MetricChooser("smile", "smile:v1/1", tie_margin)
    return [choice async for batch in chooser.choose(pairs) for _, choice in batch]


async def test_the_higher_score_wins_beyond_the_margin() -> None:
    choices = await chosen([pair(0, 0.2, 0.9), pair(1, 0.9, 0.2), pair(2, 0.5, 0.6)])
    assert [choice.winner for choice in choices] == ["model_b", "model_a", "tie"]


async def test_verdicts_choose_where_they_are_asked_for() -> None:
    pairs = [pair(0, 0.2, 0.9, (True, True)), pair(1, 0.5, 0.5, (True, False)), pair(2, 0.2, 0.9)]
    choices = await chosen(pairs, "verdict")
    assert [choice.winner for choice in choices] == ["tie", "model_a", None]
    assert (choices[2].status, choices[2].message) == ("NO_VERDICT", "smile gives no verdict")


async def test_a_pair_without_a_score_has_a_status_and_its_neighbours_a_winner() -> None:
    choices = await chosen([pair(0, 0.2, 0.9), pair(1, None, 0.9), pair(2, 0.2, None), pair(3, 0.9, 0.2)])
    assert [choice.winner for choice in choices] == ["model_b", None, None, "model_a"]
    assert [choice.message for choice in choices[1:3]] == ["base has no score for smile", "new has no score for smile"]
    assert {choice.status for choice in choices[1:3]} == {"EMPTY_PREDICTION"}


async def test_more_pairs_than_a_batch_keep_their_order() -> None:
    pairs = [pair(number) for number in range(2500)]
    chooser = MetricChooser("smile", "", 0.2)
    order = [each.index async for batch in chooser.choose(pairs) for each, _ in batch]
    assert order == list(range(2500))
    assert chooser.identity == {"by": "smile", "tie_margin": 0.2}
