"""What is kept of vectors: in memory at once, in the second level behind the scenes. All models share it."""

from typing import NamedTuple

from gradewire_server.domain.needs import Tier
from gradewire_server.encoders.waiting_calls import PendingText
from gradewire_server.storage.codec import with_tier
from gradewire_server.storage.keys import ModelSpaces
from gradewire_server.storage.lru import SegmentedLru
from gradewire_server.storage.second_level import SecondLevel, Write
from gradewire_server.storage.telemetry import StorageTelemetry
from gradewire_server.storage.token_codec import sentence_of, with_sentence
from gradewire_server.storage.vector_kind import SENTENCE, Blobs, VectorKind
from gradewire_server.storage.write_behind import WriteBehind


class Entry(NamedTuple):
    """What the first level holds of a text under a name."""

    text: str
    kind: VectorKind
    name: bytes
    blob: bytes


class BlobCache:
    """Both levels. Lives on one event loop.

    Args:
        lru: The first level.
        second: The second level, or None; closed with this.
        telemetry: Counts what was not written.
        max_pending_writes: See `CacheConfig`.
    """

    def __init__(
        self, lru: SegmentedLru, second: SecondLevel | None, telemetry: StorageTelemetry, *, max_pending_writes: int
    ) -> None:
        self.get = lru.get
        self.second = second
        self._lru = lru
        self._writer = (
            WriteBehind(second, telemetry, max_pending=max_pending_writes, written=self._written) if second else None
        )

    def keep(self, spaces: ModelSpaces, text: PendingText, found: Blobs) -> Blobs:
        """Puts entries into the first level and offers them to the second; all with one sentence vector."""
        sentence = self._lru.get(text.name)
        if sentence is None:
            sentence = found.get(SENTENCE) or sentence_of(next(iter(found.values())), spaces.dims)
        kept = {kind: with_sentence(blob, sentence) for kind, blob in found.items() if kind != SENTENCE}
        kept[SENTENCE] = sentence
        for kind, blob in kept.items():
            name = text.name if kind == SENTENCE else spaces.of(kind).hashes([text.text])[0]
            self._lru.put(name, blob, pinned=text.tier is Tier.REFERENCE)
            self._persist(spaces, Entry(text.text, kind, name, blob), text.tier)
        return kept

    def used(self, spaces: ModelSpaces, entry: Entry, tier: Tier) -> None:
        """Offers an entry that was found in the first level to the second, which does not keep it as `tier` yet."""
        if self._writer is None:
            return
        if entry.kind != SENTENCE:
            name = spaces.sentence.hashes([entry.text])[0]
            sentence = self._lru.get(name)
            if sentence is None:
                sentence = sentence_of(entry.blob, spaces.dims)
                self._lru.put(name, sentence, pinned=False)
            self._persist(spaces, Entry(entry.text, SENTENCE, name, sentence), tier)
            blob = with_sentence(entry.blob, sentence)
            if tier is Tier.PREDICTION:
                # It is not stored itself, and so is kept as well as its sentence is.
                blob = with_tier(blob, Tier(min(max(blob[-1], sentence[-1]), tier)))
            self._lru.refresh(entry.name, blob)
            entry = entry._replace(blob=blob)
        self._persist(spaces, entry, tier)

    async def close(self) -> None:
        """Waits for what is being written, then closes the second level."""
        if self._writer is not None:
            await self._writer.flush()
        if self.second is not None:
            await self.second.close()

    def _persist(self, spaces: ModelSpaces, entry: Entry, tier: Tier) -> None:
        if self._writer is None or tier is Tier.WINDOW or entry.blob[-1] >= tier:
            return
        if entry.kind == SENTENCE or tier is Tier.REFERENCE:
            space = spaces.of(entry.kind)
            self._writer.add(entry.name, Write(space.stored(entry.name), entry.blob, tier, spaces.dims, space.kind))

    def _written(self, name: bytes, tier: Tier) -> None:
        blob = self._lru.peek(name)
        if blob is not None:
            self._lru.refresh(name, with_tier(blob, tier))
