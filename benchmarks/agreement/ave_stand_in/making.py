"""Make the rows of the stand-in from labelled rows."""

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

# Raise this when the same rows and seed give other texts.
VERSION = 1
MAX_WORDS = 5
_MAX_CHARACTERS = 200
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """A row with a human label.

    Attributes:
        id: Id in the file.
        question: "" without one.
        references: At least one.
        prediction: Answer of a model.
        label: Human label, any scale.
        dataset: "" without one.
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
        id: Id of the labelled row.
        question: From the labelled row.
        references: From the labelled row; parts 1 and 2 are compared with them.
        prediction: From the labelled row; parts 1 and 3 compare it.
        descriptions: Part 2: sentences that say the prediction.
        shifted_references: Part 3: each reference in another form.
        label: Human label.
        dataset: From the labelled row.
        half: Half of the question (`gradewire_stats.calibration.labelled_rows`).
        question_kind: Kind of the question's answer.
        description_forms: Method of each description.
        shifts: Method for each reference; "kept" if it is unchanged.
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
    """The rows, and statistics on them.

    Attributes:
        rows: In the order of the labelled rows.
        left_out: Number of omitted labelled rows, by reason.
        shifts: Number of references, by method.
        kept_rows: Rows whose references are all unchanged, so that parts 3 and 1 are equal.
        forms: Number of descriptions, by method.
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
    """Make the stand-in from short answers that are no exact match of a reference; AVE omits exact matches too.

    Args:
        answers: Labelled rows.
        words: Inflections.
        thesaurus: Synonyms.
        seed: The same seed gives the same texts for a row, regardless of other rows.
        max_words: Longer predictions are omitted, because they are descriptions already.
    """
    found = StandIn()
    for answer in answers:
        if reason := _unfit(answer, max_words):
            found.left_out[reason] += 1
            continue
        # Ids may repeat within a file, so the key includes the content.
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
