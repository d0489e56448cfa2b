"""Find callers by token, and reload the tokens file when it changes."""

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

_HASH_KEY: Final = secrets.token_bytes(32)

LOOK_EVERY_S: Final = 1.0

_Stamp: TypeAlias = tuple[int, int, int, int]


class TokenTable:
    """An immutable table of callers by token. The duration of a lookup reveals nothing about the tokens."""

    def __init__(self, callers: Mapping[bytes, Caller]) -> None:
        self._found = {_keyed(digest): (digest, caller) for digest, caller in callers.items()}

    def __len__(self) -> int:
        return len(self._found)

    def find(self, token: str) -> Caller | None:
        """Return the caller with this token, or None."""
        digest = sha256(token.encode()).digest()
        known = self._found.get(_keyed(digest))
        return known[1] if known is not None and hmac.compare_digest(known[0], digest) else None


def _keyed(digest: bytes) -> bytes:
    return blake2b(digest, key=_HASH_KEY, digest_size=16).digest()


class TokensFile:
    """The tokens in a file. If the file becomes invalid, the last valid tokens stay in force.

    Only `table` is thread-safe. Processes of the same server share `levels`.

    Raises:
        TokensFileError: The file cannot be read or is invalid.
    """

    def __init__(self, path: Path, own_namespace: str = "", *, levels: SharedLevels | None = None) -> None:
        self._path = path
        self._own_namespace = own_namespace
        self._levels = levels
        self._buckets: dict[str, TokenBucket] = {}
        self._stamp, tenants = _read(path, own_namespace)
        self.table = self._table_of(tenants)

    async def watch(self) -> None:
        """Reload the file whenever it changes, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except Exception:  # noqa: BLE001 - if this task ended, a revoked token would stay valid
                _log.exception("auth_tokens_file: cannot check %s; the last valid tokens stay in force", self._path)

    async def look(self) -> None:
        """Reload the file if it has changed. Log an invalid file once."""
        try:
            stamp = _stamp(await asyncio.to_thread(self._path.stat))
        except OSError as error:
            if self._stamp is not None:
                self._stamp = None
                _log.error(
                    "auth_tokens_file: %s cannot be read (%s); the last valid tokens stay in force",
                    self._path,
                    error.strerror,
                )
            return
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._stamp, tenants = await asyncio.to_thread(_read, self._path, self._own_namespace)
        except TokensFileError as error:
            _log.error("auth_tokens_file: %s; the last valid tokens stay in force", error)
            return
        self.table = self._table_of(tenants)
        _log.info("auth_tokens_file: reloaded %s: %d tenants, %d tokens", self._path, len(tenants), len(self.table))

    def _table_of(self, tenants: Iterable[Tenant]) -> TokenTable:
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
        raise TokensFileError(f"{path}: must not be larger than {MAX_FILE_BYTES} bytes")
    try:
        return stamp, read_tenants(data.decode(), own_namespace)
    except UnicodeDecodeError:
        raise TokensFileError(f"{path}: must be UTF-8") from None
    except TokensFileError as error:
        raise TokensFileError(f"{path}: {error}") from None


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class Authentication:
    """A thread-safe lookup of callers by token.

    Args:
        tokens: Tokens with all scopes, for the server's own namespace.
        file: Tenants' tokens. If neither `tokens` nor `file` is given, every call is allowed.
    """

    def __init__(self, tokens: Sequence[str] = (), *, file: TokensFile | None = None) -> None:
        self._own = TokenTable({sha256(token.encode()).digest(): LOCAL for token in tokens})
        self._file = file
        self.is_open = file is None and not tokens

    def caller(self, authorization: str, peer: str) -> Caller | None:
        """Return the caller, or None if a token is needed, but `authorization` contains no valid token.

        For `peer`, see `anonymous_caller`.
        """
        if self.is_open:
            return anonymous_caller(peer)
        given = token_of(authorization)
        if self._own.find(given) is not None:
            return anonymous_caller(peer)
        return None if self._file is None else self._file.table.find(given)
