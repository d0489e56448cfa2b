"""Texts to calibrate on: sentence frames of our own, filled with words of the model's own vocabulary.

The frames have the forms the service sees: short answers, questions, answers in sentences, question and answer in one
text. The words come from the tokenizer, so that the word vectors of a whole vocabulary are looked at and not those of a
few topics.
"""

import hashlib
import re
from pathlib import Path

from tokenizers import Tokenizer

from gradewire_models.errors import BuildError

_TEXTS = 720
_WORD = re.compile(r"[a-z]{3,}")
_FRAMES = (
    "_",
    "the _",
    "a _ _",
    "_ and _",
    "_ _ _",
    "yes, the _",
    "no, it is a _",
    "about 19 _",
    "_ of the _",
    "Dr. _ _",
    "In 1987, _.",
    "The _ is _.",
    "It was _ in _.",
    "The answer is _.",
    "I see two _ beside a _.",
    "What is the _ next to the _?",
    "Who was the first _ of _?",
    "When did the _ begin to _ in _?",
    "How many _ does a _ have?",
    "It is a _ _, because the _ has 3 _.",
    "There is a _ on the left, and a _ that could be _.",
    "I am not sure, but it may be the _ or the _ of _.",
    "Question: which _ is _? Answer: _",
    "Question: what is a _ called in _? Answer: a _ _",
    "Question: who is the _ in front of the _? Answer: The _ of _.",
    "Question: when was the _ of _ built? Answer: It was built in 1926, as the _ of a _.",
    "The _ of _ was a _ and _ who wrote about the _, the _ and many other _ of his time.",
    "As far as is known, the _ began as a _; later it became a _ for _, and since 2004 it has been a _ of the _.",
    "_: a _ that is used to _ a _. Most _ are made of _ or _, and some have a _ at the end so that they do not _.",
    "Question: why is the _ _? Answer: Because the _ is _, so the _ cannot _ without the _, which is what a _ needs.",
)


def calibration_texts(tokenizer: Path) -> list[str]:
    """The texts for a model with this tokenizer.json; the same ones on every machine.

    Raises:
        BuildError: The vocabulary has no words to fill the frames with.
    """
    vocabulary = Tokenizer.from_file(str(tokenizer)).get_vocab(with_added_tokens=False)
    words = sorted(word for word in vocabulary if _WORD.fullmatch(word)) or sorted(vocabulary)
    if not words:
        raise BuildError(f"{tokenizer} has no words to calibrate with")
    texts = []
    for number in range(_TEXTS):
        pieces = _FRAMES[number % len(_FRAMES)].split("_")
        filled = [f"{piece}{words[_draw(number, place) % len(words)]}" for place, piece in enumerate(pieces[:-1])]
        texts.append("".join(filled) + pieces[-1])
    return texts


def texts_sha256(texts: list[str]) -> str:
    """Digest of `texts`, 64 hex characters, for a recipe to pin."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _draw(text: int, place: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{text}.{place}".encode()).digest()[:8])
