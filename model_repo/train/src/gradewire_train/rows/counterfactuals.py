"""Change labelled answers in one place, so that a right answer becomes wrong, or a wrong one right.

Labelled answers have wordings that no template has. A changed answer differs from its original only in what
decides its label, so that the grader cannot learn the label from the wording. Sources: Kaushik et al. 2020, "Learning
the Difference that Makes a Difference with Counterfactually-Augmented Data"; Gardner et al. 2020, "Evaluating Models'
Local Decision Boundaries via Contrast Sets".
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from gradewire_train.material import GRADED
from gradewire_train.rows.row import DRAWN, GraderRow
from gradewire_train.texts.draw import normal
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.wording import capitalised

COUNTERFACTUAL: Final = "counterfactual"
"""The source of all changed answers, which therefore have together the weight of one source."""
_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_MOST_WORDS: Final = 6
"""Maximum length of a reference that stands for a value: a longer one is a statement, and does not fit into templates
for values."""
_TRIES: Final = 20


def counterfactuals(rows: Sequence[GraderRow], count: int, lexicon: Lexicon, *, seed: int) -> list[GraderRow]:
    """Return at most `count` changed answers, about half of them right; the order of `rows` does not matter.

    Each kind changes one row at a time:

    - exchanged: A right answer's reference is replaced by a reference of another question that begins with the same
      word and has an answer of the same shape, so the answer becomes wrong. It becomes right again if the new value
      becomes the row's reference.
    - taken_back: A right answer is corrected to another value, or a wrong answer to the reference.
    - corrected: The answer names the reference and another value, and decides for one of them.
    - denied: The answer denies the reference, or gives it with doubt, which is still right.
    - opposite: A word that the reference has too is replaced by its antonym (WordNet), so the answer becomes wrong; the
      row's reference with the same change makes it right again.

    Drawn rows and rows without a question are not changed.
    """
    usable = sorted(
        (row for row in rows if row.source != DRAWN and row.question and row.label in {0, 1}),
        key=lambda row: (row.id, row.question, row.prediction),  # IDs of different files may be equal
    )
    if not usable or not count:
        return []
    kinds = list(_Changes(_Donors(usable), lexicon).kinds.items())
    rng = Random(f"{seed}/counterfactuals")  # noqa: S311 - no secret
    found: dict[tuple[str, tuple[str, ...], str], GraderRow] = {}
    for number in range(_TRIES * count):
        if len(found) == count:
            break
        kind, change = kinds[number % len(kinds)]
        made = change(rng.choice(usable), rng, right=number // len(kinds) % 2 == 0)
        if made is not None:
            row = replace(made, id=f"{made.id} {kind}", source=COUNTERFACTUAL)
            found.setdefault((row.question, row.references, row.prediction), row)
    return list(found.values())


_Change = Callable[..., GraderRow | None]
"""A function that changes a row so that it is `right` or not, or returns None if it cannot change this row."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A reference, with the question that it answers."""

    text: str
    question: str


class _Donors:
    """The references of all rows, by the shape of question and answer: values that could answer a similar question."""

    def __init__(self, rows: Sequence[GraderRow]) -> None:
        self._values: dict[tuple[str, ...], list[_Value]] = defaultdict(list)
        for row in rows:
            for reference in row.references:
                if _is_value(reference):
                    self._values[_shape(row.question, reference)].append(_Value(reference, row.question))

    def other(self, row: GraderRow, reference: str, rng: Random) -> str | None:
        """Return a value of the same shape that is no reference of the row and shares no word with one."""
        values = self._values.get(_shape(row.question, reference), [])
        own = {word for each in row.references for word in normal(each).split()}
        for _ in range(_TRIES if values else 0):
            value = rng.choice(values)
            if value.question != row.question and not own & set(normal(value.text).split()):
                return value.text
        return None


class _Changes:
    """The kinds of changes, by name."""

    def __init__(self, donors: _Donors, lexicon: Lexicon) -> None:
        self._donors, self._lexicon = donors, lexicon
        self.kinds: Mapping[str, _Change] = {
            "exchanged": self._exchanged,
            "taken_back": self._taken_back,
            "corrected": self._corrected,
            "denied": _denied,
            "opposite": self._opposite,
        }

    def _exchanged(self, row: GraderRow, rng: Random, *, right: bool) -> GraderRow | None:
        said = _said(row)
        other = self._donors.other(row, said, rng) if said and row.label == 1 else None
        if said is None or other is None:
            return None
        prediction = _replaced(row.prediction, said, other)
        references = (other,) if right else row.references
        return replace(row, prediction=prediction, references=references, label=float(right))

    def _taken_back(self, row: GraderRow, rng: Random, *, right: bool) -> GraderRow | None:
        if row.label == float(right):
            return None
        reference = row.references[0]
        new = reference if right else self._donors.other(row, reference, rng)
        if new is None or not _is_value(reference):
            return None
        text = rng.choice(GRADED["taken_back"]).format(row.prediction.rstrip(), new)
        return replace(row, prediction=text, label=float(right))

    def _corrected(self, row: GraderRow, rng: Random, *, right: bool) -> GraderRow | None:
        reference = row.references[0]
        other = self._donors.other(row, reference, rng) if _is_value(reference) else None
        if other is None:
            return None
        said, wrong = (reference, other) if right else (other, reference)
        text = rng.choice(GRADED["corrections"]).format(said=said, wrong=wrong)
        return replace(row, prediction=capitalised(text), label=float(right))

    def _opposite(self, row: GraderRow, rng: Random, *, right: bool) -> GraderRow | None:
        if row.label != 1:
            return None
        pairs = [(word, against) for word, against in self._antonyms(row.prediction) if _has(row.references[0], word)]
        if not pairs:
            return None
        word, against = rng.choice(pairs)
        prediction = _replaced(row.prediction, word, against)
        references = (_replaced(row.references[0], word, against),) if right else row.references
        return replace(row, prediction=prediction, references=references, label=float(right))

    def _antonyms(self, text: str) -> Iterator[tuple[str, str]]:
        for word in dict.fromkeys(_WORD.findall(text)):
            for key in self._lexicon.keys_of(word)[:1]:
                synset = self._lexicon.synset(key)
                if synset.words[0].text.lower() == word.lower() and (against := self._lexicon.antonyms(synset)):
                    yield word, against[0]


def _denied(row: GraderRow, rng: Random, *, right: bool) -> GraderRow | None:
    reference = row.references[0]
    if not _is_value(reference):
        return None
    text = rng.choice(GRADED["doubts" if right else "denials"]).format(reference)
    return replace(row, prediction=capitalised(text), label=float(right))


def _is_value(reference: str) -> bool:
    return len(reference.split()) <= _MOST_WORDS and not reference.endswith((".", "!", "?"))


def _said(row: GraderRow) -> str | None:
    """Return the longest reference that the answer contains."""
    found = [each for each in row.references if _is_value(each) and _has(row.prediction, each)]
    return max(found, key=len, default=None)


def _has(text: str, part: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text, re.IGNORECASE) is not None


def _replaced(text: str, old: str, new: str) -> str:
    """Replace `old`; a capital at the start of a replaced part stays one."""

    def put(found: re.Match[str]) -> str:
        return capitalised(new) if found[0][:1].isupper() else new

    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", put, text, flags=re.IGNORECASE)


_QUESTION_WORDS: Final[Mapping[str, str]] = {
    "who": "who", "whom": "who", "whose": "who", "when": "when", "where": "where", "how": "how", "why": "why",
}  # fmt: skip


def _shape(question: str, reference: str) -> tuple[str, ...]:
    """Return what two questions with exchangeable answers have in common: question word, digits, capital, length."""
    asked = next((_QUESTION_WORDS[word] for word in normal(question).split() if word in _QUESTION_WORDS), "what")
    digits = "digit" if any(character.isdigit() for character in reference) else "no digit"
    capital = "capital" if reference[:1].isupper() else "small"
    return asked, digits, capital, str(min(4, len(reference.split())))
