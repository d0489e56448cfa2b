"""Rows of the stand-in, from labelled rows."""

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

# Changes when the same rows and seed give other texts.
VERSION = 1
MAX_WORDS = 5
_MAX_CHARACTERS = 200
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """A row that people labelled.

    Attributes:
        id: As the file calls it.
        question: "" without.
        references: At least one.
        prediction: What a model answered.
        label: Human label, any scale.
        dataset: "" without.
    """

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
        id: Of the labelled row.
        question: Of the labelled row.
        references: Of the labelled row; parts 1 and 2 are compared with them.
        prediction: Of the labelled row; parts 1 and 3 compare it.
        descriptions: Part 2: sentences that say the prediction.
        shifted_references: Part 3: each reference in another form.
        label: Human label.
        dataset: Of the labelled row.
        half: Half of the question (`gradewire_stats.calibration.labelled_rows`).
        question_kind: What the question asks for.
        description_forms: How each description was made.
        shifts: How each reference was shifted; "kept" where it was not.
        made: Generator's version and seed.
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
    """The rows, and what was done to them.

    Attributes:
        rows: In the order of the labelled rows.
        left_out: Labelled rows that are not in it, by reason.
        shifts: References by how they were shifted.
        kept_rows: Rows whose references all stay as they are: their part 3 is their part 1.
        forms: Descriptions by how they were made.
    """

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
    """Make the stand-in from short answers that are no exact match of a reference, as AVE leaves out those that are.

    Args:
        answers: Labelled rows.
        words: Inflections.
        thesaurus: Synonyms.
        seed: Same seed and rows, same texts, in whatever order and company the rows come.
        max_words: A longer prediction is left out: it is a description already.
    """
    found = StandIn()
    for answer in answers:
        if reason := _unfit(answer, max_words):
            found.left_out[reason] += 1
            continue
        # By the content and not by the id alone, which a file may have twice.
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
    """Return whether a prediction equals a reference as SQuAD normalises: case, ASCII punctuation, articles, blanks."""
    return _normalised(prediction) in {_normalised(reference) for reference in references}


def _normalised(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())
