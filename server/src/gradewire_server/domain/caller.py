"""The caller of a request with its rights, and the turn that its work takes."""

from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Final, Protocol


class Scope(StrEnum):
    """A kind of work that a token may be good for."""

    SCORE = "score"
    """Score and ScoreStream with metrics that ask no judge."""
    PREPARE = "prepare"
    """References.Prepare."""
    JUDGE = "judge"
    """Whatever has a judge work: metrics of a judge, comparisons, and written synthetic answers."""
    ADMIN = "admin"
    """What tells of all tenants together: snapshots, and /metrics over HTTP where `auth_http` asks for a token."""


ALL_SCOPES: Final = frozenset(Scope)


class Quota(Protocol):
    """Tokens of text that a tenant may send, and what of them is left."""

    def take(self, tokens: int) -> float:
        """Takes `tokens` where so many are left.

        Returns:
            0.0 where they are taken; else the seconds until they will be there, and nothing is taken.
        """

    def take_in_turn(self, tokens: int) -> bool:
        """Takes `tokens` where so many are left and nobody waits for them; returns whether it did."""

    async def wait(self, tokens: int) -> None:
        """Takes `tokens`, as soon as they are there; who came first gets them first. May be cancelled."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, who takes turns with the others.

    Attributes:
        key: What tells callers apart: the name of a token's tenant, else the host that a call comes from.
        namespace: Whose sets, verdicts and cache entries it sees; empty: those of the server's own namespace.
        quota: How much text it may send; None: as much as it likes.
        tenant: Name of the token's tenant in the tokens file; empty: it has none.
    """

    key: str = ""
    weight: float = 1.0
    namespace: str = ""
    scopes: frozenset[Scope] = ALL_SCOPES
    quota: Quota | None = None
    tenant: str = ""


LOCAL: Final = Caller()
"""The process that embeds the server."""


@lru_cache(4096)
def anonymous_caller(peer: str) -> Caller:
    """Return a caller whom only its host tells from others.

    Args:
        peer: Address of the connection as gRPC writes it, ``ipv4:127.0.0.1:50514``.
    """
    return Caller(peer.rpartition(":")[0])


_current_caller: Final[ContextVar[str]] = ContextVar("asking", default=LOCAL.key)


def current_caller() -> str:
    """The `key` of the caller for whom this task works; that of `LOCAL` for work of the server itself."""
    return _current_caller.get()


def set_current_caller(key: str) -> None:
    """Makes this the caller of the current task and of the tasks that it starts from now on."""
    _current_caller.set(key)


class Lane(IntEnum):
    """Interactive work goes first; bulk work keeps a share that it cannot lose."""

    INTERACTIVE = 0
    BULK = 1


@dataclass(slots=True, eq=False)
class Turn:
    """One piece of work that was admitted, and the tokens that it has put into an encoder's queue so far."""

    lane: Lane = Lane.INTERACTIVE
    tokens: int = 0

    def queued(self, tokens: int) -> None:
        """So many tokens were put into an encoder's queue."""
        self.tokens += tokens

    def computed(self, tokens: int) -> None:
        """So many of them were computed; not those of texts that nobody waited for any more, or that failed."""


_NO_CALLERS_TURN: Final = Turn()
_turn: Final[ContextVar[Turn]] = ContextVar("turn", default=_NO_CALLERS_TURN)


def current_turn() -> Turn:
    """The turn of the task that asks; work of the server itself counts as interactive."""
    return _turn.get()


def take_turn(turn: Turn) -> None:
    """Make this the turn of the current task and of the tasks that it starts from now on."""
    _turn.set(turn)
