"""Words and n-grams of CIDEr, the same for answers and for the corpus that they are weighed by.

Source: Vedantam, Zitnick and Parikh 2015, "CIDEr: Consensus-based Image Description Evaluation", section 3.
"""

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

import numpy as np

from gradewire_server.metrics.text.reference_words import words_of_references
from gradewire_server.metrics.text.smile_normalise import bare_words
from gradewire_server.metrics.text.word_split import MAX_WORDS

MAX_ORDER: Final = 4
"""Longest n-gram, in words."""
Ngram: TypeAlias = tuple[str, ...]


def words_of(text: str) -> tuple[list[str], bool]:
    """The first MAX_WORDS words, lower-case and without punctuation, and whether there are more.

    A text without any word ("?!") has its parts between white space instead, so that none is empty by accident.
    """
    words = bare_words(text) or text.lower().split()
    return words[:MAX_WORDS], len(words) > MAX_WORDS


def ngrams(words: Sequence[str]) -> Counter[Ngram]:
    """How often each n-gram of 1 to MAX_ORDER words occurs."""
    return Counter(_occurrences(words))


def document_frequencies(documents: Sequence[Sequence[str]]) -> dict[Hashable, int]:
    """In how many documents each n-gram occurs; a document is the references of one entry, taken together.

    What occurs in one document only is left out: its weight is that of an n-gram in none, and it is most of a corpus.
    """
    # Found by their hashes first: to hold all that occur once as tuples would take ten times the memory.
    hashes = array("q")
    for references in documents:
        hashes.extend(map(hash, _distinct(references)))
    numbers, counts = np.unique(np.array(hashes, np.int64), return_counts=True)
    shared = set(numbers[counts > 1].tolist())
    found: Counter[Ngram] = Counter()
    for references in documents:
        found.update(ngram for ngram in _distinct(references) if hash(ngram) in shared)
    return {ngram: count for ngram, count in found.items() if count > 1}


def _distinct(references: Sequence[str]) -> set[Ngram]:
    return {ngram for words in words_of_references(references, words_of)[0] for ngram in _occurrences(words)}


def _occurrences(words: Sequence[str]) -> Iterator[Ngram]:
    orders = range(1, MAX_ORDER + 1)
    return chain.from_iterable(zip(*(words[start:] for start in range(order)), strict=False) for order in orders)
