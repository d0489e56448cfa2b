"""Split all words, names and templates into disjoint parts for training and evaluation."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import compress
from random import Random
from typing import Any, Final, Literal, TypeVar

from gradewire_train.texts.wordnet import Synset

Name = Literal["train", "eval"]
T = TypeVar("T")

_EVAL_OF_256: Final = 77
_SHORTEST: Final = 3
"""Minimum length of a list to split. Both parts use all of a shorter list, such as "am" and "pm"."""
_SHORTEST_OF_WORDS: Final = 6
"""Minimum length to split a list in which every text has one or two words, such as "Jr." and "III"."""
_EVAL_SHARE: Final = 0.3
_WORTH_KEEPING: Final = 64


class TooFewError(ValueError):
    """Raised when a list has too few texts in a part; the caller then tries a different draw."""


class Part:
    """One of the two parts of all texts; a hash assigns each text to the same part in every run."""

    def __init__(self, name: Name) -> None:
        self.name: Name = name
        self._kept: dict[int, tuple[Sequence[Any], Sequence[Any]]] = {}

    def owns(self, text: str) -> bool:
        """Return True if `text` belongs to this part, regardless of case."""
        return _owns(self.name, text)

    def of(self, items: Sequence[T]) -> Sequence[T]:
        """Return the items in this part; a tuple's first text or a synset's first word determines the part."""
        if len(items) < _SHORTEST or _text(items[0]) is None:
            return items
        known = self._kept.get(id(items))
        if known is not None and known[0] is items:
            return known[1]
        choose = _chosen if len(items) < _WORTH_KEEPING else _chosen.__wrapped__
        chosen = choose(self.name, tuple([_text(item) or "" for item in items]))
        own = items if chosen is None else list(compress(items, chosen))
        if len(items) >= _WORTH_KEEPING:
            # Keep a reference to the list, so that no other list can get the same id.
            self._kept[id(items)] = (items, own)
        return own


class PartRandom(Random):
    """A random generator that draws only those texts of a list that belong to the part.

    Raises:
        TooFewError: `choice`, `choices` or `sample` got a list with too few texts in this part.
    """

    def __init__(self, part: Part, seed: str) -> None:
        super().__init__(seed)
        self.part = part

    def choice(self, seq: Any) -> Any:
        """Return one of the part's items."""
        return super().choice(self._own(seq, 1))

    def choices(self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        """Return items of the part, with repeats. Lists with weights contain no texts, so both parts use all items."""
        if weights is not None or cum_weights is not None:
            return super().choices(population, weights, cum_weights=cum_weights, k=k)
        return super().choices(self._own(population, 1), k=k)

    def sample(self, population: Any, k: int, *, counts: Iterable[int] | None = None) -> list[Any]:
        """Return distinct items."""
        return super().sample(self._own(population, k), k, counts=counts)

    def _own(self, items: Any, wanted: int) -> Any:
        own = self.part.of(items)
        if len(own) < wanted:
            raise TooFewError
        return own


# Nearly all draws are from the same few hundred lists, each with the same texts.
@lru_cache(maxsize=2048)
def _chosen(name: Name, texts: tuple[str, ...]) -> tuple[bool, ...] | None:
    """Return for each text whether it belongs to the part; None if the list is too short to split."""
    if not any("{" in text or text.count(" ") > 1 for text in texts):
        return None if len(texts) < _SHORTEST_OF_WORDS else tuple(_owns(name, text) for text in texts)
    # Split templates by rank instead of hash, so that both parts get a template even from a short list.
    ranked = sorted(set(texts), key=_hashed)
    evaluated = set(ranked[: max(1, round(_EVAL_SHARE * len(ranked)))])
    return tuple((text in evaluated) == (name == "eval") for text in texts)


def _owns(name: Name, text: str) -> bool:
    return (_hashed(text)[0] < _EVAL_OF_256) == (name == "eval")


def _hashed(text: str) -> bytes:
    return hashlib.blake2b(text.casefold().encode("utf-8"), digest_size=8).digest()


def _text(item: Any) -> str | None:
    if isinstance(item, tuple) and item and not isinstance(item[0], tuple):
        return _text(item[0])
    if isinstance(item, Synset):
        return item.words[0].text
    return item if isinstance(item, str) else None
