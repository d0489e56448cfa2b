"""One slip of the keyboard or of the ear in a word: what a reader takes for the same name."""

import re
from random import Random

_SOUNDS = (("ph", "f"), ("ck", "k"), ("c", "k"), ("y", "i"), ("ie", "y"), ("ou", "u"), ("oo", "u"), ("z", "s"))
_SHORTEST = 6
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1")


def misspelt(rng: Random, text: str) -> str:
    """The text with one word spelt a little otherwise; itself where all words are short.

    A double letter written once, a sound in other letters, two letters exchanged, never the first one.
    """
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= _SHORTEST and word.isalpha()]
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
