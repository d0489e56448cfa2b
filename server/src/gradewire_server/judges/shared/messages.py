"""What server processes and the judge host say to each other: JSON, in calls of gRPC over a socket of this user.

Floats survive exactly. Deadlines are those of the system's monotonic clock, which is the same in all processes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from pydantic import TypeAdapter

from gradewire_server.domain.items import Failure, Timing
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import ModelStatus

M = TypeVar("M")

SERVICE: Final = "gradewire.internal.JudgeHost"
UNBOUNDED: Final = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
"""Options of gRPC: what a caller may send was checked where it came in."""


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A question for a judge.

    Attributes:
        need: Its `model` is NAME@DIGEST.
        deadline_s: In `time.monotonic()` seconds.
        caller: Who asks: callers take turns in the judge's queue, whichever process they come through.
    """

    need: Choose | Generate
    deadline_s: float | None
    caller: str = ""


@dataclass(frozen=True, slots=True)
class HostReply:
    """What came of a question; attributes as those of `JudgeReply`."""

    answer: Choice | Generated | Failure
    source: AnswerSource = AnswerSource.COMPUTED
    timing: Timing | None = None


@dataclass(frozen=True, slots=True)
class HostState:
    """What the host has open.

    Attributes:
        loaded: Its judges by name.
        troubles: By name, why a judge cannot answer now; only of those that cannot.
    """

    loaded: Mapping[str, ModelStatus]
    troubles: Mapping[str, str]


class Stopping(Enum):
    """What a host that is told to stop says to whatever it is asked: the next one is to be asked."""

    STOPPING = "stopping"


class Codec(Generic[M]):
    """Messages of one kind to JSON and back.

    Args:
        kind: Type of the messages.
    """

    def __init__(self, kind: Any) -> None:
        self._adapter: TypeAdapter[M] = TypeAdapter(kind)

    def encode(self, message: M) -> bytes:
        """Raises ValueError for text that is not Unicode."""
        return self._adapter.dump_json(message)

    def decode(self, data: bytes) -> M:
        """Raises ValueError for what `encode` did not make."""
        return self._adapter.validate_json(data)


NAME: Final[Codec[str]] = Codec(str)
OPENED: Final[Codec[ModelStatus | Failure | Stopping]] = Codec(ModelStatus | Failure | Stopping)
ASKED: Final[Codec[HostRequest]] = Codec(HostRequest)
ANSWERED: Final[Codec[HostReply | Stopping]] = Codec(HostReply | Stopping)
STATE: Final[Codec[HostState]] = Codec(HostState)


def path(method: str) -> str:
    """As gRPC names a method."""
    return f"/{SERVICE}/{method}"
