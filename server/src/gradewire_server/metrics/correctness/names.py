"""Find answers that give a name with another first or last word: "Jacques Delors" for "Jacques Chirac"."""

import re
from collections.abc import Sequence
from typing import Final

from rapidfuzz.distance import JaroWinkler

from gradewire_server.metrics.correctness.words import STOP_WORDS, VOCABULARY, FeatureText, folded, number_or_lemma
from gradewire_server.metrics.text.normalise import known_words

_MOST_REFERENCES: Final = 12
_MOST_WORDS_OF_NAME: Final = 5
_MOST_TOKENS: Final = 512
_LEAST_LETTERS: Final = 3
_MOST_LETTERS_OF_SHORT_FORM: Final = 4
_SAME_NAME: Final = 0.9
"""Minimum similarity of two spellings of one name."""
_TOKEN: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_TITLES: Final = STOP_WORDS.union(VOCABULARY["words"]["titles"].split())


def name_altered(
    question: FeatureText, references: Sequence[FeatureText], said: frozenset[str], answer: FeatureText
) -> float:
    """Return 1 if an answer has one end of a reference's name beside another name, and no reference; otherwise 0.

    Only names of two to five capitalised words count. Middle names, initials, titles and similar spellings do not.

    Args:
        question: The question, whose words are no other names.
        references: The references.
        said: The answer's words, and the references' words that the answer has in another form.
        answer: The answer.
    """
    references = references[:_MOST_REFERENCES]
    if any(said.issuperset(reference.content) for reference in references):
        return 0.0
    names = [name for reference in references if (name := _name(reference.raw)) and not said.isdisjoint(name)]
    if not names:
        return 0.0
    tokens = _TOKEN.findall(answer.raw)[:_MOST_TOKENS]
    words = [folded(token).strip() for token in tokens]
    known = question.distinct.union(*(reference.distinct for reference in references))
    return float(
        any(
            word == kept
            and 0 <= place + step < len(words)
            and _is_another(tokens[place + step], words[place + step], lacking, known)
            and (step > 0 or words[place + step] not in known_words())
            for name in names
            for kept, lacking, step in ((name[-2], name[-1], 1), (name[1], name[0], -1))
            if lacking not in said and _TITLES.isdisjoint((kept, lacking))
            for place, word in enumerate(words)
        )
    )


def _name(text: str) -> list[str]:
    """Return the folded words of a name, or an empty list."""
    tokens = _TOKEN.findall(text)
    if not 1 < len(tokens) <= _MOST_WORDS_OF_NAME or not all(token[0].isupper() for token in tokens):
        return []
    return [folded(token).strip() for token in tokens]


def _is_another(token: str, word: str, lacking: str, known: frozenset[str]) -> bool:
    return (
        token[0].isupper()
        and min(len(word), len(lacking)) >= _LEAST_LETTERS
        and word not in _TITLES
        and known.isdisjoint((word, number_or_lemma(word)))
        and JaroWinkler.normalized_similarity(word, lacking) < _SAME_NAME
        and not (min(len(word), len(lacking)) <= _MOST_LETTERS_OF_SHORT_FORM and word[:3] == lacking[:3])
    )
