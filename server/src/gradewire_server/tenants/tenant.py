"""One tenant of a tokens file."""

import re
from dataclasses import dataclass
from typing import Final

from gradewire_server.domain.caller import Scope

NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Of tenants and namespaces; without a colon, which keeps the parts of a cache key apart."""
USUAL_SCOPES: Final = frozenset({Scope.SCORE, Scope.PREPARE, Scope.JUDGE})
"""Of a tenant whose table names none: all but what tells of other tenants."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant.

    Attributes:
        name: Of its table.
        namespace: Whose sets, verdicts and cache entries it sees; tenants that share one see each other's.
        token_sha256: SHA-256 of each of its tokens, 32 bytes; at least one.
        scopes: What its tokens are good for; at least one.
        weight: Its share of the turns beside other callers', above 0.
        quota_tokens_per_minute: Tokens of text that it may send in a minute; None: no bound.
    """

    name: str
    namespace: str
    token_sha256: tuple[bytes, ...]
    scopes: frozenset[Scope] = USUAL_SCOPES
    weight: float = 1.0
    quota_tokens_per_minute: int | None = None
