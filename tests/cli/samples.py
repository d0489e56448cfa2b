"""Pairs and choosers of tests."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradewire_cli.rows.row import Row
from gradewire_cli.scoring.pair_engine import Answer, AnswerPair, Choice, Chosen, Result


def answer(number: int, text: str, score: float | None = 0.5, *, correct: bool | None = None) -> Answer:
    item = {"question": f"question {number}?", "references": ["cat", "kitten"], "prediction": text}
    row = Row(number, f"line {number + 1}", f"q{number}", item, "", f"{number:016x}{hash(text) % 16**16:016x}")
    status = "EMPTY_PREDICTION" if score is None else "OK"
    return Answer(row, {"smile": Result(score, correct, status)})


def pair(
    number: int, a: float | None = 0.2, b: float | None = 0.8, right: tuple[bool | None, bool | None] = (None, None)
) -> AnswerPair:
    return AnswerPair(
        index=number,
        model_a="base",
        model_b="new",
        a=answer(number, "a cat", a, correct=right[0]),
        b=answer(number, "a dog, I think", b, correct=right[1]),
    )


@dataclass
class LengthChooser:
    """Prefers the longer answer; `trouble` gives a pair another choice, and `asked` are the pairs it was shown."""

    trouble: Mapping[int, Choice] = field(default_factory=dict)
    by: str = "length/1"
    name: str = "length"
    asked: list[int] = field(default_factory=list)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"by": self.by}

    async def choose(self, pairs: Iterable[AnswerPair]) -> AsyncGenerator[Sequence[Chosen]]:
        for each in pairs:
            self.asked.append(each.index)
            longer = len(each.b.text("prediction")) > len(each.a.text("prediction"))
            said = Choice(winner="model_b" if longer else "model_a", probability_a=0.25, orders=[{"first": "model_a"}])
            yield [(each, self.trouble.get(each.index, said))]
