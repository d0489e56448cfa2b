"""The caller of a request with its rights, and the turns of its work."""

from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Final, Protocol


class Scope(StrEnum):
    """A kind of work that a token may allow."""

    SCORE = "score"
    """Score and ScoreStream with metrics that need no judge."""
    PREPARE = "prepare"
    """References.Prepare."""
    JUDGE = "judge"
    """All work of a judge: judge metrics, comparisons, and generated synthetic answers."""
    ADMIN = "admin"
    """Data about all tenants: snapshots, and /metrics over HTTP if `auth_http` requires a token."""


ALL_SCOPES: Final = frozenset(Scope)


class Quota(Protocol):
    """The tokens of text that a tenant may still send."""

    def take(self, tokens: int) -> float:
        """Take `tokens` if enough are left.

        Returns:
            0.0 if they were taken; otherwise the seconds until enough will be left.
        """

    def take_in_turn(self, tokens: int) -> bool:
        """Take `tokens` and return True, if enough are left and nobody waits for them; otherwise return False."""

    async def wait(self, tokens: int) -> None:
        """Wait until enough are left and take `tokens`, first come, first served. May be cancelled."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, which takes turns with other callers.

    Attributes:
        key: Its identity among callers: the tenant's name, or else the host that a call comes from.
        namespace: The namespace of the sets, verdicts and cache entries that it sees; "" for the server's own.
        quota: Its quota of text; None for no limit.
        tenant: The name of its tenant in the tokens file; "" without one.
    """

    key: str = ""
    weight: float = 1.0
    namespace: str = ""
    scopes: frozenset[Scope] = ALL_SCOPES
    quota: Quota | None = None
    tenant: str = ""


LOCAL: Final = Caller()
"""The caller for work of the process that embeds the server."""


@lru_cache(4096)
def anonymous_caller(peer: str) -> Caller:
    """Return a caller that is identified by its host alone.

    Args:
        peer: The connection's address as gRPC writes it, for example ``ipv4:127.0.0.1:50514``.
    """
    return Caller(peer.rpartition(":")[0])


_current_caller: Final[ContextVar[str]] = ContextVar("asking", default=LOCAL.key)


def current_caller() -> str:
    """Return the `key` of the caller that this task works for; that of `LOCAL` for work of the server itself."""
    return _current_caller.get()


def set_current_caller(key: str) -> None:
    """Make this the caller of the current task and of tasks that it starts later."""
    _current_caller.set(key)


class Lane(IntEnum):
    """The priority of work: interactive work goes first, and bulk work keeps a guaranteed share."""

    INTERACTIVE = 0
    BULK = 1


@dataclass(slots=True, eq=False)
class Turn:
    """A piece of admitted work, with the tokens that it has put into an encoder's queue so far."""

    lane: Lane = Lane.INTERACTIVE
    tokens: int = 0

    def queued(self, tokens: int) -> None:
        """Record tokens that were put into an encoder's queue."""
        self.tokens += tokens

    def computed(self, tokens: int) -> None:
        """Record tokens that were computed, without those of texts that were abandoned or failed."""


_NO_CALLERS_TURN: Final = Turn()
_turn: Final[ContextVar[Turn]] = ContextVar("turn", default=_NO_CALLERS_TURN)


def current_turn() -> Turn:
    """Return the turn of the current task; work of the server itself counts as interactive."""
    return _turn.get()


def take_turn(turn: Turn) -> None:
    """Make this the turn of the current task and of tasks that it starts later."""
    _turn.set(turn)
