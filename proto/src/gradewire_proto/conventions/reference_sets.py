"""How a reference set is called."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, Protocol

from gradewire_proto.conventions.normal_form import nfc

MAX_NAME_BYTES: Final = 256
"""A name in UTF-8; it becomes part of a key."""
_DIGEST_BYTES: Final = 16


class EntryTexts(Protocol):
    """An entry of a set, as far as its name goes: the message, or the server's own form of it."""

    @property
    def question(self) -> str:
        """What was asked."""
        ...

    @property
    def references(self) -> Sequence[str]:
        """Right answers."""
        ...

    @property
    def synthetic_answers(self) -> Sequence[str]:
        """Each reference written out as a sentence; or empty."""
        ...


def name_set(entries: Iterable[EntryTexts], writer: Sequence[str] = ()) -> str:
    """32 hex digits over the texts of all entries in NFC, in their order.

    Args:
        entries: Of the set.
        writer: Where a judge writes synthetic answers: its digest and its prompt's; another one makes another set.

    Raises:
        TooManyMarksError: A text has more combining marks in a row than the server takes.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    groups = (texts for entry in entries for texts in ((entry.question,), entry.references, entry.synthetic_answers))
    for texts in (*groups, *(((), writer) if writer else ())):
        digest.update(len(texts).to_bytes(8, "big"))
        for text in texts:
            data = nfc(text).encode()
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
