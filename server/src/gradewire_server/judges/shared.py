"""Judges that several server processes share: messages to the judges' host process, and the host's client."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar

from grpc import StatusCode, aio
from pydantic import TypeAdapter
from typing_extensions import override

from gradewire_proto.tracing.spans import current_span
from gradewire_server.domain.caller import current_caller
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import JudgeAnswer, JudgeNeed
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.judges.backend import Judge, JudgeBackend, JudgeUnavailableError, failed_reply
from gradewire_server.judges.wrappers import TIMED_OUT
from gradewire_server.resilience import SingleFlight

_log = logging.getLogger(__name__)

SERVICE: Final = "gradewire.internal.JudgeHost"
UNBOUNDED: Final = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
"""gRPC options without size limits, because the server has already checked each caller's request."""


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A request to a judge.

    Attributes:
        need: The need that the judge must answer. Its `model` has the form NAME@DIGEST.
        caller: The caller's name, so that callers from all processes take turns in the judge's queue.
    """

    need: JudgeNeed
    deadline_s: float | None
    caller: str = ""


@dataclass(frozen=True, slots=True)
class HostState:
    """The host's open judges."""

    loaded: Mapping[str, ModelStatus]
    troubles: Mapping[str, str]


class Stopping(Enum):
    """A reply that means that the host is stopping. The caller then sends the request to the next host."""

    STOPPING = "stopping"


NAME: Final = TypeAdapter(str)
OPEN_REPLY: Final[TypeAdapter[ModelStatus | Failure | Stopping]] = TypeAdapter(ModelStatus | Failure | Stopping)
ASK_REQUEST: Final = TypeAdapter(HostRequest)
ASK_REPLY: Final[TypeAdapter[JudgeReply[JudgeAnswer] | Stopping]] = TypeAdapter(JudgeReply[JudgeAnswer] | Stopping)
STATE: Final = TypeAdapter(HostState)


def path(method: str) -> str:
    """Return a method's gRPC name."""
    return f"/{SERVICE}/{method}"


R = TypeVar("R")

AWAY_S: Final = 30.0
"""Seconds that a request waits for a host, which usually restarts within two seconds."""
_AGAIN_S: Final = 0.1
_OPTIONS: Final = (
    *UNBOUNDED,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
_GONE: Final = "the process that runs the judges is not running"
_AWAY: Final = Failure(Status.UNAVAILABLE, f"{_GONE}; a new process is starting. Try again", retry_after_s=5.0)
_LOST: Final = Failure(
    Status.UNAVAILABLE, "the process that runs the judges ended during this request. Try again", retry_after_s=2.0
)
_DEFECT: Final = Failure(Status.INTERNAL, "the process that runs the judges failed. See the server's log")
_CLOSED: Final = Failure(Status.UNAVAILABLE, "the judge is being closed")


class SharedJudge(Judge):
    """A judge that the host has opened. Unlike all other judges, this judge uses the digest in `need.model`.

    Attributes:
        shown: The judge's status in the current host.
    """

    def __init__(self, status: ModelStatus, judges: "SharedJudges") -> None:
        self.shown = status
        self._judges = judges

    @property
    @override
    def status(self) -> ModelStatus:
        return self.shown

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        # Request the judge by digest, so that a new judge's verdicts are never stored for this judge. Prefer the need's
        # digest, because a new judge may have replaced this judge since the look-up in the caches.
        model = f"{self.shown.name}@{need.model.partition('@')[2] or self.shown.digest}"
        return await self._judges.ask(HostRequest(replace(need, model=model), deadline_s, current_caller()))

    @override
    def trouble(self) -> str:
        return self._judges.trouble(self.shown.name)


class SharedJudges(JudgeBackend):
    """A backend for the host's judges. Only for the event loop that created the backend.

    If you cancel a call, the host also cancels this call.

    Args:
        address: ``unix:PATH``.
        files: A backend that only lists built judges.
    """

    def __init__(self, address: str, files: JudgeBackend, *, away_s: float = AWAY_S) -> None:
        self._files = files
        self._away_s = away_s
        self._opened: dict[str, SharedJudge] = {}
        self._opening: SingleFlight[str, ModelStatus | Failure] = SingleFlight()
        self._channel = aio.insecure_channel(address, options=_OPTIONS)
        self._call_open = self._channel.unary_unary(
            path("Open"), request_serializer=NAME.dump_json, response_deserializer=OPEN_REPLY.validate_json
        )
        self._call_ask = self._channel.unary_unary(
            path("Ask"), request_serializer=ASK_REQUEST.dump_json, response_deserializer=ASK_REPLY.validate_json
        )
        self._call_watch = self._channel.unary_stream(
            path("Watch"), request_serializer=NAME.dump_json, response_deserializer=STATE.validate_json
        )
        self._state: HostState | None = None
        self._found_hosts = 0
        self._changed = asyncio.Event()
        self._closed = False
        self._watching = asyncio.create_task(self._watch_always())

    @override
    def listed(self) -> Sequence[ModelStatus]:
        loaded = {} if self._state is None else self._state.loaded
        return [loaded.get(status.name, status) for status in self._files.listed()]

    def trouble(self, name: str) -> str:
        """Return the reason why a judge cannot answer now, or "" if the judge works."""
        return _GONE if self._state is None else self._state.troubles.get(name, "")

    @override
    async def open(self, name: str) -> SharedJudge:
        status = await self._open(name)
        if isinstance(status, Failure):
            raise JudgeUnavailableError(status)
        judge = self._opened[name] = SharedJudge(status, self)
        return judge

    async def ask(self, request: HostRequest) -> JudgeReply[Any]:
        """Send a request to the host, or to the next host if the host shuts down first."""
        span = current_span()
        metadata = None if span is None else span.metadata()
        answer = await self._answer(lambda: self._call_ask(request, metadata=metadata), request.deadline_s)
        return failed_reply(answer) if isinstance(answer, Failure) else answer

    @override
    async def close(self) -> None:
        await self._opening.cancel()
        self._closed = True
        self._changed.set()
        self._watching.cancel()
        await self._channel.close()
        await asyncio.wait((self._watching,))
        await self._files.close()

    async def _open(self, name: str) -> ModelStatus | Failure:
        return await self._answer(lambda: self._call_open(name), None)

    async def _answer(self, ask: Callable[[], Awaitable[R | Stopping | None]], deadline_s: float | None) -> R | Failure:
        """Return the first answer from a host that is not shutting down."""
        stopping_host = 0
        while (failure := await self._until_found(deadline_s, after=stopping_host)) is None:
            stopping_host = self._found_hosts
            try:
                answer = await ask()
            except aio.AioRpcError as error:
                return _failure(error)
            except asyncio.CancelledError:
                return self._if_closed()
            if answer is None:  # gRPC could not parse the reply, and has logged this
                return _DEFECT
            if not isinstance(answer, Stopping):
                return answer
        return failure

    async def _until_found(self, deadline_s: float | None, *, after: int) -> Failure | None:
        """Wait for a host with a number higher than `after`; return a failure if no such host starts in time."""
        until_s = asyncio.get_running_loop().time() + self._away_s
        late = deadline_s is not None and deadline_s < until_s
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline_s if late else until_s):
                while not self._is_found(after) and not self._closed:
                    await self._changed.wait()
        if self._closed:
            return _CLOSED
        if not self._is_found(after):
            return TIMED_OUT if late else _AWAY
        return None

    def _is_found(self, after: int) -> bool:
        return self._state is not None and self._found_hosts > after

    async def _watch_always(self) -> None:
        while True:
            try:
                async for state in self._call_watch("", wait_for_ready=True):
                    # If gRPC cannot parse a state, for example from a different version, the state is None.
                    if state is not None:
                        self._take(state)
            except aio.AioRpcError as error:
                _log.debug("stopped watching the judge host: %s", error.code().name)
            if self._state is not None:
                _log.warning(
                    "the process that runs the judges has ended. Judges answer again once a new process has started"
                )
                self._state = None
            await asyncio.sleep(_AGAIN_S)

    def _take(self, state: HostState) -> None:
        new = self._state is None
        self._state = state
        self._found_hosts += new
        self._changed.set()
        self._changed = asyncio.Event()
        for name, judge in self._opened.items():
            # Another process may have opened the judge since the look-up, or a new host may have found different files.
            judge.shown = state.loaded.get(name, judge.shown)
            if new and name not in self._opening:
                self._opening.begin(name, partial(self._open, name))

    def _if_closed(self) -> Failure:
        """Return the failure if `close` cancelled the call; raise CancelledError if the caller cancelled it."""
        caller = asyncio.current_task()
        if not self._closed or caller is None or caller.cancelling():
            raise asyncio.CancelledError
        return _CLOSED


def _failure(error: aio.AioRpcError) -> Failure:
    if error.code() in {StatusCode.UNAVAILABLE, StatusCode.CANCELLED}:
        return _LOST
    _log.error("the judge host answered %s: %s", error.code().name, error.details())
    return _DEFECT
