"""Values that only holders of a key can write: a keyed MAC over key and value, in front of each value in Redis.

The checksums of `codec` and `prepared` find values that are damaged or of another format, but anybody who can write to
the store can compute them. A MAC cannot be computed without the key. It covers the entry's whole name, so a value that
is copied to another namespace or to another text is refused.
"""

import hmac
import logging
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Final

from prometheus_client import Counter

_log = logging.getLogger(__name__)
_HEADER: Final = b"gm\x02"
"""Magic and version of a value with a MAC; version 1 of every format has none."""
_MAC_BYTES: Final = 16
_START: Final = len(_HEADER) + _MAC_BYTES
_LOG_EVERY_S: Final = 60.0
MIN_KEY_BYTES: Final = 16


class MacKeyError(OSError):
    """The key of the MAC cannot be read, or is too short."""


def read_mac_key(secret: str, file: Path | None) -> bytes:
    """The key from a setting or from a file, whose white space at both ends does not count; b"" where there is none.

    Raises:
        MacKeyError: The file cannot be read, or the key has fewer than 16 bytes.
    """
    key = secret.strip().encode()
    if file is not None:
        try:
            key = file.read_bytes().strip()
        except OSError as error:
            raise MacKeyError(f"redis_mac_key_file: cannot read {file}: {error.strerror}") from error
    if (secret or file is not None) and len(key) < MIN_KEY_BYTES:
        name = "redis_mac_key" if file is None else "redis_mac_key_file"
        raise MacKeyError(f"{name}: has {len(key)} bytes, at least {MIN_KEY_BYTES} are needed (openssl rand -hex 32)")
    return key


class ValueMac:
    """Puts the MAC before values and takes it off again.

    Args:
        key: At least `MIN_KEY_BYTES`; b"" leaves all values as they are.
        refused: Counts, by ``reason``, values that were refused: ``missing``: it has no MAC; ``wrong``: it has another.
        clock: Seconds that only grow.
    """

    def __init__(self, key: bytes, refused: Counter, *, clock: Callable[[], float] = time.monotonic) -> None:
        # Keys of any length become one of 32 bytes; the first block, with the key, is hashed once and copied.
        derived = blake2b(key, digest_size=32, person=b"gradewire-redis").digest()
        self._keyed = blake2b(key=derived, digest_size=_MAC_BYTES)
        self._on = bool(key)
        self._missing = refused.labels("missing")
        self._wrong = refused.labels("wrong")
        self._clock = clock
        self._unlogged = 0
        self._quiet_before_s = -1.0

    def put(self, name: bytes, value: bytes) -> bytes:
        """The value as the store keeps it under `name`."""
        return b"".join((_HEADER, self._mac(name, value), value)) if self._on else value

    def take(self, name: bytes, stored: bytes) -> bytes | None:
        """The value that was `put` under `name`; None, counted and logged, for any other."""
        if not self._on:
            return stored
        if not stored.startswith(_HEADER):
            self._refuse(self._missing)
            return None
        value = stored[_START:]
        if not hmac.compare_digest(stored[len(_HEADER) : _START], self._mac(name, value)):
            self._refuse(self._wrong)
            return None
        return value

    def _mac(self, name: bytes, value: bytes) -> bytes:
        state = self._keyed.copy()
        state.update(len(name).to_bytes(4, "little") + name)  # the length keeps name and value apart
        state.update(value)
        return state.digest()

    def _refuse(self, counter: Counter) -> None:
        counter.inc()
        self._unlogged += 1
        now_s = self._clock()
        if now_s >= self._quiet_before_s:
            _log.warning(
                "redis: %d values without this server's MAC were not used: written before redis_mac_key was set, by a "
                "server with another key, or by somebody else",
                self._unlogged,
            )
            self._unlogged, self._quiet_before_s = 0, now_s + _LOG_EVERY_S
