"""Handlers of comparisons without a transport: what outlives its deadline, and how long a pair's result may be."""

import asyncio

from tests.support.engines.hash_engine import HashEngine
from tests.support.servers.handlers import handlers_over

from gradewire_proto.v1 import judging_pb2, types_pb2
from gradewire_server.domain.items import Compared, ListVerdict, MetricResult, OrderVerdict, Pair, ScoredResult, Winner
from gradewire_server.requests.convert import PAIRS, read_row
from gradewire_server.settings.limits import Deadlines, Limits

REQUEST = judging_pb2.CompareRequest(pairs=[judging_pb2.Pair(question="which?", answer_a="a", answer_b="b")])


class Stubborn(HashEngine):
    """Its judge heeds no deadline, and takes its time when it is cancelled."""

    let_go = asyncio.Event()

    async def choose(self, *_: object, **__: object) -> object:  # type: ignore[override]
        try:
            await asyncio.Event().wait()
        finally:
            await self.let_go.wait()
        raise AssertionError("nobody lets it end otherwise")


async def test_closing_waits_for_comparisons_that_are_cancelled_behind_their_reply() -> None:
    engine = Stubborn()
    engine.let_go = asyncio.Event()
    handlers = handlers_over(engine, deadlines=Deadlines(default_s=0.1, max_s=0.2))
    reply = await handlers.compare(REQUEST)
    assert reply.pairs[0].status == types_pb2.STATUS_TIMEOUT
    closing = asyncio.create_task(handlers.close())
    await asyncio.sleep(0)
    assert not closing.done()
    engine.let_go.set()
    await closing


def test_reasons_count_for_the_length_of_a_reply_and_are_cut() -> None:
    orders = tuple(OrderVerdict(first, None, reason="r" * 9000) for first in (Winner.A, Winner.B))
    scored = ScoredResult(MetricResult(0.5, compared=Compared(Winner.TIE, orders)))
    assert PAIRS.text_characters(scored) == 18_000
    result = judging_pb2.PairResult()
    PAIRS.fill(result, 0, scored, diagnostics=False)
    assert all(len(order.reason) <= 8192 for order in result.orders)


def test_further_answers_are_normalised_counted_and_ranked_on_the_wire() -> None:
    message = judging_pb2.Pair(question="which?", answer_a="a", answer_b="b", others=["e\u0301", "d"])
    pair = read_row(message, Limits(), check_bytes=True)
    assert isinstance(pair, Pair)
    assert (pair.answers, pair.characters) == (("a", "b", "\u00e9", "d"), 10)
    message.others.append("x" * Limits().max_item_bytes)
    too_large = read_row(message, Limits(), check_bytes=True)
    assert "pair: has " in getattr(too_large, "message", "")
    lists = (ListVerdict((2, 1, 0), (1, 2, 2)), ListVerdict((0, 1, 2)))
    result = judging_pb2.PairResult()
    PAIRS.fill(result, 0, ScoredResult(MetricResult(0.5, compared=Compared(lists=lists))), diagnostics=False)
    assert [(list(each.shown), list(each.ranks)) for each in result.lists] == [([2, 1, 0], [1, 2, 2]), ([0, 1, 2], [])]
    assert result.winner == judging_pb2.WINNER_UNSPECIFIED
