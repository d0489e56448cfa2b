"""Has a judge write the sentence that stands for a reference, and checks it.

Source: SMILE, section 4 (synthetic answers). A pure program, as a metric is: it yields what it asks the judge, one
question at a time.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from gradewire_server.domain.judge import Generate, Generated
from gradewire_server.domain.needs import Need, ask
from gradewire_server.domain.result import Failure
from gradewire_server.metrics.judge_prompt import text_prompt
from gradewire_server.metrics.neutralise import first_words, neutralise
from gradewire_server.metrics.prompts import PromptFile
from gradewire_server.metrics.sentences import first_sentence
from gradewire_server.metrics.synthetic_check import Flaw, find_flaw, stands_for_itself
from gradewire_server.metrics.windows import MAX_WORDS

FIRST = "sentence"
AGAIN = "again"
_STOP = ("\n",)


@dataclass(frozen=True, slots=True)
class Writing:
    """How synthetic answers are written.

    Attributes:
        model: Judge, NAME@DIGEST.
        prompt: A file of the metric "synthetic"; its variant "again" may be missing: then there is no second try.
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
    """Asks for a sentence, once more with what was wrong with the first one, and falls back on the reference.

    A long reference stands for itself, as does one that imitates a chat's markup, and the judge is not asked.

    Args:
        question: NFC, not blank.
        reference: NFC, not blank.
        writing: Judge and prompt.

    Returns:
        What stands for the reference, or why the judge did not answer: then nothing is to be kept.
    """
    if stands_for_itself(reference):
        return Written(reference)
    if _imitates(reference):
        return Written(reference, fault=f"{Flaw.MARKUP}, which no judge is shown")
    flaw: Flaw | None = None
    tries = 0
    for name in (FIRST, AGAIN):
        variant = writing.prompt.variants.get(name)
        if variant is None:
            continue
        fields = {"question": question, "answer": reference, "problem": flaw or ""}
        prompt = text_prompt(writing.prompt, name, fields)
        said = yield from ask(Generate(writing.model, prompt, variant.last.max_tokens, _STOP))
        if isinstance(said, Failure):
            return said
        tries += 1
        sentence, flaw = _read(said, question, reference)
        if flaw is None:
            return Written(sentence, tries)
    return Written(reference, tries, fault=f"of the judge's last sentence, {flaw}")


def _read(said: Generated, question: str, reference: str) -> tuple[str, Flaw | None]:
    """The first sentence of what the judge said, and what is wrong with it."""
    sentence, ended = first_sentence(said.text, keep=reference)
    if _imitates(sentence):
        return sentence, Flaw.MARKUP
    return sentence, find_flaw(sentence, question=question, reference=reference, finished=ended or said.complete)


def _imitates(text: str) -> bool:
    """Whether something in a text looks like the markup of a chat."""
    tidy, _ = first_words(text, MAX_WORDS)
    return neutralise(tidy) != tidy
