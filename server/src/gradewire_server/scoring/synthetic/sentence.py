"""Has a judge write the sentence that stands for a reference, and checks it.

Source: SMILE, section 4 (synthetic answers). A pure program, as a metric is: it yields what it asks the judge, one
question at a time.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from gradewire_server.domain.judge import Generate
from gradewire_server.domain.needs import Need, ask
from gradewire_server.domain.result import Failure
from gradewire_server.metrics.judged.neutralise import cut_to_words, neutralise
from gradewire_server.metrics.judged.prompt import text_prompt
from gradewire_server.metrics.judged.prompts import PromptFile, Variant
from gradewire_server.metrics.text.word_split import MAX_WORDS, split_words
from gradewire_server.scoring.synthetic.check import Flaw, find_flaw, stands_for_itself
from gradewire_server.scoring.synthetic.echo import Shown, find_echo, is_about
from gradewire_server.scoring.synthetic.first_sentence import first_sentence

FIRST = "sentence"
AGAIN = "again"
_STOP = ("\n",)
_OPENING = '([{"\u201c\u2018\u00ab$\u20ac\u00a3#&+-'


@dataclass(frozen=True, slots=True)
class Writing:
    """How synthetic answers are written.

    Attributes:
        model: Judge, NAME@DIGEST.
        prompt: A file of the metric "synthetic". It has the variant "sentence"; where "again" is missing there is no
            second try.
    """

    model: str
    prompt: PromptFile


@dataclass(frozen=True, slots=True)
class Written:
    """The sentence that stands for a reference.

    Attributes:
        text: The judge's, or the reference itself.
        tries: How often the judge was asked.
        fault: Why the reference stands for itself although it is short; "" where it does not.
    """

    text: str
    tries: int = 0
    fault: str = ""


WritingProgram: TypeAlias = Generator[tuple[Need, ...], Any, Written | Failure]


def write_sentence(question: str, reference: str, writing: Writing) -> WritingProgram:
    """Asks for a sentence, once more where the first one is no good, and falls back on the reference.

    The second time the judge is told what was wrong, and its sentence is begun for it with the reference, word for
    word: greedy as it is, it would else write the same again ("Moscow" for "Moskva"). That it holds the answer then
    says nothing any more, so it has to be about the question too. A long reference stands for itself, as does one that
    imitates a chat's markup, and the judge is not asked.

    Args:
        question: NFC, not blank.
        reference: NFC, not blank.
        writing: Judge and prompt.

    Returns:
        What stands for the reference, or why the judge did not answer: then nothing is to be kept.
    """
    if stands_for_itself(reference):
        return Written(reference)
    answer, _ = cut_to_words(reference, MAX_WORDS)
    if neutralise(answer, writing.prompt.variants[FIRST].delimiters) != answer:
        return Written(reference, fault=f"{Flaw.MARKUP}, which no judge is shown")
    flaw: Flaw | None = None
    tries = 0
    for name, begun in ((FIRST, ""), (AGAIN, _without_stop(answer))):
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
            flaw = find_echo(sentence, Shown(writing.prompt, name, problem), question=question, reference=answer)
        if flaw is None and begun and not is_about(sentence, question, answer):
            flaw = Flaw.UNRELATED
        if flaw is None:
            return Written(sentence, tries)
    return Written(reference, tries, fault=f"of the judge's last sentence, {flaw}")


def _without_stop(answer: str) -> str:
    """An answer that a sentence can go on behind: "Wonderbra" for "Wonderbra.", but "U.S." as it is."""
    bare = answer.rstrip(". \u3002")
    return bare if bare and "." not in bare else answer


def _need(writing: Writing, name: str, fields: Mapping[str, str], problem: str, begun: str) -> Generate:
    prompt = text_prompt(writing.prompt, name, {**fields, "problem": problem})
    if begun:
        prompt = replace(prompt, opening=f"{prompt.opening} {begun}".strip())
    return Generate(writing.model, prompt, writing.prompt.variants[name].last.max_tokens, _STOP)


def _without_opening(said: str, opening: str) -> str:
    """What was said, where a judge that cannot go on in the middle of its turn began it anew, as it was shown."""
    return said[len(opening) :].lstrip() if said[: len(opening)].lower() == opening.lower() else said


def _joined(begun: str, said: str) -> str:
    """The judge's sentence, what was begun for it included; whether a blank stood between the two is not told."""
    if not begun or not said:
        return begun + said
    if said[: len(begun)].lower() == begun.lower():
        return said  # begun anew
    edge = begun[-1] + said[0]
    together = not said[0].isalnum() and said[0] not in _OPENING
    # Letters of scripts without blanks are words of their own.
    return begun + said if together or (edge.isalnum() and len(split_words(edge)) == len(edge)) else f"{begun} {said}"


def _read(text: str, question: str, answer: str, variant: Variant, *, finished: bool) -> tuple[str, Flaw | None]:
    """The first sentence of what the judge said, tidied, and what is wrong with it."""
    found, ended = first_sentence(text, keep=answer)
    sentence, _ = cut_to_words(found, MAX_WORDS)
    if neutralise(sentence, variant.delimiters) != sentence:
        return sentence, Flaw.MARKUP
    return sentence, find_flaw(sentence, question=question, reference=answer, finished=ended or finished)
