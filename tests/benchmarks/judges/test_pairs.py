"""Which pairs are drawn, and what the table makes of outcomes, worked out on paper."""

import pytest
from benchmarks.common.rows import Row
from benchmarks.judges.pairs import Drawn, Outcome, drawn_pairs, judged, preferred, table

from gradewire import Comparison, OrderVerdict, Pair, Status


def row(dataset: str, question: int, text: str, label: int) -> Row:
    return {
        "id": f"{dataset}-{question}-{text}",
        "dataset": dataset,
        "question": f"question {question} of {dataset}?",
        "references": [f"reference {question}"],
        "prediction": text,
        "label": label,
    }


ROWS = [
    row(dataset, question, text, label)
    for dataset in ("nq", "tq")
    for question in range(30)
    for text, label in (("right", 1), ("right too", 1), ("wrong", 0))
    # Of every third question nobody gave a wrong answer.
    if label or question % 3
]


def test_pairs_are_balanced_and_the_same_every_time() -> None:
    drawn = drawn_pairs(ROWS, 20)
    assert drawn == drawn_pairs(ROWS, 20)
    assert len(drawn) == 20
    assert sum(each.right == "a" for each in drawn) == 10
    assert sum(" of nq" in each.pair.question for each in drawn) == 10
    for each in drawn:
        answers = {"a": each.pair.answer_a, "b": each.pair.answer_b}
        assert answers[each.right].startswith("right")
        assert sorted(answer[:5] for answer in answers.values()) == ["right", "wrong"]
    assert len({each.pair.question for each in drawn}) == 20


def test_no_more_pairs_are_drawn_than_there_are() -> None:
    assert len(drawn_pairs(ROWS, 1000)) == 40


def test_what_a_judge_said_of_a_pair() -> None:
    orders = (OrderVerdict("a", "a", 0.8, 0.1, 0.1), OrderVerdict("b", "b", 0.4, 0.5, 0.1))
    found = Comparison(None, Status.INCONSISTENT, 0.6, 0.3, 0.1, orders)
    assert judged(found) == Outcome(None, "a", (1.0, 1.0), consistent=False)
    tie = Comparison(None, Status.UNPARSABLE, orders=(OrderVerdict("a", None), OrderVerdict("b", "tie", 0, 0, 1)))
    assert judged(tie) == Outcome(None, "tie", (0.5, 0.5), consistent=False)


@pytest.mark.parametrize(
    ("a", "b", "winner"), [(0.5, 0.2, "a"), (0.2, 0.5, "b"), (0.5, 0.5, "tie"), (None, 0.0, "b"), (None, None, "tie")]
)
def test_what_a_score_prefers(a: float | None, b: float | None, winner: str) -> None:
    assert preferred(a, b) == Outcome(winner, winner)


def test_the_table_by_hand() -> None:
    pair = Pair("q", "x", "y")
    drawn = [Drawn(pair, right) for right in ("a", "a", "b", "b")]
    said = [
        Outcome("a", "a", (1.0, 0.0)),
        Outcome("b", "b", (0.0, 1.0)),
        Outcome("tie", "tie", (0.5, 0.5)),
        Outcome(None, "b", (1.0, 1.0), consistent=False),
    ]
    line = table(drawn, {"judge": said}).splitlines()[-1]
    cells = [cell.split(" [")[0].strip() for cell in line.strip("|").split("|")]
    # Right, wrong, tie, none; (1 + 0 + .5 + .5) / 4; (1 + 0 + .5 + 1) / 4; 3 of 4; (.5 + .5 + .5 + 1) / 4.
    assert cells == ["`judge`", "1", "1", "1", "1", "0.500", "0.625", "0.750", "0.625"]
    assert table(drawn, {"smile": [preferred(1, 0)] * 4}).splitlines()[-1].endswith("|  |  |")
