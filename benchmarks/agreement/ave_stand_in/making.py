"""Make the stand-in's rows from labelled rows."""

from __future__ import annotations

import re
import string
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.agreement.ave_stand_in.descriptions import asked, described
from benchmarks.agreement.ave_stand_in.shifts import KEPT, shifted

from gradewire_stats.calibration.labelled_rows import half_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.agreement.ave_stand_in.shifts import Thesaurus, WordForms

# Raise this version when the same rows and seed give different texts.
VERSION = 1
MAX_WORDS = 5
_MAX_CHARACTERS = 200
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """A row with a human label."""

    id: str
    question: str
    references: tuple[str, ...]
    prediction: str
    label: float
    dataset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInRow:
    """A sample with its three parts.

    Attributes:
        descriptions: Sentences that describe the prediction, for part 2.
        shifted_references: The references rewritten, for part 3.
        half: The question's half (`gradewire_stats.calibration.labelled_rows`).
        made: Version and seed of the generator.
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


@dataclass(slots=True)
class StandIn:
    """The stand-in's rows, with statistics: skipped rows by reason, references and descriptions by method."""

    rows: list[StandInRow] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    shifts: Counter[str] = field(default_factory=Counter)
    kept_rows: int = 0
    forms: Counter[str] = field(default_factory=Counter)


def stand_in(
    answers: Iterable[LabelledAnswer],
    *,
    words: WordForms,
    thesaurus: Thesaurus,
    seed: int = 0,
    max_words: int = MAX_WORDS,
) -> StandIn:
    """Make the stand-in from short answers that do not match a reference exactly.

    A row's texts depend only on `seed` and the row. Predictions with more than `max_words` words are skipped.
    """
    found = StandIn()
    for answer in answers:
        if reason := _unfit(answer, max_words):
            found.left_out[reason] += 1
            continue
        # The key includes the content because IDs may repeat in a file.
        key = f"{VERSION} {seed} {answer.id} {answer.question} {answer.prediction}"
        descriptions = described(answer.question, answer.prediction, key=key, words=words)
        kind = asked(answer.question).kind
        shifts = [
            shifted(reference, key=f"{key} {reference}", of_person=kind == "person", words=words, thesaurus=thesaurus)
            for reference in answer.references
        ]
        found.forms.update(description.form for description in descriptions)
        found.shifts.update(shift.how for shift in shifts)
        found.kept_rows += all(shift.how == KEPT for shift in shifts)
        found.rows.append(
            StandInRow(
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
                made=f"gradewire ave stand-in {VERSION}, seed {seed}",
            )
        )
    return found


def _unfit(answer: LabelledAnswer, max_words: int) -> str:
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
