"""A small real server: the wire, without models behind it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
import grpc.aio

from gradewire.pairs import Winner
from gradewire.testing import StubTransport, echo_comparisons, echo_scores
from gradewire.transport import COMPARE, COMPARE_STREAM, PREPARE, SCORE, SCORE_STREAM
from gradewire_proto.v1 import (
    judging_pb2,
    judging_pb2_grpc,
    models_pb2,
    models_pb2_grpc,
    references_pb2,
    references_pb2_grpc,
    scoring_pb2,
    scoring_pb2_grpc,
    types_pb2,
)


@dataclass
class Fault:
    """How a call ends instead of being answered; a stream does so after some messages."""

    code: grpc.StatusCode
    details: str = ""
    pushback_ms: int | None = None
    after_messages: int = 0


@dataclass
class Script:
    """What the small server does; the test may change it at any time.

    Attributes:
        faults: Taken from the front, one a call, while there are any; not by Models.List.
        list_faults: The same of Models.List.
        score: From item to score.
        winner: From pair to winner.
        limits: Told by Models.List.
        hold: Calls are answered only while this is set.
        requests: All requests of Score and all entries of Prepare, as they came.
        metadata: Of every call.
        trailing: Sent with every answer.
        peers: Who called, each connection as one.
        streams: Number of streams opened.
    """

    faults: list[Fault] = field(default_factory=list)
    list_faults: list[Fault] = field(default_factory=list)
    score: Callable[[types_pb2.Item], float | None] = lambda item: float(item.prediction in item.references)
    winner: Callable[[judging_pb2.Pair], Winner | None] = lambda _: "a"
    limits: models_pb2.Limits = field(default_factory=models_pb2.Limits)
    hold: threading.Event = field(default_factory=threading.Event)
    requests: list[scoring_pb2.ScoreRequest | references_pb2.PrepareRequest] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)
    trailing: tuple[tuple[str, str], ...] = ()
    peers: list[str] = field(default_factory=list)
    listed: int = 0
    streams: int = 0

    def __post_init__(self) -> None:
        self.hold.set()


# ruff: noqa: N802 - gRPC's names of methods
# ruff: noqa: ASYNC110 - the test sets the event from another thread


class _Servicer(
    scoring_pb2_grpc.ScoringServicer,
    judging_pb2_grpc.JudgingServicer,
    references_pb2_grpc.ReferencesServicer,
    models_pb2_grpc.ModelsServicer,
):
    def __init__(self, script: Script) -> None:
        self.script = script
        self.stub = StubTransport(
            lambda request: echo_scores(request, score=self.script.score),
            compare=lambda request: echo_comparisons(request, winner=self.script.winner),
        )

    async def Score(
        self, request: scoring_pb2.ScoreRequest, context: grpc.aio.ServicerContext
    ) -> scoring_pb2.ScoreResponse:
        fault = await self._begin(context)
        self.script.requests.append(request)
        await self._end(fault, context)
        return await self.stub.unary(SCORE, request, timeout_s=10)

    async def ScoreStream(
        self, request_iterator: AsyncIterator[scoring_pb2.ScoreStreamRequest], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[scoring_pb2.ScoreStreamResponse]:
        fault = await self._begin(context)
        self.script.streams += 1
        sent = 0
        async for response in self.stub.stream(SCORE_STREAM, aiter(request_iterator)):
            if fault is not None and sent == fault.after_messages:
                break
            yield response
            sent += 1
        await self._end(fault, context)

    async def Compare(
        self, request: judging_pb2.CompareRequest, context: grpc.aio.ServicerContext
    ) -> judging_pb2.CompareResponse:
        fault = await self._begin(context)
        await self._end(fault, context)
        return await self.stub.unary(COMPARE, request, timeout_s=10)

    async def CompareStream(
        self, request_iterator: AsyncIterator[judging_pb2.CompareStreamRequest], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[judging_pb2.CompareStreamResponse]:
        fault = await self._begin(context)
        self.script.streams += 1
        sent = 0
        async for response in self.stub.stream(COMPARE_STREAM, aiter(request_iterator)):
            if fault is not None and sent == fault.after_messages:
                break
            yield response
            sent += 1
        await self._end(fault, context)

    async def Prepare(
        self, request: references_pb2.PrepareRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[references_pb2.PrepareProgress]:
        fault = await self._begin(context)
        self.script.requests.append(request)
        await self._end(fault, context)
        async for progress in self.stub.stream(PREPARE, request, timeout_s=10):
            yield progress

    async def List(
        self, request: models_pb2.ListModelsRequest, context: grpc.aio.ServicerContext
    ) -> models_pb2.ListModelsResponse:
        del request
        self.script.listed += 1
        context.set_trailing_metadata(self.script.trailing)
        await self._end(self.script.list_faults.pop(0) if self.script.list_faults else None, context)
        return models_pb2.ListModelsResponse(limits=self.script.limits, server_version="small")

    async def _begin(self, context: grpc.aio.ServicerContext) -> Fault | None:
        self.script.metadata.append(dict(context.invocation_metadata()))
        self.script.peers.append(context.peer())
        context.set_trailing_metadata(self.script.trailing)
        while not self.script.hold.is_set():
            await asyncio.sleep(0.005)
        return self.script.faults.pop(0) if self.script.faults else None

    async def _end(self, fault: Fault | None, context: grpc.aio.ServicerContext) -> None:
        if fault is not None:
            if fault.pushback_ms is not None:
                pushback = ("grpc-retry-pushback-ms", str(fault.pushback_ms))
                context.set_trailing_metadata((*self.script.trailing, pushback))
            await context.abort(fault.code, fault.details)


@dataclass
class SmallServer:
    """Where it listens, and what it does."""

    address: str
    script: Script


@contextmanager
def run_small_server(port: int = 0, script: Script | None = None) -> Iterator[SmallServer]:
    """Serve on a thread, so that blocking tests can talk to it; at a free port unless one is said.

    Where a client waits already, give the script: its call may arrive before the body of `with` runs.
    """
    script = script or Script()
    started = threading.Event()
    stop = asyncio.Event()
    where: list[str] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", 4 * 1024 * 1024)])
        servicer = _Servicer(script)
        scoring_pb2_grpc.add_ScoringServicer_to_server(servicer, server)
        judging_pb2_grpc.add_JudgingServicer_to_server(servicer, server)
        references_pb2_grpc.add_ReferencesServicer_to_server(servicer, server)
        models_pb2_grpc.add_ModelsServicer_to_server(servicer, server)
        where.append(f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}")
        await server.start()
        started.set()
        await stop.wait()
        await server.stop(None)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(10)
    try:
        yield SmallServer(where[0], script)
    finally:
        script.hold.set()
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
