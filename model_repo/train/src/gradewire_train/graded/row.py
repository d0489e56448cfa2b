"""One drawn row, and how it is written to a file."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drawn:
    """An answer to a question, right or wrong because of what it was made from.

    Attributes:
        question: May be "".
        references: At least one; all of them mean `meant`.
        prediction: The answer.
        meant: Canonical form of what the references say.
        said: Canonical form of what the answer says; "" where it says nothing that could be right.
    """

    question: str
    references: tuple[str, ...]
    prediction: str
    meant: str
    said: str

    @property
    def right(self) -> bool:
        """Whether the answer says what the references mean."""
        return self.meant == self.said


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """A drawn row in its place.

    Attributes:
        id: "drawn-PART-KIND-NUMBER".
        kind: Name of its kind.
        drawn: The row.
    """

    id: str
    kind: str
    drawn: Drawn

    def json(self) -> str:
        """The row as a line of JSON, with the fields that gradewire's commands read."""
        return json.dumps(
            {
                "id": self.id,
                "question": self.drawn.question,
                "references": list(self.drawn.references),
                "prediction": self.drawn.prediction,
                "label": int(self.drawn.right),
                "dataset": "drawn",
                "kind": self.kind,
            },
            ensure_ascii=False,
        )
