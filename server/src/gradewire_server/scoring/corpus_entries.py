"""Entries of a corpus in the one form in which they are kept, counted and named."""

from collections.abc import Hashable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import ReferenceEntries
from gradewire_server.metrics.checks import check_question
from gradewire_server.metrics.embedding.bertscore_match import behind_question

_DIGEST_BYTES = 6
_WITH_QUESTION = b"with_question"


def entry_of(question: str, references: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """A question and its distinct references in order: how often and where one stands makes no other document."""
    return question, tuple(sorted(set(references)))


def distinct_references(entries: ReferenceEntries, *, with_question: bool = False) -> list[str]:
    """Every reference text once, in order; `with_question`: behind its question, where the entry has one."""
    if not with_question:
        return sorted({text for _, references in entries for text in references})
    asked = [(question, references) for question, references in entries if check_question(question) is None]
    return sorted({behind_question(question, text) for question, references in asked for text in references})


def name_of(name: str, documents: int, entries: ReferenceEntries, *, with_question: bool = False) -> str:
    """NAME:DOCUMENTS:DIGEST, 12 hex digits over the entries, which are distinct, whatever their order.

    References behind their questions are another corpus of the same entries, and have another digest.
    """
    state = blake2b(digest_size=_DIGEST_BYTES, person=_WITH_QUESTION if with_question else b"")
    for question, references in sorted(entries):
        for text in (str(len(references)), question, *references):
            encoded = text.encode()
            state.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"{name}:{documents}:{state.hexdigest()}"


def count_tokens(ids: Sequence[NDArray[np.int32]]) -> dict[Hashable, int]:
    """In how many of the texts each token number occurs.

    Args:
        ids: Per text, int32[tokens], no number below 0.
    """
    if not ids:
        return {}
    texts = np.repeat(np.arange(len(ids), dtype=np.int64), [len(each) for each in ids])
    occurrences = np.unique((texts << 32) | np.concatenate(ids).astype(np.int64))
    numbers, counts = np.unique(occurrences & 0xFFFFFFFF, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))
