"""Make samples like AVE's from graded answers, for `gradewire bench make-ave`."""

from __future__ import annotations

import re
import string
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from gradewire_cli.bench.ave_descriptions import Description, asked, described
from gradewire_cli.bench.ave_shifts import shifted
from gradewire_stats.calibration.labelled_rows import half_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradewire_cli.bench.ave_shifts import Thesaurus, WordForms

# Raise this version when the same rows and seed give different texts.
VERSION = 1
MAX_WORDS = 5
_MAX_CHARACTERS = 200
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """An answer with a human grade, on any scale.

    Attributes:
        told_apart: Values by column that distinguish questions with the same words, such as ``image``.
    """

    id: str
    question: str
    references: tuple[str, ...]
    prediction: str
    label: float
    dataset: str
    told_apart: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeSample:
    """A sample with its three parts.

    Attributes:
        descriptions: Sentences that describe the prediction, for part 2.
        shifted_references: The references rewritten, for part 3.
        half: The question's half (`gradewire_stats.calibration.labelled_rows`).
        made: Version and seed of the generator, and the judge that wrote descriptions.
        told_apart: See `LabelledAnswer`.
    """

    id: str
    question: str
    references: tuple[str, ...]
    prediction: str
    descriptions: tuple[str, ...]
    shifted_references: tuple[str, ...]
    label: float
    dataset: str
    half: str
    question_kind: str
    description_forms: tuple[str, ...]
    shifts: tuple[str, ...]
    made: str
    told_apart: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, Any]:
        """The sample as a row for `gradewire bench ave`."""
        columns = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "told_apart"}
        return columns | dict(self.told_apart)


@dataclass(slots=True)
class MadeSamples:
    """Samples, with counts of references and descriptions by method.

    Attributes:
        kept_rows: Number of samples whose references stay the same as a set, although two of them may have exchanged
            their forms ("3" and "three"). Part 3 then equals part 1.
    """

    rows: list[MadeSample] = field(default_factory=list)
    shifts: Counter[str] = field(default_factory=Counter)
    kept_rows: int = 0
    forms: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class JudgedDescriptions:
    """Descriptions by a judge.

    Attributes:
        sentences: Sentence by question and prediction.
        writer: Identifier of the judge and its prompt.
    """

    sentences: Mapping[tuple[str, str], str]
    writer: str


def make_samples(  # noqa: PLR0913 - keyword options with defaults
    answers: Iterable[LabelledAnswer],
    *,
    words: WordForms,
    thesaurus: Thesaurus,
    seed: int = 0,
    judged: JudgedDescriptions | None = None,
    done: Callable[[int], None] = lambda _: None,
) -> MadeSamples:
    """Make a sample from each answer; `unfit` says which answers have no sample.

    A sample's texts depend only on `seed`, the answer and the judge's sentence, which replaces the first description.
    After each answer, the function calls `done` with the number of answers so far.
    """
    found = MadeSamples()
    writer = "" if judged is None else f", judge {judged.writer}"
    for number, answer in enumerate(answers, 1):
        # The key includes the content because IDs may repeat in a file.
        key = f"{VERSION} {seed} {answer.id} {answer.question} {answer.prediction}"
        descriptions = described(answer.question, answer.prediction, key=key, words=words)
        if judged is not None and (sentence := judged.sentences.get((answer.question, answer.prediction))):
            descriptions = (Description(sentence, "judge"), *descriptions[1:])
        kind = asked(answer.question).kind
        shifts = [
            shifted(reference, key=f"{key} {reference}", of_person=kind == "person", words=words, thesaurus=thesaurus)
            for reference in answer.references
        ]
        found.forms.update(description.form for description in descriptions)
        found.shifts.update(shift.how for shift in shifts)
        before, after = (set(map(_normalised, each)) for each in (answer.references, (shift.text for shift in shifts)))
        found.kept_rows += before == after
        found.rows.append(
            MadeSample(
                id=answer.id,
                question=answer.question,
                references=answer.references,
                prediction=answer.prediction,
                descriptions=tuple(description.text for description in descriptions),
                shifted_references=tuple(shift.text for shift in shifts),
                label=answer.label,
                dataset=answer.dataset,
                half=half_of(answer.question),
                question_kind=kind,
                description_forms=tuple(description.form for description in descriptions),
                shifts=tuple(shift.how for shift in shifts),
                made=f"gradewire ave stand-in {VERSION}, seed {seed}{writer}",
                told_apart=answer.told_apart,
            )
        )
        done(number)
    return found


def unfit(answer: LabelledAnswer, max_words: int) -> str:
    """Return the reason why an answer makes no sample, or "".

    AVE's samples are short and differ from every reference (paper, section 3.3).
    """
    if not answer.prediction.strip():
        return "the prediction is empty"
    if len(answer.prediction) > _MAX_CHARACTERS or len(answer.prediction.split()) > max_words:
        return f"the prediction has more than {max_words} words or {_MAX_CHARACTERS} characters"
    if exact_match(answer.prediction, answer.references):
        return "the prediction is an exact match of a reference"
    return ""


def exact_match(prediction: str, references: Sequence[str]) -> bool:
    """Return True if a prediction equals a reference after SQuAD's normalisation (case, punctuation, articles)."""
    return _normalised(prediction) in {_normalised(reference) for reference in references}


def _normalised(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())
