"""The caller of a request with its rights, and the priority of its work."""

from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Final, Protocol


class Scope(StrEnum):
    """A type of work that a token may allow."""

    SCORE = "score"
    """Score and ScoreStream, with metrics that need no judge."""
    PREPARE = "prepare"
    """References.Prepare."""
    JUDGE = "judge"
    """Everything that uses a judge: judge metrics, comparisons, and writing synthetic answers."""
    ADMIN = "admin"
    """Access to data about all tenants: snapshots, and /metrics over HTTP if `auth_also` contains metrics."""


ALL_SCOPES: Final = frozenset(Scope)


class Quota(Protocol):
    """A tenant's budget of text tokens."""

    def take(self, tokens: int) -> float:
        """Take `tokens` if enough are left.

        Returns:
            0.0 if the tokens were taken; otherwise the seconds until enough will be left.
        """

    def take_in_turn(self, tokens: int) -> bool:
        """Take `tokens` and return True if enough are left and no other request waits; otherwise return False."""

    async def wait(self, tokens: int) -> None:
        """Wait until enough tokens are left, then take `tokens`: first come, first served. May be cancelled."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, whose work takes turns with the work of other callers.

    Attributes:
        key: The caller's identity: the tenant's name, or the client's host if there is no tenant.
        namespace: The namespace of the reference sets, verdicts and cache entries that the caller sees; "" for the
            server's own namespace.
        quota: The caller's token quota; None means no limit.
        tenant: The tenant's name in the tokens file; "" without a tenant.
    """

    key: str = ""
    weight: float = 1.0
    namespace: str = ""
    scopes: frozenset[Scope] = ALL_SCOPES
    quota: Quota | None = None
    tenant: str = ""


LOCAL: Final = Caller()
"""The caller for work that the server's own process starts."""


@lru_cache(4096)
def anonymous_caller(peer: str) -> Caller:
    """Return a caller without a tenant, identified only by the client's host.

    Args:
        peer: The connection's address in gRPC's format, for example ``ipv4:127.0.0.1:50514``.
    """
    return Caller(peer.rpartition(":")[0])


_current_caller: Final[ContextVar[str]] = ContextVar("asking", default=LOCAL.key)


def current_caller() -> str:
    """Return the `key` of the caller that this task works for; for the server's own work, the key of `LOCAL`."""
    return _current_caller.get()


def set_current_caller(key: str) -> None:
    """Set the caller of the current task and of the tasks that it starts later."""
    _current_caller.set(key)


class Lane(IntEnum):
    """The priority of work: interactive work goes first, and bulk work keeps a guaranteed share."""

    INTERACTIVE = 0
    BULK = 1


@dataclass(slots=True, eq=False)
class Turn:
    """A piece of admitted work, with the number of tokens that it has queued for encoders so far."""

    lane: Lane = Lane.INTERACTIVE
    tokens: int = 0

    def queued(self, tokens: int) -> None:
        """Record tokens that were queued for an encoder."""
        self.tokens += tokens

    def computed(self, tokens: int) -> None:
        """Record tokens that an encoder computed; abandoned and failed texts do not count."""


_NO_CALLERS_TURN: Final = Turn()
_turn: Final[ContextVar[Turn]] = ContextVar("turn", default=_NO_CALLERS_TURN)


def current_turn() -> Turn:
    """Return the turn of the current task; the server's own work counts as interactive."""
    return _turn.get()


def take_turn(turn: Turn) -> None:
    """Set the turn of the current task and of the tasks that it starts later."""
    _turn.set(turn)
