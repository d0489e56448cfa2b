"""Access to one Redis or Valkey server or cluster.

Requests have short timeouts and a breaker, and values have a keyed MAC if the settings contain a key.
"""

import asyncio
import contextlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from prometheus_client import Counter
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ClusterDownError, RedisError, ResponseError
from redis.maint_notifications import MaintNotificationsConfig

from gradewire_server.resilience import Breaker, BreakerState
from gradewire_server.settings.engine import RedisConfig
from gradewire_server.storage.cache import StorageTelemetry

_log = logging.getLogger(__name__)
_HEADER: Final = b"gm\x02"
"""The magic bytes and the version number that precede a value with a MAC. Version 1 has no MAC."""
_MAC_BYTES: Final = 16
_START: Final = len(_HEADER) + _MAC_BYTES
_LOG_EVERY_S: Final = 60.0

_STORE = "redis"
_MAX_CONNECTIONS = 32
_PAUSE_AFTER_REFUSAL_S = 10.0
_REPLACE = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) end return 0"
T = TypeVar("T")


class ValueMac:
    """The MAC in front of stored values. Without a key, stored values have no MAC.

    `refused` counts refused values by ``reason``: ``missing`` for a value without a MAC, ``wrong`` for a wrong MAC.
    """

    def __init__(self, key: bytes, refused: Counter, *, clock: Callable[[], float] = time.monotonic) -> None:
        # Reduce the key to 32 bytes. Hash the first block, which contains the key, once; later MACs copy this state.
        derived = blake2b(key, digest_size=32, person=b"gradewire-redis").digest()
        self._keyed = blake2b(key=derived, digest_size=_MAC_BYTES)
        self._on = bool(key)
        self._missing = refused.labels("missing")
        self._wrong = refused.labels("wrong")
        self._clock = clock
        self._unlogged = 0
        self._quiet_before_s = -1.0

    def put(self, name: bytes, value: bytes) -> bytes:
        """Return the value with its MAC, to store under `name`."""
        return b"".join((_HEADER, self._mac(name, value), value)) if self._on else value

    def take(self, name: bytes, stored: bytes) -> bytes | None:
        """Return the value in `stored`. If its MAC is missing or wrong, count and log the fault, and return None."""
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
        state.update(len(name).to_bytes(4, "little") + name)  # the length separates name and value
        state.update(value)
        return state.digest()

    def _refuse(self, counter: Counter) -> None:
        counter.inc()
        self._unlogged += 1
        now_s = self._clock()
        if now_s >= self._quiet_before_s:
            _log.warning(
                "redis: ignored %d values without this server's MAC. They were written before redis_mac_key was set, "
                "by a server with a different key, or by another program",
                self._unlogged,
            )
            self._unlogged, self._quiet_before_s = 0, now_s + _LOG_EVERY_S


class RedisAwayError(Exception):
    """Raised when the Redis server does not answer, or the breaker is open."""


class RedisRefusedError(RedisAwayError):
    """Raised when the Redis server refuses a command because it is full, is a replica, or denies permission."""


class RedisClient:
    """A client for one Redis server, with a connection pool, timeouts, a breaker and a probe.

    A cancelled command closes its connection, so that no later command receives the delayed reply. The stores use
    `mac` to sign and check their values.
    """

    def __init__(self, config: RedisConfig, telemetry: StorageTelemetry) -> None:
        self._config = config
        self._telemetry = telemetry
        self.address = _address(config.url)
        self.mac = ValueMac(config.mac_key.strip().encode(), telemetry.refused_macs)
        self._client: Any = _connect(config)
        self._slots = asyncio.Semaphore(_MAX_CONNECTIONS)
        self._probe: asyncio.Task[None] | None = None
        self._closing = False
        self._refused_before_s: dict[str, float] = {}
        self._breaker = Breaker(
            failures_to_open=config.failures_to_open,
            window_s=config.failure_window_s,
            clock=time.monotonic,
            changed=self._breaker_changed,
        )

    @property
    def available(self) -> bool:
        """True if the breaker is closed and no write was refused recently."""
        return self._breaker.closed and not self._refused("write")

    def degraded(self) -> str:
        """Return the reason why Redis does not work properly; "" if it works."""
        if not self._breaker.closed:
            return "redis: breaker open"
        if self._refused("read"):
            return "redis: reading fails"
        return "redis: writing fails" if self._refused("write") else ""

    async def connect(self) -> None:
        """Open a connection before the first request. If the server does not answer, log a warning and go on without.

        The breaker then opens at once, so that health shows it and the first requests do not wait.
        """
        try:
            await self._timed("probe", self._config.write_timeout_s, self._client.ping)
        except RedisAwayError as error:
            _log.warning("redis at %s does not answer yet (%s)", self.address, error)
            for _ in range(self._config.failures_to_open - 1):
                self._breaker.failed()

    async def get(self, keys: Sequence[bytes]) -> list[object]:
        """Return the keys' values. On a cluster, fetch the values slot by slot.

        Raises:
            RedisAwayError: There is no answer, or the answer has a wrong number of values.
            RedisRefusedError: The answer is an error.
        """
        fetch = self._client.mget_nonatomic if self._config.cluster else self._client.mget
        return await self._read_each(lambda: fetch(keys), len(keys))

    async def set(self, values: Mapping[bytes, bytes], *, ttl_s: Mapping[bytes, int]) -> None:
        """Store values in one round trip. `ttl_s` contains the time to live of each key that expires.

        Raises:
            RedisAwayError: At least one value was not stored.
            RedisRefusedError: The server refused at least one value.
        """
        await self._set_each(values, lambda key: {"ex": ttl_s.get(key)})

    async def add(self, values: Mapping[bytes, bytes]) -> None:
        """Store values under unused keys, in one round trip. Never replace a value, even with concurrent writers.

        Raises:
            RedisAwayError: At least one value with an unused key was not stored.
            RedisRefusedError: The server refused at least one of these values.
        """
        await self._set_each(values, lambda _: {"nx": True})

    async def replace(self, key: bytes, expected: bytes, value: bytes) -> None:
        """Replace a value if it still equals `expected`; raise the same errors as `add`."""
        await self._write(lambda: self._client.eval(_REPLACE, 1, key, expected, value))

    async def hash_length(self, key: bytes) -> int:
        """Return a hash's field count, or 0 if the hash does not exist; raise the same errors as `get`."""

        async def work() -> int:
            return int(await self._client.hlen(key))  # a wrong type then counts as a server error

        return await self._read(work)

    async def hash_page(self, key: bytes, cursor: int, count: int) -> tuple[int, dict[bytes, bytes]]:
        """Return about `count` fields of a hash, and the next cursor, which is 0 at the end.

        Pass 0 as the first cursor. Raise the same errors as `get`.
        """

        async def work() -> tuple[int, dict[bytes, bytes]]:
            next_cursor, fields = await self._client.hscan(key, cursor, count=count)
            return int(next_cursor), dict(fields)

        return await self._read(work)

    async def hash_get(self, key: bytes, fields: Sequence[bytes]) -> list[object]:
        """Return a hash's values in the order of `fields`; raise the same errors as `get`."""
        return await self._read_each(lambda: self._client.hmget(key, fields), len(fields))

    async def hash_set(self, key: bytes, values: Mapping[bytes, bytes]) -> None:
        """Set a hash's fields, which never expire; raise the same errors as `add`."""
        await self._write(lambda: self._client.hset(key, mapping=values))

    async def close(self) -> None:
        """Stop the probe, and close the connections."""
        self._closing = True
        if self._probe is not None:
            self._probe.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._probe
        await self._client.aclose()

    async def _set_each(self, values: Mapping[bytes, bytes], options: Callable[[bytes], dict[str, Any]]) -> None:
        async def work() -> None:
            pipeline = self._client.pipeline() if self._config.cluster else self._client.pipeline(transaction=False)
            for key, value in values.items():
                pipeline.set(key, value, **options(key))
            await pipeline.execute(raise_on_error=True)

        await self._write(work)

    async def _read_each(self, fetch: Callable[[], Awaitable[Any]], count: int) -> list[object]:
        async def work() -> list[object]:
            values: list[object] = await fetch()
            if len(values) != count:
                raise RedisError(f"{len(values)} values instead of {count}")
            return values

        return await self._read(work)

    async def _read(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._call("read", self._config.timeout_s, work)

    async def _write(self, work: Callable[[], Awaitable[Any]]) -> None:
        await self._call("write", self._config.write_timeout_s, work)

    async def _call(self, operation: str, timeout_s: float, work: Callable[[], Awaitable[T]]) -> T:
        # The wait for a slot needs no timeout: earlier calls time out, and the breaker clears the queue.
        async with self._slots:
            if not self._breaker.closed:
                raise RedisAwayError(self.degraded())
            return await self._timed(operation, timeout_s, work)

    async def _timed(self, operation: str, timeout_s: float, work: Callable[[], Awaitable[T]]) -> T:
        started_s = time.perf_counter()
        try:
            with self._telemetry.timed(_STORE, operation):
                async with asyncio.timeout(timeout_s):
                    result = await work()
        except ResponseError as error:
            if isinstance(error, ClusterDownError):  # a cluster's node reports that another node is down
                self._breaker.failed()
                raise RedisAwayError(type(error).__name__) from error
            # The server is up, because it answered. Do not log the error's text, which may quote the request.
            self._breaker.succeeded()
            if not self._refused(operation):
                _log.warning("redis at %s refuses a %s (%s)", self.address, operation, type(error).__name__)
            self._refused_before_s[operation] = time.monotonic() + _PAUSE_AFTER_REFUSAL_S
            raise RedisRefusedError(type(error).__name__) from error
        except Exception as error:  # a broken server can make the client raise any error; count each as a miss
            self._breaker.failed()
            raise RedisAwayError(type(error).__name__) from error
        self._refused_before_s.pop(operation, None)
        if operation == "read" and time.perf_counter() - started_s > self._config.slow_s:
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        return result

    def _refused(self, operation: str) -> bool:
        return time.monotonic() < self._refused_before_s.get(operation, 0.0)

    def _breaker_changed(self, state: BreakerState) -> None:
        self._telemetry.set_breaker(state)
        if state is BreakerState.CLOSED:
            _log.warning("redis at %s answers again", self.address)
        elif state is BreakerState.OPEN and (self._probe is None or self._probe.done()) and not self._closing:
            _log.warning("redis at %s fails or is slow; continuing without it", self.address)
            self._probe = asyncio.get_running_loop().create_task(self._probe_until_closed())

    async def _probe_until_closed(self) -> None:
        while not self._breaker.closed:
            await asyncio.sleep(self._config.open_s)
            self._breaker.probing()
            with contextlib.suppress(RedisAwayError):
                await self._timed("probe", self._config.timeout_s, self._client.ping)


def _connect(config: RedisConfig) -> Any:
    # Try once, because a failure is only a miss. A cluster needs a second try to follow a slot that has moved.
    common: dict[str, Any] = {
        "socket_timeout": max(config.timeout_s, config.write_timeout_s),
        "socket_connect_timeout": config.timeout_s,
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
    }
    if config.cluster:
        return RedisCluster.from_url(config.url, retry=Retry(NoBackoff(), 1), **common)
    return Redis.from_url(config.url, retry=Retry(NoBackoff(), 0), **common)


def _address(url: str) -> str:
    """Return the server's address for messages, without the user name and the password."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "unix" else f"{parts.hostname}:{parts.port or 6379}"
