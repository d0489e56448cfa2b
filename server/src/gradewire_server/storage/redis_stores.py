"""Vectors, synthetic answers and corpora in Redis, shared by all gradewire processes with the same Redis server."""

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from typing_extensions import override

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.storage.cache import CHUNK_KEYS, SecondLevel, StorageTelemetry, Write
from gradewire_server.storage.codec import EntryKind, unpack
from gradewire_server.storage.redis_client import RedisAwayError, RedisClient, RedisRefusedError
from gradewire_server.storage.reference_sets import ALREADY_HELD, PreparedStore, differs

P = ParamSpec("P")
T = TypeVar("T")

_SENTENCE_KEYS = 512
_PAGE_MEMBERS = 128
_MAX_GROUP_BYTES = 1 << 30
_AWAY = Failure(Status.UNAVAILABLE, "the store of prepared references (Redis) does not answer; try again later")
_REFUSED = Failure(
    Status.UNAVAILABLE, "the store of prepared references (Redis) refuses the command; gradewire's log says why"
)
_TOO_LARGE = Failure(
    Status.UNAVAILABLE, "the reference set's corpus is larger than 1 GiB, the maximum; prepare a smaller set"
)


class RedisVectors(SecondLevel):
    """The second level in Redis. Predictions expire, but references do not."""

    source = AnswerSource.REDIS

    def __init__(self, client: RedisClient, telemetry: StorageTelemetry, *, prediction_ttl_s: int) -> None:
        self._client = client
        self._mac = client.mac
        self._rejected = telemetry.store_rejected.labels("redis")
        self._prediction_ttl_s = prediction_ttl_s

    @property
    @override
    def available(self) -> bool:
        return self._client.available

    @override
    async def read(
        self, keys: Sequence[bytes], dims: int, *, kind: EntryKind = EntryKind.SENTENCE
    ) -> list[bytes | None]:
        blobs: list[bytes | None] = []
        step = _SENTENCE_KEYS if kind is EntryKind.SENTENCE else CHUNK_KEYS[kind]
        for start in range(0, len(keys), step):
            chunk = keys[start : start + step]
            try:
                values = await self._client.get(chunk)
            except RedisAwayError:
                break
            blobs += [self._blob(key, value, dims, kind) for key, value in zip(chunk, values, strict=True)]
        return blobs + [None] * (len(keys) - len(blobs))

    @override
    async def write(self, writes: Sequence[Write]) -> int:
        if not self.available:
            return 0
        expires_unix_s = int(time.time()) + self._prediction_ttl_s
        for start in range(0, len(writes), _SENTENCE_KEYS):
            chunk = writes[start : start + _SENTENCE_KEYS]
            passing = {write.key for write in chunk if write.tier is not Tier.REFERENCE}
            values = {write.key: write.packed(expires_unix_s if write.key in passing else 0) for write in chunk}
            try:
                await self._client.set(
                    {key: self._mac.put(key, value) for key, value in values.items()},
                    ttl_s=dict.fromkeys(passing, self._prediction_ttl_s),
                )
            except RedisAwayError:
                return start
        return len(writes)

    @override
    def degraded(self) -> str:
        return self._client.degraded()

    @override
    async def close(self) -> None:
        # The store of prepared answers closes last, and then closes the client.
        return

    def _blob(self, key: bytes, value: object, dims: int, kind: EntryKind) -> bytes | None:
        if value is None:
            return None
        taken = self._mac.take(key, value) if isinstance(value, bytes) else None
        stored = None if taken is None else unpack(key, taken, dims, kind=kind)
        if stored is None:
            self._rejected.inc()
            return None
        return stored.blob


def _answering_failures(
    work: Callable[Concatenate["RedisPrepared", P], Awaitable[T]],
) -> Callable[Concatenate["RedisPrepared", P], Coroutine[Any, Any, T | Failure]]:
    """Make a method return a failure if the server does not answer or refuses the command."""

    @wraps(work)
    async def answer(store: "RedisPrepared", /, *given: P.args, **named: P.kwargs) -> T | Failure:
        try:
            return await work(store, *given, **named)
        except RedisAwayError as error:
            return _REFUSED if isinstance(error, RedisRefusedError) else _AWAY

    return answer


class RedisPrepared(PreparedStore):
    """Synthetic answers and corpora in Redis. They never expire. Redis's configuration decides how durable they are.

    A group is one hash, so that a cluster keeps the group in one slot. If a value's MAC is refused, the value is read
    as b"", which passes no check. A synthetic answer then counts as missing, and a corpus entry counts as damaged.
    `close` also closes the client.
    """

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._mac = client.mac

    @override
    @_answering_failures
    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._already_held(key, value) for key, value in zip(keys, await self._stored(keys), strict=True)]

    @override
    @_answering_failures
    async def write(self, values: Mapping[bytes, bytes]) -> Failure | None:
        wanted = {key: self._mac.put(key, value) for key, value in values.items()}
        # Read first: unchanged content needs no write, which a full server or a replica would refuse.
        there = await self._stored_entries(values)
        if isinstance(there, Failure):
            return there
        if there == wanted:
            return None
        missing = [(key, value) for key, value in wanted.items() if there[key] is None]
        for start in range(0, len(missing), _SENTENCE_KEYS):
            await self._client.add(dict(missing[start : start + _SENTENCE_KEYS]))
        for key, found in there.items():
            if found is not None and found != wanted[key]:
                await self._client.replace(
                    key, found, wanted[key]
                )  # damaged, because an intact value gives ALREADY_HELD
        # The first writer owns the key. Read the values back, because only this shows that they are stored.
        there = await self._stored_entries(values)
        if isinstance(there, Failure):
            return there
        return None if there == wanted else _AWAY

    @override
    @_answering_failures
    async def member_count(self, group: bytes) -> int:
        return await self._client.hash_length(group)

    @override
    @_answering_failures
    async def members(self, group: bytes) -> Mapping[bytes, bytes] | Failure:
        found: dict[bytes, bytes] = {}
        count = await self._client.hash_length(group)
        cursor = read_bytes = 0
        while True:
            cursor, page = await self._client.hash_page(group, cursor, _PAGE_MEMBERS)
            found |= page
            read_bytes += sum(map(len, page.values()))
            if read_bytes > _MAX_GROUP_BYTES:
                return _TOO_LARGE
            if not cursor:
                break
        if len(found) < count:
            return _AWAY
        return {name: self._already_held(group + name, value) or b"" for name, value in found.items()}

    @override
    @_answering_failures
    async def add_members(self, group: bytes, values: Mapping[bytes, bytes]) -> Failure | None:
        names = list(values)
        for start in range(0, len(names), _SENTENCE_KEYS):
            chunk = names[start : start + _SENTENCE_KEYS]
            # Read before and after the write, as in `write`.
            there = zip(chunk, await self._client.hash_get(group, chunk), strict=True)
            wanted = {name: self._mac.put(group + name, values[name]) for name in chunk}
            missing = {name: wanted[name] for name, value in there if value != wanted[name]}
            if missing:
                await self._client.hash_set(group, missing)
                if await self._client.hash_get(group, list(missing)) != list(missing.values()):
                    return _AWAY
        return None

    @override
    async def close(self) -> None:
        await self._client.close()

    async def _stored(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return values in their stored format. With a MAC key, each stored value begins with its MAC."""
        values: list[object] = []
        for start in range(0, len(keys), _SENTENCE_KEYS):
            values += await self._client.get(keys[start : start + _SENTENCE_KEYS])
        return [value if isinstance(value, bytes) else None for value in values]

    async def _stored_entries(self, values: Mapping[bytes, bytes]) -> dict[bytes, bytes | None] | Failure:
        """Return the stored values by key, or `ALREADY_HELD` if a stored answer differs from the answer in `values`."""
        there = dict(zip(values, await self._stored(list(values)), strict=True))
        taken = any(differs(key, self._already_held(key, there[key]), value) for key, value in values.items())
        return ALREADY_HELD if taken else there

    def _already_held(self, key: bytes, stored: bytes | None) -> bytes | None:
        if stored is None:
            return None
        value = self._mac.take(key, stored)
        return b"" if value is None else value
