"""A tokens file, read at start and again when it has changed. What cannot be read leaves things as they are."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Final, TypeAlias

from gradewire_server.tenants.file import MAX_FILE_BYTES, TokensFileError, read_tenants
from gradewire_server.tenants.shared_levels import SharedLevels
from gradewire_server.tenants.tenant import Tenant
from gradewire_server.tenants.token_table import Quotas, TokenTable

LOOK_EVERY_S: Final = 1.0
_log = logging.getLogger(__name__)

_Stamp: TypeAlias = tuple[int, int, int, int]


class TokensFile:
    """The tokens of a file. Belongs to one event loop; `table` may be read from any thread.

    Args:
        path: The file.
        own_namespace: As `read_tenants`.
        levels: As `Quotas`.

    Attributes:
        table: Of the last file that could be used.

    Raises:
        TokensFileError: It cannot be read or used; the message names file, table and key.
    """

    def __init__(self, path: Path, own_namespace: str = "", *, levels: SharedLevels | None = None) -> None:
        self._path = path
        self._own_namespace = own_namespace
        self._quotas = Quotas(levels)
        self._stamp, tenants = _read(path, own_namespace)
        self.table: TokenTable = self._quotas.table_of(tenants)

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
            stamp = await asyncio.to_thread(_stamp_of, self._path)
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
        self.table = self._quotas.table_of(tenants)
        _log.info(
            "auth_tokens_file: %s was read again: %d tenants, %d tokens", self._path, len(tenants), len(self.table)
        )


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


def _stamp_of(path: Path) -> _Stamp:
    return _stamp(path.stat())


def _stamp(status: os.stat_result) -> _Stamp:
    """Differs once another file stands there, or this one was written."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
