"""Judging.Complete: what a judge is shown of a chat, what is refused, and what becomes of a judge that fails."""

import asyncio
from typing import Any

import pytest
from tests.support.engines.hash_engine import HashEngine
from tests.support.judges.scripted import saying, shown
from tests.support.servers.handlers import handlers_over
from tests.support.servers.wire import error_of, wire_server

from gradewire_proto.v1 import judging_pb2, types_pb2
from gradewire_server.domain.caller import Caller, Scope
from gradewire_server.domain.judge import Generate
from gradewire_server.domain.result import Failure, Status
from gradewire_server.requests.admission.admission import Admission
from gradewire_server.requests.complete import MAX_TOKENS, MAX_TURNS
from gradewire_server.requests.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    NothingLoadedError,
    OverloadedError,
)
from gradewire_server.rpc.authentication import Authentication
from gradewire_server.settings.limits import Capacity, Limits

SYSTEM, USER, ASSISTANT = (
    judging_pb2.CHAT_ROLE_SYSTEM,
    judging_pb2.CHAT_ROLE_USER,
    judging_pb2.CHAT_ROLE_ASSISTANT,
)


def turn(role: Any, text: str, **fields: Any) -> judging_pb2.ChatTurn:
    return judging_pb2.ChatTurn(role=role, text=text, **fields)


def asked(*turns: judging_pb2.ChatTurn, **fields: Any) -> judging_pb2.CompleteRequest:
    return judging_pb2.CompleteRequest(turns=turns or [turn(USER, "hello")], **fields)


@pytest.fixture
def engine() -> HashEngine:
    engine = HashEngine()
    engine.script.on_generate = saying("one two three four")
    return engine


async def test_a_chat_is_shown_as_it_is(engine: HashEngine) -> None:
    chat = [
        turn(SYSTEM, "Be brief."),
        turn(USER, "Hi."),
        turn(ASSISTANT, "Yes?"),
        turn(USER, "Go"),
        turn(ASSISTANT, "I "),
    ]
    reply = await handlers_over(engine).complete(asked(*chat, stop=["\n"], max_tokens=3))
    (need,) = engine.script.asked
    assert isinstance(need, Generate)
    assert shown(need.prompt) == "system: Be brief.\nuser: Hi.\nassistant: Yes?\nuser: Go\nassistant: I"
    assert (need.max_tokens, need.stop) == (3, ("\n",))
    assert (reply.status, reply.text, reply.complete) == (types_pb2.STATUS_OK, "one two three", False)
    assert (reply.model, reply.model_digest) == ("scripted", engine.digests["scripted"])
    assert reply.generated_tokens == 3
    assert reply.prompt_tokens > 0
    assert reply.cache_hits.computed == 1


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (judging_pb2.CompleteRequest(), "turns"),
        (asked(turn(SYSTEM, "only")), "turns[0].role"),
        (asked(turn(USER, "a"), turn(SYSTEM, "b")), "turns[1].role"),
        (asked(turn(ASSISTANT, "a")), "turns[0].role"),
        (asked(turn(0, "a")), "turns[0].role"),
        (asked(turn(9, "a")), "turns[0].role"),
        (asked(turn(USER, "x" * 1001)), "turns"),
        (asked(turn(USER, "o" + "\u0301" * 31)), "turns[0].text"),
        (asked(*[turn(USER, "a")] * (MAX_TURNS + 1)), "turns"),
        (asked(turn(USER, "a", images=[types_pb2.Image(data=b"x")]), turn(USER, "b")), "turns[0].images"),
        (asked(max_tokens=MAX_TOKENS + 1), "max_tokens"),
        (asked(stop=["a"] * 5), "stop"),
        (asked(stop=["a", ""]), "stop[1]"),
        (asked(stop=["a" * 257]), "stop[0]"),
        (asked(model="x" * 257), "model"),
        (asked(model="scripted@zz"), "model"),
    ],
)
async def test_what_cannot_be_used_is_named(engine: HashEngine, request_: Any, field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await handlers_over(engine, limits=Limits(max_item_bytes=1000)).complete(request_)
    assert caught.value.field == field
    assert not engine.script.asked


async def test_a_judge_that_is_not_there_is_no_answer(engine: HashEngine) -> None:
    with pytest.raises(NothingLoadedError, match="no judge 'other'"):
        await handlers_over(engine).complete(asked(model="other"))


async def test_a_judge_that_fails_is_told_by_the_status(engine: HashEngine) -> None:
    engine.script.failure = Failure(Status.UNAVAILABLE, "its process is down", retry_after_s=2.5)
    reply = await handlers_over(engine).complete(asked())
    assert (reply.status, reply.message, reply.retry_after_s) == (
        types_pb2.STATUS_UNAVAILABLE,
        "its process is down",
        2.5,
    )
    assert not reply.text


async def test_the_deadline_reaches_the_judge_a_little_earlier(engine: HashEngine) -> None:
    now_s = asyncio.get_running_loop().time()
    await handlers_over(engine).complete(asked(), deadline_s=10)
    (deadline_s,) = engine.judge_deadlines_s
    assert deadline_s is not None
    assert now_s + 8 < deadline_s < now_s + 10
    with pytest.raises(DeadlineExceededError):
        await handlers_over(engine).complete(asked(), deadline_s=0)


async def test_it_takes_a_permit_for_as_long_as_the_judge_takes(engine: HashEngine) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    engine.before = lambda _model: asyncio.shield(gate)
    handlers = handlers_over(engine, admission=Admission(Capacity(max_items=1)))
    first = asyncio.create_task(handlers.complete(asked()))
    while not engine.judge_deadlines_s:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await handlers.complete(asked())
    gate.set_result(None)
    assert (await first).status == types_pb2.STATUS_OK
    assert (await handlers.complete(asked())).status == types_pb2.STATUS_OK


class ScoringOnly(Authentication):
    """Every token is good for scoring, and for no judge."""

    def check(self, authorization: str, peer: str) -> Caller:
        del authorization, peer
        return Caller("tenant", scopes=frozenset({Scope.SCORE}))


async def test_it_needs_the_scope_of_judges(engine: HashEngine) -> None:
    async with wire_server(engine=engine, authentication=ScoringOnly()) as wire:
        with pytest.raises(Exception, match="PERMISSION_DENIED") as caught:
            await wire.judging.Complete(asked())
        assert error_of(caught)[1].startswith("turns: needs a token with the scope judge")
    assert not engine.script.asked
