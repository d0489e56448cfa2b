"""Whether a sentence that a judge wrote is about its question, or is what the judge was shown.

A small judge that does not know how to go on repeats its prompt: the criticism of its first try, the instructions, an
example. The answer's words may well stand in such a sentence; on the second try they always do, as it begins with them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gradewire_server.metrics.judged.neutralise import cut_to_words
from gradewire_server.metrics.judged.prompt import demonstration_set
from gradewire_server.metrics.judged.prompts import PromptFile
from gradewire_server.metrics.text.word_split import MAX_WORDS, split_words
from gradewire_server.scoring.synthetic.check import Flaw

LEAST_RUN_WORDS: Final = 4
LEAST_RUN_LETTERS: Final = 12
"""A shorter run of words is no repetition, above all in scripts whose words are single letters."""
_LEAST_FOREIGN_WORDS: Final = 2
_LEAST_STEM_LETTERS: Final = 3

# Words that say nothing of what a question is about.
_FUNCTION_WORDS: Final = frozenset(
    """
    a about after all also an and any are as at be been before being both but by can could did do does doing for from
    had has have having he her hers him his how i if in into is it its many may me might more most much must my no
    nor not of on one or other our out over s shall she should so some such t than that the their them then there
    these they this those to too under up very was we were what when where which who whom whose why will with would
    yes you your
    """.split()  # noqa: SIM905 - as a list it would take a line for each
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the judge was shown.

    Attributes:
        prompt: A file of the metric "synthetic".
        variant_name: One of its variants.
        problem: What it said was wrong before; "" for nothing.
    """

    prompt: PromptFile
    variant_name: str
    problem: str = ""


def find_echo(sentence: str, shown: Shown, *, question: str, reference: str) -> Flaw | None:
    """What of the prompt a sentence repeats; words of question and reference are nobody's own.

    Args:
        sentence: Not blank, MAX_WORDS words at most.
        shown: What may be repeated.
        question: What was asked.
        reference: The answer.
    """
    words = split_words(sentence)
    known = _content(split_words(_head(question))) | _content(split_words(_head(reference)))
    own = _own_words(shown)
    for start in range(len(words)):
        run = _run_from(words[start:])
        if run and f" {' '.join(run)} " in own and not _content(run) <= known:
            return Flaw.INSTRUCTIONS
    said = _content(words)
    for whole, frame in _examples(shown.prompt, shown.variant_name):
        if any(kept <= said and len(kept - known) >= _LEAST_FOREIGN_WORDS for kept in (whole, frame)):
            return Flaw.EXAMPLE
    return None


def is_about(sentence: str, question: str, reference: str) -> bool:
    """Whether a word of the question that says what it is about stands in the sentence, beside the reference.

    Inflections count where one word is the beginning of the other ("swim", "swimming"). True where the question has no
    such word, or none that is not in the reference.
    """
    answer = set(split_words(_head(reference)))
    asked = _content(split_words(_head(question))) - answer
    said = _content(split_words(_head(sentence))) - answer
    return not asked or any(_related(one, other) for one in asked for other in said)


def _related(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= _LEAST_STEM_LETTERS and longer.startswith(shorter))


def _run_from(words: list[str]) -> list[str]:
    """The shortest run at the begin of `words` that counts as one; empty where they are too few."""
    letters = 0
    for count, word in enumerate(words, 1):
        letters += len(word)
        if count >= LEAST_RUN_WORDS and letters >= LEAST_RUN_LETTERS:
            return words[:count]
    return []


def _content(words: Iterable[str]) -> frozenset[str]:
    # Where a text has no word, `split_words` gives its punctuation.
    return frozenset(word for word in words if word[0].isalnum()) - _FUNCTION_WORDS


def _head(text: str) -> str:
    return cut_to_words(text, MAX_WORDS)[0]


@lru_cache(maxsize=256)
def _own_words(shown: Shown) -> str:
    """The words of instructions and of an item without its texts, one blank around each."""
    variant = shown.prompt.variants[shown.variant_name]
    item = variant.item.render({"question": "", "answer": "", "problem": shown.problem}).text
    texts = [text for text in (variant.system, item) if text.strip()]
    # A mark between the texts that is no word: no run goes on over it.
    return " | ".join(["", *(" ".join(split_words(text)) for text in texts), ""])


@lru_cache(maxsize=64)
def _examples(prompt: PromptFile, variant_name: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Of each demonstrated sentence the words that say something, with those of its answer and without them."""
    variant = prompt.variants[variant_name]
    shown = demonstration_set(prompt, variant, "", None)
    found = []
    for demonstration in prompt.demonstrations[shown] if shown else ():
        whole = _content(split_words(demonstration.answers[variant.last.name]))
        answers = (split_words(reference) for reference in demonstration.references)
        found.append((whole, whole.difference(*answers)))
    return tuple(found)
