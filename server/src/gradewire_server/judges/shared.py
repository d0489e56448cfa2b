"""The judges of this machine that several server processes share: messages to their process, and its client."""

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
from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import JudgeAnswer, JudgeNeed
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.judges.backend import Judge, JudgeBackend, JudgeUnavailableError
from gradewire_server.judges.wrappers import TIMED_OUT
from gradewire_server.resilience import SingleFlight

_log = logging.getLogger(__name__)

SERVICE: Final = "gradewire.internal.JudgeHost"
UNBOUNDED: Final = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
"""Options of gRPC: what a caller may send was checked where it came in."""


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A question for a judge.

    Attributes:
        need: Its `model` is NAME@DIGEST.
        caller: Who asks: callers take turns in the judge's queue, whichever process they come through.
    """

    need: JudgeNeed
    deadline_s: float | None
    caller: str = ""


@dataclass(frozen=True, slots=True)
class HostReply:
    """An answer to a question; attributes as those of `JudgeReply`."""

    answer: JudgeAnswer | Failure
    source: AnswerSource = AnswerSource.COMPUTED
    timing: Timing | None = None


@dataclass(frozen=True, slots=True)
class HostState:
    """The judges that the host has open."""

    loaded: Mapping[str, ModelStatus]
    troubles: Mapping[str, str]


class Stopping(Enum):
    """The reply of a host that is asked to stop, whatever it is asked: the next one is to be asked."""

    STOPPING = "stopping"


NAME: Final = TypeAdapter(str)
OPEN_REPLY: Final[TypeAdapter[ModelStatus | Failure | Stopping]] = TypeAdapter(ModelStatus | Failure | Stopping)
ASK_REQUEST: Final = TypeAdapter(HostRequest)
ASK_REPLY: Final[TypeAdapter[HostReply | Stopping]] = TypeAdapter(HostReply | Stopping)
STATE: Final = TypeAdapter(HostState)


def path(method: str) -> str:
    """Return a method's name for gRPC."""
    return f"/{SERVICE}/{method}"


R = TypeVar("R")

AWAY_S: Final = 30.0
"""Seconds that a question waits for a host; the supervisor starts one again within two as a rule."""
_AGAIN_S: Final = 0.1
_OPTIONS: Final = (
    *UNBOUNDED,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
_GONE: Final = "the process that runs the judges is not there"
_AWAY: Final = Failure(Status.UNAVAILABLE, f"{_GONE}; another one is being started, try again", retry_after_s=5.0)
_LOST: Final = Failure(
    Status.UNAVAILABLE, "the process that runs the judges ended over this; try again", retry_after_s=2.0
)
_DEFECT: Final = Failure(Status.INTERNAL, "the process that runs the judges failed; the server's log says why")
_CLOSED: Final = Failure(Status.UNAVAILABLE, "the judge is being closed")


class HostClient:
    """A client of the judge host. Lives on the event loop it was made on; calls may be cancelled, which the host hears.

    Args:
        found: Called whenever a host was found: the first, and each that took the place of one.
        told: Called with each state that a host tells, before `found`.
    """

    def __init__(
        self, address: str, found: Callable[[], None], told: Callable[[HostState], None], *, away_s: float = AWAY_S
    ) -> None:
        self._found = found
        self._told = told
        self._away_s = away_s
        self._channel = aio.insecure_channel(address, options=_OPTIONS)
        self._open = self._channel.unary_unary(
            path("Open"), request_serializer=NAME.dump_json, response_deserializer=OPEN_REPLY.validate_json
        )
        self._ask = self._channel.unary_unary(
            path("Ask"), request_serializer=ASK_REQUEST.dump_json, response_deserializer=ASK_REPLY.validate_json
        )
        self._watch = self._channel.unary_stream(
            path("Watch"), request_serializer=NAME.dump_json, response_deserializer=STATE.validate_json
        )
        self._state: HostState | None = None
        self._found_hosts = 0
        self._changed = asyncio.Event()
        self._closed = False
        self._watching = asyncio.create_task(self._watch_always())

    @property
    def state(self) -> HostState | None:
        """The judges that the host has open; None while there is none."""
        return self._state

    def trouble(self, name: str) -> str:
        """Return why a judge cannot answer now; empty where it can."""
        return _GONE if self._state is None else self._state.troubles.get(name, "")

    async def open(self, name: str) -> ModelStatus | Failure:
        """Have the host open a judge, or return why it does not; where it stops first, the next one is asked."""
        return await self._answer(lambda: self._open(name), None)

    async def ask(self, request: HostRequest) -> HostReply:
        """Ask the host; where it stops before it has answered, the next one is asked, but where it dies none is."""
        span = current_span()
        metadata = None if span is None else span.metadata()
        answer = await self._answer(lambda: self._ask(request, metadata=metadata), request.deadline_s)
        return HostReply(answer) if isinstance(answer, Failure) else answer

    async def close(self) -> None:
        """Fail what waits."""
        self._closed = True
        self._changed.set()
        self._watching.cancel()
        await self._channel.close()
        await asyncio.wait((self._watching,))

    async def _answer(self, ask: Callable[[], Awaitable[R | Stopping | None]], deadline_s: float | None) -> R | Failure:
        """Return the answer of the first host that does not stop before."""
        stopping_host = 0
        while (failure := await self._until_found(deadline_s, after=stopping_host)) is None:
            stopping_host = self._found_hosts
            try:
                answer = await ask()
            except aio.AioRpcError as error:
                return _failure(error)
            except asyncio.CancelledError:
                return self._if_closed()
            if answer is None:  # gRPC has logged that it could not be read, and the next one would be no other
                return _DEFECT
            if not isinstance(answer, Stopping):
                return answer
        return failure

    async def _until_found(self, deadline_s: float | None, *, after: int) -> Failure | None:
        """Wait for a host, later than the one of number `after`; return why there is none."""
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
                async for state in self._watch("", wait_for_ready=True):
                    if state is not None:  # gRPC has logged that it could not be read, as of a host of another version
                        self._take(state)
            except aio.AioRpcError as error:
                _log.debug("the judge host is not watched any more: %s", error.code().name)
            if self._state is not None:
                _log.warning("the process that runs the judges is gone; judges answer once there is another one")
                self._state = None
            await asyncio.sleep(_AGAIN_S)

    def _take(self, state: HostState) -> None:
        new = self._state is None
        self._state = state
        self._found_hosts += new
        self._changed.set()
        self._changed = asyncio.Event()
        self._told(state)
        if new:
            self._found()

    def _if_closed(self) -> Failure:
        """Return the failure of a call that closing cancelled, not the task that made it."""
        caller = asyncio.current_task()
        if not self._closed or caller is None or caller.cancelling():
            raise asyncio.CancelledError
        return _CLOSED


def _failure(error: aio.AioRpcError) -> Failure:
    if error.code() in {StatusCode.UNAVAILABLE, StatusCode.CANCELLED}:
        return _LOST
    _log.error("the judge host answered %s: %s", error.code().name, error.details())
    return _DEFECT


class SharedJudge(Judge):
    """A judge that the host has opened. Unlike others it looks at `need.model`: a digest in it is asked for."""

    def __init__(self, status: ModelStatus, host: HostClient) -> None:
        self._status = status
        self._host = host

    @property
    @override
    def status(self) -> ModelStatus:
        return self._status

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        # By digest: verdicts of another judge of the name must not be kept as this one's. That of the need comes first:
        # since it was planned, and looked for in the caches, another judge may have come.
        model = f"{self._status.name}@{need.model.partition('@')[2] or self._status.digest}"
        answered = await self._host.ask(HostRequest(replace(need, model=model), deadline_s, current_caller()))
        return JudgeReply(answered.answer, answered.source, answered.timing or Timing())

    @override
    def trouble(self) -> str:
        return self._host.trouble(self._status.name)

    @override
    async def close(self) -> None:
        pass  # it is the host's, and its calls end with the way to the host

    def renew(self, status: ModelStatus) -> None:
        """Take the status of the judge that the host has now: a new host may have found other files."""
        self._status = status


class SharedJudges(JudgeBackend):
    """Judges of the host.

    Args:
        files: The backend that the host has, to list what is built; nothing of it is opened here.
    """

    def __init__(self, address: str, files: JudgeBackend, *, away_s: float = AWAY_S) -> None:
        self._files = files
        self._opened: dict[str, SharedJudge] = {}
        self._opening: SingleFlight[str, ModelStatus | Failure] = SingleFlight()
        self._host = HostClient(address, self._reopen, self._renew, away_s=away_s)

    @override
    def listed(self) -> Sequence[ModelStatus]:
        loaded = {} if self._host.state is None else self._host.state.loaded
        return [loaded.get(status.name, status) for status in self._files.listed()]

    @override
    async def open(self, name: str) -> SharedJudge:
        status = await self._host.open(name)
        if isinstance(status, Failure):
            raise JudgeUnavailableError(status)
        judge = self._opened[name] = SharedJudge(status, self._host)
        return judge

    @override
    async def close(self) -> None:
        await self._opening.cancel()
        await self._host.close()
        await self._files.close()

    def _reopen(self) -> None:
        """Have a new host open what the one before it had."""
        for name in self._opened:
            if name not in self._opening:
                self._opening.begin(name, partial(self._host.open, name))

    def _renew(self, state: HostState) -> None:
        """Take what the host has loaded: at the request of any process, perhaps after failed attempts."""
        for name, status in state.loaded.items():
            if name in self._opened:
                self._opened[name].renew(status)
