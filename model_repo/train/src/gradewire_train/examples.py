"""What SFVE is trained on: an anchor, what means the same, and what does not, mostly as answers to one question."""

from dataclasses import dataclass
from types import MappingProxyType

GROUPS = MappingProxyType(
    {
        "nli": ("nli",),
        "candidates": ("candidates",),
        "synonyms": ("synonyms", "numbers", "colours", "yes_no", "names", "dates"),
        "descriptions": ("descriptions",),
    }
)
"""The pretraining tasks of the paper (section 4.1), each with the tasks here that belong to it."""

TASKS = tuple(task for tasks in GROUPS.values() for task in tasks)
"""Names of all tasks."""


@dataclass(frozen=True, slots=True)
class Example:
    """One training example.

    Attributes:
        task: Of `TASKS`.
        question: What the texts answer; "" where they are sentences of their own.
        anchor: An answer, or a sentence.
        positive: What means the same as `anchor`.
        negatives: Hard negatives: similar in form, and other answers. None of them means what `anchor` does.
    """

    task: str
    question: str
    anchor: str
    positive: str
    negatives: tuple[str, ...]

    @property
    def answers(self) -> tuple[str, ...]:
        """Anchor, positive, then the negatives in their order."""
        return (self.anchor, self.positive, *self.negatives)


def question_text(question: str, answer: str) -> str:
    """The text an encoder reads: what the metric `sfve` asks for, or the bare `answer` where `question` is "".

    Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering", section 4.
    """
    return f"Question: {question} Answer: {answer}" if question else answer


def texts(example: Example) -> tuple[str, ...]:
    """The texts of an example as an encoder reads them: anchor, positive, then the negatives in their order."""
    return tuple(question_text(example.question, answer) for answer in example.answers)
