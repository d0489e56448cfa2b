"""How a reference set is called, and what tells its corpus apart."""

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, Protocol

from gradewire_proto.conventions.normal_form import nfc

MAX_NAME_BYTES: Final = 256
"""A name in UTF-8; it becomes part of a key."""
_DIGEST_BYTES: Final = 16
_PINNED: Final = re.compile(rf"(?P<name>.*)@(?P<digest>[0-9a-fA-F]{{8,{2 * _DIGEST_BYTES}}})", re.DOTALL)


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


def split_pin(reference_set: str) -> tuple[str, str]:
    """Name and digest, in lower case, of NAME@DIGEST; of any other name itself and "", so of one that is too long."""
    if len(reference_set) > MAX_NAME_BYTES + 1 + 2 * _DIGEST_BYTES:
        return reference_set, ""  # of megabytes, perhaps, which are not searched
    pinned = _PINNED.fullmatch(reference_set)
    return (reference_set, "") if pinned is None else (pinned["name"], pinned["digest"].lower())


def entry_payload(question: str, references: Sequence[str]) -> bytes:
    """An entry of a corpus as it is kept and named: distinct references in order, all texts in NFC."""
    return json.dumps([question, *references], ensure_ascii=False).encode()


def entry_name(payload: bytes) -> bytes:
    """16 bytes that name an entry by its `entry_payload`."""
    return blake2b(payload, digest_size=_DIGEST_BYTES).digest()


def corpus_digest(names: Iterable[bytes]) -> str:
    """32 hex digits over the names of a corpus' entries, whatever their order and however often one is named."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for name in sorted(set(names)):
        digest.update(name)
    return digest.hexdigest()


def digest_entries(entries: Iterable[EntryTexts]) -> str:
    """The `corpus_digest` of entries as they are sent; raises TooManyMarksError as `name_set`."""
    return corpus_digest(
        entry_name(entry_payload(nfc(entry.question), sorted({nfc(text) for text in entry.references})))
        for entry in entries
    )
