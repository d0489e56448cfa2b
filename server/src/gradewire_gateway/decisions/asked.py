"""What both forms have in common: a request that was read, and texts of JSON."""

import json
from dataclasses import dataclass
from typing import Any, Final

from gradewire_gateway.decisions.questions import MAX_OPTIONS, MAX_QUESTIONS, Question
from gradewire_gateway.problems import invalid
from gradewire_gateway.wire.fields import list_of, object_of, text_of
from gradewire_proto.v1 import types_pb2

_KEYS: Final = {"question", "references", "answer"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request.

    Attributes:
        model: A judge, "" for the server's own, or the metric `correctness`.
        state: What the questions are about: a text, or a value of JSON.
        at: Path of the state.
        questions: In their order.
    """

    model: str
    state: Any
    at: str
    questions: tuple[Question, ...]

    def text(self) -> str:
        """The state as a judge is shown it."""
        return self.state if isinstance(self.state, str) else json.dumps(self.state, ensure_ascii=False)

    def item(self) -> types_pb2.Item:
        """The state as an answer to grade, ``{"question", "references", "answer"}``; the first may be missing.

        Raises:
            ProblemError: It is none.
        """
        state = object_of(self.state, self.at)
        if unknown := sorted(state.keys() - _KEYS):
            named = f"{self.at}.{unknown[0][:80]}"
            raise invalid(f"{named}: there is no such field; an answer has {', '.join(sorted(_KEYS))}", named)
        references = list_of(state.get("references"), f"{self.at}.references")
        return types_pb2.Item(
            question=text_of(state.get("question", ""), f"{self.at}.question"),
            references=[text_of(each, f"{self.at}.references[{index}]") for index, each in enumerate(references)],
            prediction=text_of(state.get("answer"), f"{self.at}.answer"),
        )


def instructions_of(given: object, at: str) -> str:
    """What is asked; raises ProblemError where that is no text, or a blank one."""
    text = text_of(given, f"{at}.instructions")
    if not text.strip():
        raise invalid(f"{at}.instructions: is blank", f"{at}.instructions")
    return text


def checked(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """The questions; raises ProblemError where there are too many or too few of them, or of their options."""
    if not 1 <= len(questions) <= MAX_QUESTIONS:
        raise invalid(f"questions: {len(questions)} of them, 1 to {MAX_QUESTIONS} are allowed", "questions")
    for question in questions:
        labels = [label for label, _ in question.options]
        if not 2 <= len(labels) <= MAX_OPTIONS:
            raise invalid(f"{question.at}: {len(labels)} options, 2 to {MAX_OPTIONS} are allowed", question.at)
        if len(set(labels)) < len(labels):
            raise invalid(f"{question.at}: an option is there twice", question.at)
    return questions
