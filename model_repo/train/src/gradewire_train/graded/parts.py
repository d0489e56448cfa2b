"""Two disjoint parts of all words, names and templates: one to train on, one to evaluate on."""

import hashlib
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final, Literal, TypeVar

from gradewire_train.texts.wordnet import Synset

Name = Literal["train", "eval"]
T = TypeVar("T")

_EVAL_OF_256: Final = 77
_SHORTEST: Final = 3
"""Lists of fewer texts (am, pm) are whole in both parts."""
_SHORTEST_OF_WORDS: Final = 6
"""Lists of fewer texts are whole in both parts where all texts are of one or two words: "Jr.", "Sr.", "III"."""
_EVAL_SHARE: Final = 0.3
_WORTH_KEEPING: Final = 64


class TooFewError(ValueError):
    """A list has too few texts of this part; the caller draws something else."""


class Part:
    """Decides by hash which texts belong to a part, so a text is in the same part wherever it stands."""

    def __init__(self, name: Name) -> None:
        self.name: Name = name
        self._kept: dict[int, tuple[Sequence[Any], Sequence[Any]]] = {}

    def owns(self, text: str) -> bool:
        """Return whether `text` is of this part, regardless of case."""
        return (_hashed(text)[0] < _EVAL_OF_256) == (self.name == "eval")

    def of(self, items: Sequence[T]) -> Sequence[T]:
        """The items of this part: texts, tuples by their first text, synsets by their first word; others are all."""
        if len(items) < _SHORTEST or _text(items[0]) is None:
            return items
        known = self._kept.get(id(items))
        if known is not None and known[0] is items:
            return known[1]
        own = self._split(items, [_text(item) or "" for item in items])
        if len(items) >= _WORTH_KEEPING:
            # The list itself is kept too, so no other one can get its id.
            self._kept[id(items)] = (items, own)
        return own

    def _split(self, items: Sequence[T], texts: Sequence[str]) -> Sequence[T]:
        if not any("{" in text or text.count(" ") > 1 for text in texts):
            if len(items) < _SHORTEST_OF_WORDS:
                return items
            return [item for item, text in zip(items, texts, strict=True) if self.owns(text)]
        # Templates stand in one list each, and of a short list each part needs one.
        ranked = sorted(set(texts), key=_hashed)
        own = set(ranked[: max(1, round(_EVAL_SHARE * len(ranked)))])
        return [item for item, text in zip(items, texts, strict=True) if (text in own) == (self.name == "eval")]


class PartRandom(Random):
    """A generator that draws only what is of its part from any list of texts.

    Raises:
        TooFewError: From `choice`, `choices` and `sample` where the part has too few.
    """

    def __init__(self, part: Part, seed: str) -> None:
        super().__init__(seed)
        self.part = part

    def choice(self, seq: Any) -> Any:
        """One of the part's items."""
        return super().choice(self._own(seq, 1))

    def choices(self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        """Items with repeats; by `weights` among all of them, which texts do not have."""
        if weights is not None or cum_weights is not None:
            return super().choices(population, weights, cum_weights=cum_weights, k=k)
        return super().choices(self._own(population, 1), k=k)

    def sample(self, population: Any, k: int, *, counts: Iterable[int] | None = None) -> list[Any]:
        """Distinct items."""
        return super().sample(self._own(population, k), k, counts=counts)

    def _own(self, items: Any, wanted: int) -> Any:
        own = self.part.of(items)
        if len(own) < wanted:
            raise TooFewError
        return own


def _hashed(text: str) -> bytes:
    return hashlib.blake2b(text.casefold().encode("utf-8"), digest_size=8).digest()


def _text(item: Any) -> str | None:
    if isinstance(item, tuple) and item and not isinstance(item[0], tuple):
        return _text(item[0])
    if isinstance(item, Synset):
        return item.words[0].text
    return item if isinstance(item, str) else None
