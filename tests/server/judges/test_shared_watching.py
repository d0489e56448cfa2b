"""How a server process watches the judge host, and what it makes of answers that it cannot read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import grpc
import pytest
from tests.server.judges.scripted_service import choose
from tests.server.judges.served_host import until
from tests.support.judges.scripted import ScriptedJudges

from gradewire_server.domain.items import Failure, Status
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.shared import SERVICE, STATE, HostRequest, HostState, SharedJudges

_STATE = STATE.dump_json(HostState({}, {}))
_Answer = Callable[[bytes, object], Awaitable[bytes]]


class RawHost:
    """Says bytes: what it is asked is counted, and answered with what is no message."""

    def __init__(self, directory: Path, *states: bytes) -> None:
        self.address = f"unix:{directory / 'judges'}"
        self.asked: list[str] = []
        self._states = states
        self._server = grpc.aio.server()
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Watch": grpc.unary_stream_rpc_method_handler(self._watch),
            "Ask": grpc.unary_unary_rpc_method_handler(self._answering("Ask")),
            "Open": grpc.unary_unary_rpc_method_handler(self._answering("Open")),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self._server.add_insecure_port(self.address)

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)

    def _answering(self, method: str) -> _Answer:
        async def answer(_: bytes, __: object) -> bytes:
            self.asked.append(method)
            return b"null"

        return answer

    async def _watch(self, _: bytes, __: object) -> AsyncIterator[bytes]:
        for state in self._states:
            yield state
        await asyncio.Event().wait()


async def test_a_message_that_cannot_be_read_does_not_end_the_watching(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with RawHost(tmp_path, b"not a state", _STATE) as host:
        judges = SharedJudges(host.address, ScriptedJudges("scripted"))
        try:
            await until(lambda: not judges.trouble("scripted"))
            assert "Exception deserializing message" in caplog.text
        finally:
            await judges.close()


async def test_an_answer_that_cannot_be_read_is_a_defect_and_is_not_asked_for_again(tmp_path: Path) -> None:
    async with RawHost(tmp_path, _STATE) as host:
        judges = SharedJudges(host.address, ScriptedJudges("scripted"))
        try:
            async with asyncio.timeout(20):
                answered = (await judges.ask(HostRequest(choose(), None))).answer
                with pytest.raises(JudgeUnavailableError) as opened:
                    await judges.open("scripted")
        finally:
            await judges.close()
    for failure in (answered, opened.value.failure):
        assert isinstance(failure, Failure)
        assert failure.status is Status.INTERNAL
        assert "See the server's log" in failure.message
    assert host.asked == ["Ask", "Open"]
