"""The cache for judges' verdicts, which has the same levels as the cache for vectors, but does not round values."""

import asyncio
import contextvars
import json
import math
import re
import struct
import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgeAnswer, JudgeNeed, Turn
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges.prompt_texts import Same
from gradewire_server.storage.cache import SecondLevel, SegmentedLru, StorageTelemetry, Write, WriteBehind
from gradewire_server.storage.codec import EntryKind, KeySpace
from gradewire_server.storage.shared_table import SharedTable, is_running

_CHOICE = struct.Struct("<cIIdH")  # kind, prompt tokens, generated tokens, mass or NaN, option count; then float64s
_TEXT = struct.Struct("<cII")  # kind, prompt tokens, generated tokens; then the text in UTF-8
_TRUNCATED = 1
_COMPLETE = 2
_NOT_DEMONSTRATED = 4
_TAIL_BYTES = 2  # flags and tier, as in every blob
_UNKNOWN = (1 << 32) - 1
_SUM_TOLERANCE = 1e-6
_MAX_PROMPTS = 64
_SURROGATE = re.compile("[\ud800-\udfff]")


def canonical(need: JudgeNeed, precision: str) -> str:
    """Return a string that identifies everything that affects an answer, except the judge's digest."""
    # This is one list in JSON. Its longest part is written once for many needs.
    prompt = need.prompt
    kind = json.dumps((type(need).__name__, precision))
    own = [need.options] if isinstance(need, Choose) else [need.max_tokens, need.stop]
    seen = [[image.digest for image in prompt.images]] if prompt.images else []
    item = json.dumps((prompt.lead, prompt.prediction, prompt.tail, prompt.opening, own, *seen))
    return f"{kind[:-1]}, {_turns_in_json(Same(prompt.fixed))}, {item[1:]}"


@lru_cache(maxsize=_MAX_PROMPTS)
def _turns_in_json(fixed: Same[tuple[Turn, ...]]) -> str:
    return json.dumps([(turn.role.value, turn.text) for turn in fixed.it])


def answer_problem(need: JudgeNeed, answer: JudgeAnswer) -> str:
    """Return the reason why an answer is invalid, or "" if the answer is valid."""
    if isinstance(answer, Generated) and isinstance(need, Generate):
        return "the text is not Unicode" if _SURROGATE.search(answer.text) else ""
    if isinstance(answer, Choice) and isinstance(need, Choose):
        return _choice_problem(len(need.options), answer)
    return f"{type(answer).__name__} does not answer {type(need).__name__}"


def _choice_problem(options: int, choice: Choice) -> str:
    shares = choice.probabilities
    if len(shares) != options:
        return f"got {len(shares)} probabilities for {options} options"
    # These comparisons also refuse NaN.
    if not all(0 <= share <= 1 for share in shares) or not abs(math.fsum(shares) - 1) <= _SUM_TOLERANCE:
        return "the options' probabilities are not a distribution"
    if choice.mass is not None and not 0 <= choice.mass <= 1 + _SUM_TOLERANCE:
        return "the options' mass is not a probability"
    return ""


def encode_answer(answer: JudgeAnswer) -> bytes:
    """Return an answer's bytes, marked as not yet stored in the second level."""
    counts = [_UNKNOWN if tokens is None else tokens for tokens in (answer.prompt_tokens, answer.generated_tokens)]
    if isinstance(answer, Choice):
        mass = math.nan if answer.mass is None else answer.mass
        shares = answer.probabilities
        payload = _CHOICE.pack(b"d", *counts, mass, len(shares)) + struct.pack(f"<{len(shares)}d", *shares)
        flags = _TRUNCATED * answer.truncated | _NOT_DEMONSTRATED * (not answer.demonstrated)
    else:
        payload = _TEXT.pack(b"g", *counts) + answer.text.encode()
        flags = _TRUNCATED * answer.truncated | _COMPLETE * answer.complete
    return payload + bytes((flags, Tier.WINDOW))


def decode_answer(need: JudgeNeed, blob: bytes) -> JudgeAnswer | None:
    """Return the answer in `blob`, or None if `blob` contains no valid answer to the need."""
    try:
        answer = _decode(blob)
    except (struct.error, UnicodeDecodeError):
        return None
    return None if answer is None or answer_problem(need, answer) else answer


def _decode(blob: bytes) -> JudgeAnswer | None:
    payload, flags = blob[:-_TAIL_BYTES], blob[-_TAIL_BYTES]
    truncated = bool(flags & _TRUNCATED)
    if payload[:1] == b"d":
        _, read, written, mass, count = _CHOICE.unpack_from(payload)
        shares = struct.unpack(f"<{count}d", payload[_CHOICE.size :])
        known_mass = None if math.isnan(mass) else mass
        demonstrated = not flags & _NOT_DEMONSTRATED
        return Choice(shares, known_mass, _known(read), truncated, _known(written), demonstrated)
    if payload[:1] == b"g":
        _, read, written = _TEXT.unpack_from(payload)
        text = payload[_TEXT.size :].decode()
        return Generated(text, bool(flags & _COMPLETE), _known(read), _known(written), truncated)
    return None


def _known(tokens: int) -> int | None:
    return None if tokens == _UNKNOWN else tokens


_NO_DIMS = 0  # a verdict is not a vector
_MAX_SPACES = 4096
_JOINED_FOR_S = 60.0
_LOOK_EVERY_S = 0.02
_OFF_LOOP_CHARACTERS = 64_000
"""Prompts longer than this are hashed on a thread. Hashing a shorter prompt takes less time than a thread switch."""


@lru_cache(maxsize=_MAX_SPACES)
def _key_space(namespace: str, digest: str) -> KeySpace:
    return KeySpace(namespace=namespace, model_digest=digest, kind=EntryKind.VERDICT)


class VerdictKey(NamedTuple):
    """A verdict's key in memory (`name`) and in the second level (`stored`)."""

    name: bytes
    stored: bytes


class _ReadsOfTurn:
    """Reads from the second level. One call reads all keys that are requested in a turn of the event loop."""

    def __init__(self, second: SecondLevel) -> None:
        self._second = second
        self._asked: list[tuple[bytes, asyncio.Future[bytes | None]]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def read(self, key: bytes) -> bytes | None:
        """Return the bytes of a key, or None if the second level has none."""
        loop = asyncio.get_running_loop()
        if not self._asked:
            # A separate context, because the call is not only for the request that asked first.
            loop.call_soon(self._start, context=contextvars.Context())
        found: asyncio.Future[bytes | None] = loop.create_future()
        self._asked.append((key, found))
        return await found

    async def finish(self) -> None:
        """Wait until the calls under way have ended."""
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start(self) -> None:
        asked = [(key, found) for key, found in self._asked if not found.done()]
        self._asked = []
        if not asked:  # all callers have left
            return
        task = asyncio.get_running_loop().create_task(self._read(asked))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _read(self, asked: Sequence[tuple[bytes, asyncio.Future[bytes | None]]]) -> None:
        blobs: Sequence[bytes | None] = ()
        try:
            blobs = await self._second.read([key for key, _ in asked], _NO_DIMS, kind=EntryKind.VERDICT)
        finally:  # if the store breaks its promise and raises, its values are missing
            for (_, found), blob in zip_longest(asked, blobs):
                if not found.done():
                    found.set_result(blob)


class VerdictCache:
    """A cache for judges' answers. For one event loop only.

    Args:
        lru: Memory, shared with vectors. Verdicts go directly to the protected segment, because they are expensive.
        second: The second level (or None), which the caller closes.
        namespace: The namespace for needs without a namespace; see `CacheConfig.namespace`.
        claims: The memory in which processes say what they ask a judge, or None in the only process.
    """

    def __init__(  # noqa: PLR0913 - where verdicts lie, and three options by name
        self,
        lru: SegmentedLru,
        second: SecondLevel | None,
        telemetry: StorageTelemetry,
        *,
        namespace: str,
        max_pending_writes: int,
        claims: SharedTable | None = None,
    ) -> None:
        self._claims = claims
        self._lru = lru
        self._second = second
        self._reads = _ReadsOfTurn(second) if second is not None else None
        self._namespace = namespace
        self._writer = WriteBehind(second, lru, telemetry, max_pending=max_pending_writes)

    async def key(self, need: JudgeNeed, judge: ModelStatus) -> VerdictKey:
        """Return the key of a judge's answer to a need."""
        prompt = need.prompt
        if len(prompt.lead) + len(prompt.prediction) + len(prompt.tail) > _OFF_LOOP_CHARACTERS:
            return await asyncio.to_thread(self._key, need, judge)
        return self._key(need, judge)

    def find(self, key: VerdictKey, need: JudgeNeed) -> JudgeAnswer | None:
        """Look up an answer in memory."""
        blob = self._lru.get(key.name)
        return None if blob is None else decode_answer(need, blob)

    async def find_stored(self, key: VerdictKey, need: JudgeNeed) -> tuple[JudgeAnswer, AnswerSource] | None:
        """Look up an answer in the second level, and keep a found answer in memory."""
        if self._second is None or self._reads is None:
            return None
        blob = await self._reads.read(key.stored)
        answer = None if blob is None else decode_answer(need, blob)
        if blob is None or answer is None:
            return None
        self._lru.put(key.name, blob, pinned=True)
        return answer, self._second.source

    async def join(self, key: VerdictKey, need: JudgeNeed, deadline_s: float | None) -> JudgeAnswer | None:
        """Claim a need, or wait while another process asks a judge. Return that process's answer, or None to ask."""
        if self._claims is None or self._claims.claim(key.name):
            return None
        ends_s = min(time.monotonic() + _JOINED_FOR_S, math.inf if deadline_s is None else deadline_s)
        answer = None
        while answer is None and time.monotonic() < ends_s and self._claims.claimed_elsewhere(key.name, is_running):
            await asyncio.sleep(_LOOK_EVERY_S)
            answer = self.find(key, need)
        if answer is None:
            self._claims.claim(key.name)
        return answer

    def release(self, key: VerdictKey) -> None:
        """Give up this process's claim, after the answer was kept or there was none."""
        if self._claims is not None:
            self._claims.release(key.name)

    def keep(self, key: VerdictKey, answer: JudgeAnswer) -> None:
        """Keep an answer in memory, and write it to the second level in the background."""
        blob = encode_answer(answer)
        # Truncation depends on settings, which may change while a store exists.
        self._lru.put(key.name, blob, pinned=True, shared=not answer.truncated)
        if not answer.truncated:
            self._writer.add(key.name, Write(key.stored, blob, Tier.PREDICTION, _NO_DIMS, EntryKind.VERDICT))

    async def flush(self) -> None:
        """Wait until reads under way and all writes of kept answers have succeeded or failed."""
        if self._reads is not None:
            await self._reads.finish()
        await self._writer.flush()

    def _key(self, need: JudgeNeed, judge: ModelStatus) -> VerdictKey:
        space = _key_space(need.namespace or self._namespace, judge.digest)
        (name,) = space.hashes([canonical(need, judge.precision)])
        return VerdictKey(name, space.stored(name))
