"""Tokens: callers found by them in constant time, and a tokens file that is read again when it changes."""

import asyncio
import hmac
import logging
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final, TypeAlias

from gradewire_proto.wire_rules import token_of
from gradewire_server.domain.caller import LOCAL, Caller, anonymous_caller
from gradewire_server.tenants.quota import TokenBucket
from gradewire_server.tenants.shared_levels import SharedLevels
from gradewire_server.tenants.tenant import MAX_FILE_BYTES, Tenant, TokensFileError, read_tenants

_log = logging.getLogger(__name__)

_KEY: Final = secrets.token_bytes(32)
"""Secret of this process; nobody outside knows it."""

LOOK_EVERY_S: Final = 1.0

_Stamp: TypeAlias = tuple[int, int, int, int]


class TokenTable:
    """Callers by the token that they show. Never changes: another file makes another table.

    A token is looked up by a keyed hash of its SHA-256. Without the key nobody can bring about two tokens that share a
    part of their hash, so neither the length, nor how much of a token is right, nor whose it is shows in the time; and
    a thousand tenants take as long as one.
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


def _keyed(digest: bytes) -> bytes:
    return blake2b(digest, key=_KEY, digest_size=16).digest()


class TokensFile:
    """The tokens of a file, the last that could be used. Belongs to one event loop; `table` is for any thread.

    Quotas of tenants outlive the file that set them, so that reading it again refills none; processes that serve
    together share their `levels`.

    Raises:
        TokensFileError: It cannot be read or used; the message names file, table and key.
    """

    def __init__(self, path: Path, own_namespace: str = "", *, levels: SharedLevels | None = None) -> None:
        self._path = path
        self._own_namespace = own_namespace
        self._levels = levels
        self._buckets: dict[str, TokenBucket] = {}
        self._stamp, tenants = _read(path, own_namespace)
        self.table = self._table_of(tenants)

    async def watch(self) -> None:
        """Looks again and again whether the file has changed; to be cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except Exception:  # noqa: BLE001 - see below
                # Whatever it was, it is logged: were nobody to look again, a token that is taken away would stay good.
                _log.exception("auth_tokens_file: %s could not be looked at; the old one stays", self._path)

    async def look(self) -> None:
        """Reads the file if it has changed since it was last looked at; one that cannot be used is logged, once."""
        try:
            stamp = _stamp(await asyncio.to_thread(self._path.stat))
        except OSError as error:
            if self._stamp is not None:
                self._stamp = None
                _log.error("auth_tokens_file: %s cannot be read (%s); the old one stays", self._path, error.strerror)
            return
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._stamp, tenants = await asyncio.to_thread(_read, self._path, self._own_namespace)
        except TokensFileError as error:
            _log.error("auth_tokens_file: %s; the old one stays", error)
            return
        self.table = self._table_of(tenants)
        _log.info(
            "auth_tokens_file: %s was read again: %d tenants, %d tokens", self._path, len(tenants), len(self.table)
        )

    def _table_of(self, tenants: Iterable[Tenant]) -> TokenTable:
        """Return the table of these tenants; those that had a quota before go on with what is left of it."""
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


def _read(path: Path, own_namespace: str) -> tuple[_Stamp | None, tuple[Tenant, ...]]:
    try:
        with path.open("rb") as file:
            stamp = _stamp(os.fstat(file.fileno()))
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TokensFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_FILE_BYTES:
        raise TokensFileError(f"{path}: is larger than {MAX_FILE_BYTES} bytes")
    try:
        return stamp, read_tenants(data.decode(), own_namespace)
    except UnicodeDecodeError:
        raise TokensFileError(f"{path}: is not UTF-8") from None
    except TokensFileError as error:
        raise TokensFileError(f"{path}: {error}") from None


def _stamp(status: os.stat_result) -> _Stamp:
    """Differs once another file stands there, or this one was written."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class Authentication:
    """Find the caller of a call by its token; any thread may ask.

    Each of `tokens` lets a call in that may do everything, in the server's own namespace; those of the file are of
    tenants. Without either every call is let in: `is_open`.
    """

    def __init__(self, tokens: Sequence[str] = (), *, file: TokensFile | None = None) -> None:
        self._own = TokenTable({sha256(token.encode()).digest(): LOCAL for token in tokens})
        self._file = file
        self.is_open = file is None and not tokens

    def caller(self, authorization: str, peer: str) -> Caller | None:
        """Return the caller; None where a token is needed, and `authorization` holds none.

        `peer` is the address of the connection as gRPC writes it, ``ipv4:127.0.0.1:50514``.
        """
        if self.is_open:
            return anonymous_caller(peer)
        given = token_of(authorization)
        if self._own.find(given) is not None:
            return anonymous_caller(peer)
        return None if self._file is None else self._file.table.find(given)
