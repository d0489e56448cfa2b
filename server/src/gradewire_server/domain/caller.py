"""The caller of a request, and the priority of the caller's work."""

from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Final, Protocol


class Scope(StrEnum):
    """A kind of access that a token may grant."""

    SCORE = "score"
    """Access to Score and ScoreStream, with metrics that need no judge."""
    PREPARE = "prepare"
    """Access to References.Prepare."""
    JUDGE = "judge"
    """Access to judge metrics, comparisons, and the generation of synthetic answers."""
    ADMIN = "admin"
    """Access to data about all tenants: snapshots and, if `auth_also` contains "metrics", /metrics over HTTP."""


ALL_SCOPES: Final = frozenset(Scope)


class Quota(Protocol):
    """A tenant's token budget."""

    def take(self, tokens: int) -> float:
        """Take `tokens` and return 0.0. If too few are left, take none and return the seconds until enough are left."""

    def take_in_turn(self, tokens: int) -> bool:
        """Take `tokens` and return True. If too few are left, or another request is waiting, return False."""

    async def wait(self, tokens: int) -> None:
        """Wait until enough tokens are left, then take `tokens`. First come, first served."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, with its rights, weight and quota.

    Attributes:
        key: The tenant's name; without a tenant, the client's host.
        namespace: The namespace of the caller's stored data. "" means the server's own namespace.
        quota: The token quota. None means no limit.
        tenant: The tenant's name, or "" without a tenant.
    """

    key: str = ""
    weight: float = 1.0
    namespace: str = ""
    scopes: frozenset[Scope] = ALL_SCOPES
    quota: Quota | None = None
    tenant: str = ""


LOCAL: Final = Caller()
"""The caller for the server's own work."""


@lru_cache(4096)
def anonymous_caller(peer: str) -> Caller:
    """Return a caller without a tenant. `peer` is an address in gRPC's format, for example ``ipv4:127.0.0.1:50514``."""
    return Caller(peer.rpartition(":")[0])


_current_caller: Final[ContextVar[str]] = ContextVar("asking", default=LOCAL.key)


def current_caller() -> str:
    """Return the key of the current task's caller."""
    return _current_caller.get()


def set_current_caller(key: str) -> None:
    """Set the caller's key for the current task and its future child tasks."""
    _current_caller.set(key)


class Lane(IntEnum):
    """The priority of work. Interactive work goes first, but bulk work has a guaranteed share."""

    INTERACTIVE = 0
    BULK = 1


@dataclass(slots=True, eq=False)
class Turn:
    """A piece of admitted work, with the number of tokens queued for encoders so far."""

    lane: Lane = Lane.INTERACTIVE
    tokens: int = 0

    def queued(self, tokens: int) -> None:
        """Record that `tokens` were queued for an encoder."""
        self.tokens += tokens

    def computed(self, tokens: int) -> None:
        """Record that an encoder computed `tokens`. Abandoned and failed texts do not count."""


_NO_CALLERS_TURN: Final = Turn()
_turn: Final[ContextVar[Turn]] = ContextVar("turn", default=_NO_CALLERS_TURN)


def current_turn() -> Turn:
    """Return the current task's turn. The server's own work counts as interactive."""
    return _turn.get()


def take_turn(turn: Turn) -> None:
    """Set the turn for the current task and its future child tasks."""
    _turn.set(turn)
