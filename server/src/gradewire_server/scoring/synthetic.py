"""Generate a synthetic answer (a sentence that contains the reference) with a judge, and check the sentence."""

import re
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeAlias

from gradewire_server.domain.items import Failure
from gradewire_server.domain.judge import Generate
from gradewire_server.domain.needs import Need, ask
from gradewire_server.metrics.judged.prompt import demonstration_set, text_prompt
from gradewire_server.metrics.prompts.neutralise import cut_to_words, neutralise
from gradewire_server.metrics.prompts.prompt_file import PromptFile, Variant
from gradewire_server.metrics.text.normalise import bare_words, normalise
from gradewire_server.metrics.text.words import MAX_WORDS, split_words

MAX_CHARACTERS: Final = 4096
"""The maximum number of characters that are read from the judge's text."""

# The end of a sentence: punctuation marks with closing quotes and brackets. In some scripts, no blank follows.
_SPACED: Final = r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019\u00bb)\]]*(?=\s|$)"
_UNSPACED: Final = r"[\u3002\uff01\uff1f\uff61\u0964\u0965\u061f\u06d4\u1362]+[\"'\u201d\u2019\u300d\u300f)\]]*"
_END: Final = re.compile(f"{_SPACED}|{_UNSPACED}")
_NEXT_WORD: Final = re.compile(r"\s*(\S+)")
_LAST_WORD: Final = re.compile(r"\S+$")
_QUOTES: Final = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb", "\u300c": "\u300d"}
_ABBREVIATION: Final = re.compile(
    r"mrs?|ms|dr|st|[js]r|prof|rev|gen|col|lt|sgt|capt|hon|gov|sen|rep|vs|etc|inc|ltd|co|corp|mt|ft|ave|approx|e\.g|i\.e|"
    r"u\.[sk]|[ap]\.m|b\.c|a\.d|ph\.d|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec",
    re.IGNORECASE,
)
_STARTER: Final = re.compile(
    r"[\"'(\u201c]*(?:it|s?he|they|we|i|this|that|these|those|the|an?|in|on|its|his|her|their|there)\W*", re.IGNORECASE
)
"""Words that start a new sentence if they are capitalised, even after an initial or an abbreviation."""

MAX_REFERENCE_WORDS: Final = 16
"""A reference with more words needs no sentence."""
MAX_REFERENCE_CHARACTERS: Final = 200
"""A reference with more characters needs no sentence. This limit is for scripts without blanks."""
MAX_SENTENCE_WORDS: Final = 48
"""The maximum number of words by which a sentence may exceed its reference."""

_ARTICLES: Final = frozenset({"a", "an", "the"})
_QUESTION_MARKS: Final = "?\uff1f\u061f\u037e"
_ASKING: Final = frozenset({"who", "whom", "whose", "what", "when", "where", "which", "why", "how"})
_BEGINNING: Final = re.compile(r"is|are|was|were|do|does|did|can|could|will|would|has|have|had|should|may|might")
_CLOSING: Final = " \t\"'\u201d\u2019)]"
_LEAST_COPY_WORDS: Final = 3

LEAST_RUN_WORDS: Final = 4
LEAST_RUN_LETTERS: Final = 12
"""The minimum number of letters in a repetition, because in some scripts each letter is a word."""
_LEAST_FOREIGN_WORDS: Final = 2
_LEAST_STEM_LETTERS: Final = 3

# Words that do not show what a question is about.
_FUNCTION_WORDS: Final = frozenset(
    """
    a about after all also an and any are as at be been before being both but by can could did do does doing for from
    had has have having he her hers him his how i if in into is it its many may me might more most much must my no
    nor not of on one or other our out over s shall she should so some such t than that the their them then there
    these they this those to too under up very was we were what when where which who whom whose why will with would
    yes you your
    """.split()  # noqa: SIM905 - in a list, each word would need its own line
)

FIRST = "sentence"
RETRY = "again"
_STOP = ("\n",)
_OPENING = '([{"\u201c\u2018\u00ab$\u20ac\u00a3#&+-'


def first_sentence(text: str, *, keep: str = "") -> tuple[str, bool]:
    """Return the first sentence in the first line that is not blank, without surrounding quotes.

    Args:
        text: The text. Only the first MAX_CHARACTERS are read.
        keep: A phrase with punctuation that does not end a sentence ("Yahoo!", "St. Louis").

    Returns:
        The sentence and True, or the whole line and False if no punctuation ends a sentence.
    """
    line = text[:MAX_CHARACTERS].strip().partition("\n")[0].strip()
    closing = _QUOTES.get(line[:1])
    if closing and len(line) > 1 and line.endswith(closing) and line.count(closing) <= 1 + (closing == line[0]):
        line = line[1:-1].strip()
    kept = _spans(line, keep.strip().rstrip("."))
    for match in _END.finditer(line):
        inside = any(start <= match.start() < end for start, end in kept)
        if not inside and _ends_here(line, match):
            return line[: match.end()], True
    return line, False


def _spans(line: str, phrase: str) -> list[tuple[int, int]]:
    return [(found.start(), found.end()) for found in re.finditer(re.escape(phrase), line)] if phrase else []


def _ends_here(line: str, match: re.Match[str]) -> bool:
    """Return True if the mark ends a sentence, and is not part of an initial or an abbreviation."""
    following = _NEXT_WORD.match(line, match.end())
    if following is None or match[0][0] not in ".!?\u2026":
        return True
    word = following[1]
    if word[0].islower():
        return False
    if match[0] != "." or _STARTER.fullmatch(word):
        return True
    before = _LAST_WORD.search(line, max(0, match.start() - 32), match.start())
    last = before[0].lstrip("(\"'\u201c") if before else ""
    initial = len(last) == 1 and last.isalpha()
    number = last.lower() == "no" and word[0].isdigit()
    return not (initial or number or _ABBREVIATION.fullmatch(last))


class Flaw(StrEnum):
    """A flaw in a sentence, in the words of the second prompt."""

    EMPTY = "it was empty"
    UNFINISHED = "it was too long"
    MISSING_WORDS = "it did not contain the words of the answer"
    ONLY_ANSWER = "it only repeated the answer, which is not a sentence"
    QUESTION = "it repeated the question"
    MARKUP = "it held text that looks like the markup of a chat"
    INSTRUCTIONS = "it repeated the instructions"
    EXAMPLE = "it repeated an example"
    UNRELATED = "it held no word of the question"


def stands_for_itself(reference: str) -> bool:
    """Return True if the reference is so long that it needs no sentence."""
    return len(reference) > MAX_REFERENCE_CHARACTERS or len(bare_words(reference)) > MAX_REFERENCE_WORDS


def find_flaw(sentence: str, *, question: str, reference: str, finished: bool) -> Flaw | None:
    """Return the worst flaw in the sentence, or None if the sentence is valid for the reference.

    Args:
        sentence: A sentence from `first_sentence`.
        question: The question, not blank.
        reference: The reference, not blank, for which `stands_for_itself` returns False.
        finished: True if the sentence is complete.
    """
    words = split_words(sentence) if sentence.strip() else []
    if not words:
        return Flaw.EMPTY
    if not finished or len(words) > MAX_SENTENCE_WORDS + len(split_words(reference)):
        return Flaw.UNFINISHED
    if _is_question(sentence, words, question, reference):
        return Flaw.QUESTION
    if not holds_answer(sentence, reference):
        return Flaw.MISSING_WORDS
    if not _extra(words, split_words(reference)) or not _extra(normalise(sentence).words, normalise(reference).words):
        return Flaw.ONLY_ANSWER
    return None


def holds_answer(sentence: str, reference: str) -> bool:
    """Return True if the sentence contains the reference, or its normalised words (without articles) in any order."""
    bare = bare_words(reference)
    if not bare:
        return reference.strip().lower() in sentence.lower()
    wanted = set(normalise(reference).words)
    if (wanted - _ARTICLES or wanted) <= set(normalise(sentence).words):
        return True
    return _has_run(split_words(sentence), split_words(reference))


def _is_question(sentence: str, words: list[str], question: str, reference: str) -> bool:
    """Return True if the sentence is a question or repeats the given question."""
    ending = sentence.rstrip(_CLOSING)
    if ending.endswith(tuple(_QUESTION_MARKS)) and not reference.rstrip(_CLOSING).endswith(tuple(_QUESTION_MARKS)):
        return True
    asked = split_words(question.lstrip()[: len(sentence) + 1])
    if words == asked:
        return True
    # A valid sentence may contain a phrase ("Capital of France?") or a fragment ("Mustangs are a type of?").
    if _ASKING.isdisjoint(asked) and _BEGINNING.fullmatch(asked[0]) is None:
        return False
    answer = split_words(reference)
    return words in (asked + answer, answer + asked) or (len(asked) >= _LEAST_COPY_WORDS and _has_run(words, asked))


def _extra(words: Iterable[str], answer: Iterable[str]) -> set[str]:
    return set(words) - set(answer) - _ARTICLES


def _has_run(words: list[str], run: list[str]) -> bool:
    """Return True if `words` contains the sequence `run`."""
    if len(run) > len(words):
        return False
    return re.search(rf"(?:^| ){re.escape(' '.join(run))}(?: |$)", " ".join(words)) is not None


@dataclass(frozen=True, slots=True)
class ShownTexts:
    """The prompt variant that the judge saw, and the flaw (`problem`) in the judge's first sentence."""

    prompt: PromptFile
    variant_name: str
    problem: str = ""


def find_echo(sentence: str, shown: ShownTexts, *, question: str, reference: str) -> Flaw | None:
    """Return a flaw if the sentence repeats the prompt's instructions or examples; otherwise return None.

    The sentence must not be blank, and may have up to MAX_WORDS words.
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
    """Return True if, apart from the reference's words, the sentence and the question share a content word.

    Words match if they are equal, or if a word of at least `_LEAST_STEM_LETTERS` letters begins the other word. If the
    reference contains all of the question's content words, return True.
    """
    answer = set(split_words(_head(reference)))
    asked = _content(split_words(_head(question))) - answer
    said = _content(split_words(_head(sentence))) - answer
    return not asked or any(_related(one, other) for one in asked for other in said)


def _related(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= _LEAST_STEM_LETTERS and longer.startswith(shorter))


def _run_from(words: list[str]) -> list[str]:
    """Return the shortest start of `words` that counts as a repetition, or [] if `words` is too short."""
    letters = 0
    for count, word in enumerate(words, 1):
        letters += len(word)
        if count >= LEAST_RUN_WORDS and letters >= LEAST_RUN_LETTERS:
            return words[:count]
    return []


def _content(words: Iterable[str]) -> frozenset[str]:
    # If a text has no words, `split_words` returns the punctuation.
    return frozenset(word for word in words if word[0].isalnum()) - _FUNCTION_WORDS


def _head(text: str) -> str:
    return cut_to_words(text, MAX_WORDS)[0]


@lru_cache(maxsize=256)
def _own_words(shown: ShownTexts) -> str:
    """Return the words of the instructions and the item template, with blanks around each word."""
    variant = shown.prompt.variants[shown.variant_name]
    item = variant.item.render({"question": "", "answer": "", "problem": shown.problem}).text
    texts = [text for text in (variant.system, item) if text.strip()]
    # "|" is not a word, so it separates the texts.
    return " | ".join(["", *(" ".join(split_words(text)) for text in texts), ""])


@lru_cache(maxsize=64)
def _examples(prompt: PromptFile, variant_name: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Return two sets for each example sentence: its content words, and these words without the references' words."""
    variant = prompt.variants[variant_name]
    shown = demonstration_set(prompt, variant, "", None)
    found = []
    for demonstration in prompt.demonstrations[shown] if shown else ():
        whole = _content(split_words(demonstration.answers[variant.last.name]))
        answers = (split_words(reference) for reference in demonstration.references)
        found.append((whole, whole.difference(*answers)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class WritingSettings:
    """The settings for the generation of synthetic answers.

    Attributes:
        model: The judge, NAME@DIGEST.
        prompt: The prompt file. The variant "sentence" is for the first try, and "again" for an optional second try.
    """

    model: str
    prompt: PromptFile


@dataclass(frozen=True, slots=True)
class SyntheticAnswer:
    """The synthetic answer for a reference: the judge's sentence, or the reference itself.

    Attributes:
        tries: The number of sentences that the judge wrote.
        fault: Why a short reference is used instead of a sentence, or "".
    """

    text: str
    tries: int = 0
    fault: str = ""


WritingProgram: TypeAlias = Generator[tuple[Need, ...], Any, SyntheticAnswer | Failure]


def write_sentence(question: str, reference: str, writing: WritingSettings) -> WritingProgram:
    """Have a judge write a sentence. If the sentence has a flaw, try once more. If that fails, use the reference.

    The second prompt mentions the flaw and starts the judge's sentence with the reference. `question` and `reference`
    must be NFC and not blank.

    Returns:
        The synthetic answer, or the judge's failure.
    """
    if stands_for_itself(reference):
        return SyntheticAnswer(reference)
    answer, _ = cut_to_words(reference, MAX_WORDS)
    if neutralise(answer, writing.prompt.variants[FIRST].delimiters) != answer:
        return SyntheticAnswer(reference, fault="the reference contains text that looks like chat markup")
    flaw: Flaw | None = None
    tries = 0
    for name, begun in ((FIRST, ""), (RETRY, _without_stop(answer))):
        if name not in writing.prompt.variants:
            continue
        problem = flaw or ""
        said = yield from ask(_need(writing, name, {"question": question, "answer": answer}, problem, begun))
        if isinstance(said, Failure):
            return said
        tries += 1
        variant = writing.prompt.variants[name]
        text = _joined(begun, _without_opening(said.text, variant.last.opening))
        sentence, flaw = _read(text, question, answer, variant, finished=said.complete)
        if flaw is None:
            flaw = find_echo(sentence, ShownTexts(writing.prompt, name, problem), question=question, reference=answer)
        if flaw is None and begun and not is_about(sentence, question, answer):
            flaw = Flaw.UNRELATED
        if flaw is None:
            return SyntheticAnswer(sentence, tries)
    return SyntheticAnswer(reference, tries, fault=f"the judge's last sentence is invalid ({flaw})")


def _without_stop(answer: str) -> str:
    """Return the answer without a final full stop ("Wonderbra."), unless there are other dots ("U.S.")."""
    bare = answer.rstrip(". \u3002")
    return bare if bare and "." not in bare else answer


def _need(writing: WritingSettings, name: str, fields: Mapping[str, str], problem: str, begun: str) -> Generate:
    prompt = text_prompt(writing.prompt, name, {**fields, "problem": problem})
    if begun:
        prompt = replace(prompt, opening=f"{prompt.opening} {begun}".strip())
    return Generate(writing.model, prompt, writing.prompt.variants[name].last.max_tokens, _STOP)


def _without_opening(said: str, opening: str) -> str:
    # Judges that cannot continue a started turn repeat the opening.
    return said[len(opening) :].lstrip() if said[: len(opening)].lower() == opening.lower() else said


def _joined(begun: str, said: str) -> str:
    """Join the start of a sentence and the judge's continuation, with a blank if necessary."""
    if not begun or not said:
        return begun + said
    if said[: len(begun)].lower() == begun.lower():
        return said  # the judge has repeated the start
    edge = begun[-1] + said[0]
    together = not said[0].isalnum() and said[0] not in _OPENING
    # In scripts without blanks, each letter is a word.
    return begun + said if together or (edge.isalnum() and len(split_words(edge)) == len(edge)) else f"{begun} {said}"


def _read(text: str, question: str, answer: str, variant: Variant, *, finished: bool) -> tuple[str, Flaw | None]:
    """Return the first sentence in the judge's text, and the sentence's flaw or None."""
    found, ended = first_sentence(text, keep=answer)
    sentence, _ = cut_to_words(found, MAX_WORDS)
    if neutralise(sentence, variant.delimiters) != sentence:
        return sentence, Flaw.MARKUP
    return sentence, find_flaw(sentence, question=question, reference=answer, finished=ended or finished)
