"""Make labelled rows from the answers of annotators in visual question answering (VQA).

An annotator's answer is held against the other annotators' answers to the same question. See
docs/guides/score-a-file.md for the labels.
"""

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final, Self

from gradewire_cli.rows.formats import Record, printable
from gradewire_cli.rows.official.harness import OfficialFiles, numbered, row_id
from gradewire_cli.rows.official.vqa import annotated_questions

NAME: Final = "vqa-annotators"
_ENOUGH: Final = 3
"""Number of agreeing annotators for VQA accuracy's full score (Antol et al. 2015)."""
_EXCLUSIVE_TYPES: Final = frozenset({"yes/no", "number"})
_YES_NO: Final = frozenset({"yes", "no"})
_NO_ANSWERS: Final = frozenset(
    {"unknown", "not sure", "unsure", "can't tell", "cannot tell", "don't know", "i don't know", "nothing", *_YES_NO}
)
"""Answers that are no other wording of an answer to an open question."""
_MOST_DONORS: Final = 200
"""Maximum number of questions to look at for a wrong answer, so that large files take linear time."""


class Evidence(StrEnum):
    """The reason for a row's label. docs/guides/score-a-file.md defines each."""

    AGREEMENT = "agreement"
    MINORITY = "minority"
    ALTERNATIVE = "alternative"
    CONTRADICTION = "contradiction"
    DOUBTED = "doubted"
    UNSURE = "unsure"
    OTHER_QUESTION = "other_question"


_LABELS: Final[Mapping[Evidence, float | None]] = {
    Evidence.MINORITY: 1.0,
    Evidence.ALTERNATIVE: 1.0,
    Evidence.CONTRADICTION: 0.0,
    Evidence.DOUBTED: 0.0,
    Evidence.UNSURE: None,
    Evidence.OTHER_QUESTION: 0.0,
}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True)
class _Question:
    """A question with its annotators' answers.

    Attributes:
        fields: The question's columns.
        answers: Annotators' answers, none blank.
        confidences: Each annotator's confidence ("yes", "maybe" or "no"), or "" if unknown.
        distinct: The places of each distinct answer, by its text in lower case. The commonest answer is first.
    """

    fields: Mapping[str, Any]
    answers: tuple[str, ...]
    confidences: tuple[str, ...]
    distinct: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Return a question without its blank answers. `fields` are those of `annotated_questions`."""
        sure = fields.get("answer_confidence")
        known = sure if isinstance(sure, list) else []
        given = [
            (answer, confidence if isinstance(confidence, str) else "")
            for answer, confidence in itertools.zip_longest(fields["references"], known)
            if answer is not None and answer.strip()
        ]
        places: dict[str, list[int]] = {}
        for place, (answer, _) in enumerate(given):
            places.setdefault(_folded(answer), []).append(place)
        return cls(
            {name: value for name, value in fields.items() if name not in {"references", "answer_confidence"}},
            tuple(answer for answer, _ in given),
            tuple(confidence for _, confidence in given),
            dict(sorted(places.items(), key=lambda item: -len(item[1]))),
        )

    @property
    def identifier(self) -> str:
        return str(self.fields["question_id"])

    @property
    def kind(self) -> tuple[str, str]:
        """The answer type and the first words of the question."""
        return str(self.fields["answer_type"]), str(self.fields["question_type"])

    @property
    def words(self) -> frozenset[str]:
        return frozenset(word for answer in self.answers for word in _folded(answer).split())

    @property
    def is_open(self) -> bool:
        """False if the right answer excludes all others: yes, no, or a number."""
        commonest = next(iter(self.distinct))
        return not (self.kind[0] in _EXCLUSIVE_TYPES or commonest in _YES_NO or commonest.isdecimal())

    def row(self, suffix: object, place: int, answer: str, evidence: Evidence) -> dict[str, Any]:
        """Return a row for an answer. The references are the answers of all annotators but the one at `place`."""
        givers = self.distinct.get(_folded(answer), []) if evidence is not Evidence.OTHER_QUESTION else []
        agreement = min(max(len(givers) - 1, 0) / _ENOUGH, 1.0)
        return {
            **self.fields,
            "id": row_id(self.identifier, suffix),
            "references": [each for other, each in enumerate(self.answers) if other != place],
            "prediction": answer,
            "label": _LABELS.get(evidence, agreement),
            "evidence": evidence.value,
            "agreement": agreement,
            "annotators": len(givers),
            "answer_confidence": [self.confidences[giver] for giver in givers],
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each distinct answer, the commonest first."""
        for number, (folded, givers) in enumerate(self.distinct.items(), 1):
            yield self.row(number, givers[0], self.answers[givers[0]], self._evidence(folded, givers))

    def _evidence(self, folded: str, givers: Sequence[int]) -> Evidence:
        is_sure = any(self.confidences[giver] == "yes" for giver in givers)
        is_wording = self.is_open and is_sure and folded not in _NO_ANSWERS
        if len(givers) > 1:
            return Evidence.MINORITY if is_wording and len(givers) <= _ENOUGH else Evidence.AGREEMENT
        if self.confidences[givers[0]] == "no":
            return Evidence.DOUBTED
        if is_wording:
            return Evidence.ALTERNATIVE
        most = len(next(iter(self.distinct.values())))
        return Evidence.CONTRADICTION if not self.is_open and most >= _ENOUGH else Evidence.UNSURE


class _Donors:
    """Answers of other questions, which are wrong answers to a question of the same kind."""

    def __init__(self, questions: Sequence[_Question]) -> None:
        self._by_kind: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for question in questions:
            folded, givers = next(iter(question.distinct.items()))
            if len(givers) >= _ENOUGH:
                entry = folded, question.answers[givers[0]]
                for kind in (question.kind, question.kind[:1]):
                    self._by_kind.setdefault(kind, []).append(entry)

    def answer(self, question: _Question) -> str | None:
        """Return a wrong answer: the commonest answer to another question of the same kind, or None.

        It shares no word with any annotator's answer. The question's id decides where the search begins.
        """
        own = question.words
        begin = int.from_bytes(hashlib.blake2b(question.identifier.encode(), digest_size=8).digest())
        for kind in (question.kind, question.kind[:1]):
            entries = self._by_kind.get(kind, [])
            for step in range(min(len(entries), _MOST_DONORS)):
                folded, answer = entries[(begin + step) % len(entries)]
                if own.isdisjoint(folded.split()):
                    return answer
        return None


def annotator_records(path: str, *, questions: str = "") -> Iterator[Record]:
    """Yield a row for each distinct answer of each question's annotators, and one with another question's answer.

    Args:
        path: Path of the annotations, or of a file with questions and answers.
        questions: Path of the questions, or "" if the other file contains them.

    Raises:
        InputError: A file is missing, not JSON, or in an unknown format; or no question has an annotation.
    """
    asked, unusable = annotated_questions(
        questions or path,
        path if questions else "",
        "Use another FILE with annotations" if questions else "Use --questions FILE",
    )
    readable = {identifier: _Question.of(fields) for identifier, fields in asked.items() if identifier not in unusable}
    usable = {identifier: question for identifier, question in readable.items() if len(question.answers) > 1}
    donors = _Donors(list(usable.values()))
    yield from numbered(
        itertools.chain.from_iterable(
            _records(usable[identifier], donors)
            if identifier in usable
            else [_without_rows(identifier, unusable.get(identifier, ""))]
            for identifier in asked
        )
    )


def _records(question: _Question, donors: _Donors) -> Iterator[Record]:
    place = f"question {printable(question.identifier)}"
    for number, row in enumerate(question.rows(), 1):
        yield Record(0, f"{place} answer {number}", row)
    other = donors.answer(question)
    if other is not None:
        # One annotator is left out, as in the other rows, so that the number of references does not tell the label.
        row = question.row("other", len(question.answers) - 1, other, Evidence.OTHER_QUESTION)
        yield Record(0, f"{place} other answer", row)


def _without_rows(identifier: str, reason: str) -> Record:
    problem = reason.removeprefix(f"answers question {printable(identifier)}, which ") or "has fewer than two answers"
    return Record(0, f"question {printable(identifier)}", None, problem, identifier, id=identifier)


def files(questions: str = "") -> OfficialFiles:
    """Return the description of annotators' answers, with the path of the questions, or ""."""
    return OfficialFiles(
        NAME,
        partial(annotator_records, questions=questions),
        ("answer_type",),
        several=False,
        companions={"--questions": questions} if questions else {},
    )
