"""Vary the wording of questions and answers."""

import re
from random import Random

from gradewire_train.material import ANSWERS

_SEARCHED = 0.45
"""Share of questions in the style of a search box, in lower case and without a question mark."""

_SOUNDS = (("ph", "f"), ("ck", "k"), ("c", "k"), ("y", "i"), ("ie", "y"), ("ou", "u"), ("oo", "u"), ("z", "s"))
_SHORTEST_MISSPELT = 6
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1")


def question_style(rng: Random, question: str) -> str:
    """Return the question with a capital and a question mark, or in the style of a search box."""
    bare = question.strip().rstrip("?")
    if rng.random() < _SEARCHED:
        return bare.lower()
    return f"{capitalised(bare)}?"


def answer_style(rng: Random, answer: str) -> str:
    """Return the answer, sometimes restyled: capitalised, in capitals, lower-cased, quoted, or with a full stop."""
    drawn = rng.random()
    if drawn < 0.10:
        return capitalised(answer)
    if drawn < 0.14 and len(answer) < 30:
        return answer.upper()
    if drawn < 0.20:
        return f"{answer}."
    if drawn < 0.22:
        return f'"{answer}"'
    if drawn < 0.28:
        return answer.lower()
    return answer


def capitalised(text: str) -> str:
    """Return the text with a capital first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def with_article(noun: str) -> str:
    """Return the noun with "a" or "an"; only the first letter counts, so the article is wrong for a few nouns."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def misspelt(rng: Random, text: str) -> str:
    """Return the text with a misspelt word, or unchanged if all words are short; the word keeps its first letter."""
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= _SHORTEST_MISSPELT and word.isalpha()]
    if not long:
        return text
    at = rng.choice(long)
    words[at] = _slip(rng, words[at])
    return " ".join(words)


def _slip(rng: Random, word: str) -> str:
    ways = [_DOUBLED.sub(r"\1", word, count=1)]
    ways += [word[0] + word[1:].replace(old, new, 1) for old, new in _SOUNDS]
    at = rng.randrange(1, len(word) - 2)
    ways.append(f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}")
    changed = [way for way in ways if way != word]
    return rng.choice(changed) if changed else word


def sentence(rng: Random, statement: str) -> str:
    """Return the question's statement or a general sentence, with "{}" in place of the answer."""
    drawn = f"{statement}." if statement and rng.random() < 0.5 else rng.choice(ANSWERS["sentences"])
    if rng.random() < 0.12:
        drawn = " ".join([drawn, rng.choice(ANSWERS["asides"])])
    return drawn


def filled(template: str, answer: str) -> str:
    """Return the template with the answer filled in and a capital first letter."""
    return capitalised(template.replace("{}", answer))


def contrast(rng: Random, right: str, wrong: str) -> tuple[str, str]:
    """Return a sentence that prefers `right` to `wrong`, and the sentence with the two swapped."""
    template = rng.choice(ANSWERS["contrasts"])
    return capitalised(template.format(right, wrong)), capitalised(template.format(wrong, right))
