"""Where verdicts are kept: memory, then the second level that vectors use. A judge costs a thousand times an encoder.

It only finds and keeps; the wrappers in `cached` ask a judge for what is not there.
"""

import asyncio
from typing import NamedTuple

from gradewire_server.domain.judge import JudgeAnswer, JudgeNeed
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges.verdicts.codec import canonical, decode_answer, encode_answer
from gradewire_server.storage.codec import with_tier
from gradewire_server.storage.keys import EntryKind, KeySpace
from gradewire_server.storage.lru import SegmentedLru
from gradewire_server.storage.second_level import SecondLevel, Write
from gradewire_server.storage.telemetry import StorageTelemetry
from gradewire_server.storage.write_behind import WriteBehind

_NO_DIMS = 0  # a verdict is no vector
_MAX_SPACES = 4096
"""Of namespaces and judges; one is made again in a few microseconds."""
_OFF_LOOP_CHARACTERS = 64_000
"""Length of a prompt from which hashing it takes longer than a change of thread."""


class VerdictKey(NamedTuple):
    """Key of a verdict."""

    name: bytes
    stored: bytes


class VerdictCache:
    """Answers of judges, by everything that decides them. Lives on one event loop.

    Args:
        lru: The first level, shared with the vectors. Verdicts go to its protected part at once: they are expensive.
        second: The second level, or None; closed by its owner.
        telemetry: Counts what was not written.
        namespace: Of needs that name none; see `CacheConfig.namespace`.
        max_pending_writes: See `CacheConfig`.
    """

    def __init__(
        self,
        lru: SegmentedLru,
        second: SecondLevel | None,
        telemetry: StorageTelemetry,
        *,
        namespace: str,
        max_pending_writes: int,
    ) -> None:
        self._lru = lru
        self._second = second
        self._namespace = namespace
        self._spaces: dict[tuple[str, str], KeySpace] = {}
        self._writer = (
            WriteBehind(second, telemetry, max_pending=max_pending_writes, written=self._written) if second else None
        )

    async def key(self, need: JudgeNeed, judge: ModelStatus) -> VerdictKey:
        """The key of a judge's answer to a need."""
        prompt = need.prompt
        if len(prompt.lead) + len(prompt.prediction) + len(prompt.tail) > _OFF_LOOP_CHARACTERS:
            return await asyncio.to_thread(self._key, need, judge)
        return self._key(need, judge)

    def find(self, key: VerdictKey, need: JudgeNeed) -> JudgeAnswer | None:
        """Looks in memory."""
        blob = self._lru.get(key.name)
        return None if blob is None else decode_answer(need, blob)

    async def find_stored(self, key: VerdictKey, need: JudgeNeed) -> tuple[JudgeAnswer, AnswerSource] | None:
        """Looks in the second level; what is found is kept in memory."""
        if self._second is None:
            return None
        (blob,) = await self._second.read([key.stored], _NO_DIMS, kind=EntryKind.VERDICT)
        answer = None if blob is None else decode_answer(need, blob)
        if blob is None or answer is None:
            return None
        self._lru.put(key.name, blob, pinned=True)
        return answer, self._second.source

    def keep(self, key: VerdictKey, answer: JudgeAnswer) -> None:
        """Keeps an answer in memory, and writes it to the second level in the background."""
        blob = encode_answer(answer)
        self._lru.put(key.name, blob, pinned=True)
        # Where a prompt is cut depends on settings, which a store outlives.
        if self._writer is not None and not answer.truncated:
            self._writer.add(key.name, Write(key.stored, blob, Tier.PREDICTION, _NO_DIMS, EntryKind.VERDICT))

    async def flush(self) -> None:
        """Returns when everything that was kept is written, or has failed to be."""
        if self._writer is not None:
            await self._writer.flush()

    def _key(self, need: JudgeNeed, judge: ModelStatus) -> VerdictKey:
        owner = need.namespace or self._namespace, judge.digest
        space = self._spaces.get(owner)
        if space is None:
            if len(self._spaces) >= _MAX_SPACES:
                self._spaces.clear()
            space = KeySpace(namespace=owner[0], model_digest=owner[1], kind=EntryKind.VERDICT)
            self._spaces[owner] = space
        (name,) = space.hashes([canonical(need, judge.precision)])
        return VerdictKey(name, space.stored(name))

    def _written(self, name: bytes, tier: Tier) -> None:
        blob = self._lru.peek(name)
        if blob is not None:
            self._lru.refresh(name, with_tier(blob, tier))
