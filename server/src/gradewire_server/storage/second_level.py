"""What stands behind the in-process cache: disk on this machine, or Redis shared by several."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.storage.codec import pack
from gradewire_server.storage.keys import EntryKind


class Write(NamedTuple):
    """A vector to keep.

    Attributes:
        key: `KeySpace.stored`.
        blob: See `codec`.
        tier: REFERENCE is kept without a time to live.
        dims: Length of the model's vectors.
        kind: Of the blob.
    """

    key: bytes
    blob: bytes
    tier: Tier
    dims: int
    kind: EntryKind = EntryKind.SENTENCE

    def packed(self, expires_unix_s: int) -> bytes:
        """As the value to store; 0 for never expiring."""
        return pack(self.key, self.blob, self.dims, expires_unix_s, kind=self.kind)


CHUNK_KEYS = {EntryKind.SENTENCE: 256, EntryKind.TOKENS: 16, EntryKind.VERDICT: 256, EntryKind.LOGIT: 256}
"""Entries read at a time: token vectors of a long text are as large as 250 sentences', and take as long to check."""


class SecondLevel(Protocol):
    """A store of checked values. Nothing it does can change a vector, delay one for long, or raise."""

    @property
    def source(self) -> AnswerSource:
        """What its answers are counted as."""

    @property
    def available(self) -> bool:
        """Whether writing is worth trying now."""

    async def read(
        self, keys: Sequence[bytes], dims: int, *, kind: EntryKind = EntryKind.SENTENCE
    ) -> list[bytes | None]:
        """Blobs by key, None for what is not there, cannot be read in time or fails its check."""

    async def write(self, writes: Sequence[Write]) -> int:
        """Keeps vectors; returns how many, counted from the front, it has."""

    def degraded(self) -> str:
        """Why it does not work as it should, "" when it does."""

    async def close(self) -> None:
        """Gives back what it holds."""
