"""Whose a token is: looked up in a time that tells nothing about any token."""

import hmac
import secrets
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import blake2b, sha256
from typing import Final

from gradewire_server.domain.caller import Caller
from gradewire_server.tenants.quota import TokenBucket
from gradewire_server.tenants.shared_levels import SharedLevels
from gradewire_server.tenants.tenant import Tenant

_KEY: Final = secrets.token_bytes(32)
"""Of this process; nobody outside knows it."""


class TokenTable:
    """Callers by the token that they show. Never changes: another file makes another table.

    A token is looked up by a keyed hash of its SHA-256. Without the key nobody can bring about two tokens that share a
    part of their hash, so neither the length, nor how much of a token is right, nor whose it is shows in the time; and
    a thousand tenants take as long as one.

    Args:
        callers: By SHA-256 of a token, 32 bytes.
    """

    def __init__(self, callers: Mapping[bytes, Caller]) -> None:
        self._found = {_keyed(digest): (digest, caller) for digest, caller in callers.items()}

    def __len__(self) -> int:
        return len(self._found)

    def find(self, token: str) -> Caller | None:
        """Whose a token is; None where it is nobody's."""
        digest = sha256(token.encode()).digest()
        known = self._found.get(_keyed(digest))
        return known[1] if known is not None and hmac.compare_digest(known[0], digest) else None


class Quotas:
    """The quotas of tenants by name: they outlive the file that set them, so that reading it again refills none.

    Args:
        levels: Of several processes that serve together; None: this one is alone.
    """

    def __init__(self, levels: SharedLevels | None = None) -> None:
        self._levels = levels
        self._buckets: dict[str, TokenBucket] = {}

    def table_of(self, tenants: Iterable[Tenant]) -> TokenTable:
        """The table of these tenants; those that had a quota before go on with what is left of it."""
        callers: dict[bytes, Caller] = {}
        buckets: dict[str, TokenBucket] = {}
        for tenant in tenants:
            quota = None
            if tenant.quota_tokens_per_minute is not None:
                quota = buckets[tenant.name] = self._bucket(tenant.name, tenant.quota_tokens_per_minute)
            caller = Caller(tenant.name, tenant.weight, tenant.namespace, tenant.scopes, quota, tenant.name)
            callers |= dict.fromkeys(tenant.token_sha256, caller)
        self._buckets = buckets
        return TokenTable(callers)

    def _bucket(self, name: str, tokens_per_minute: int) -> TokenBucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            level = None if self._levels is None else partial(self._levels.of, name)
            return TokenBucket(tokens_per_minute, level=level)
        bucket.set_rate(tokens_per_minute)
        return bucket


def _keyed(digest: bytes) -> bytes:
    return blake2b(digest, key=_KEY, digest_size=16).digest()
