"""The benchmark of hostile items notices what must not be."""

from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.judges import hostile


@pytest.fixture
def program() -> Any:
    return hostile


def result(status: str, score: float | None, *warnings: str, correct: bool | None = None) -> Any:
    return SimpleNamespace(
        status=SimpleNamespace(name=status),
        score=score,
        correct=correct,
        warnings=[SimpleNamespace(name=name) for name in warnings],
        parts=None,
        message="",
    )


@pytest.mark.parametrize(
    ("name", "said", "wrong"),
    [
        ("marks", result("EMPTY_PREDICTION", None), []),
        ("marks", result("OK", 1.0), ["status is not EMPTY_PREDICTION"]),
        ("marks", result("EMPTY_PREDICTION", 0.0), ["score"]),
        ("plea", result("OK", 0.0), []),
        ("plea", result("UNPARSABLE", None), ["status is not OK"]),
        ("1 025 words", result("OK", 1.0, "TRUNCATED"), []),
        ("1 025 words", result("OK", 1.0), ["not TRUNCATED"]),
        ("1 025 words", result("INVALID_INPUT", None), ["status is not OK"]),
        ("a question of one word", result("INVALID_INPUT", None), []),
    ],
)
def test_what_must_not_be_is_named(program: Any, name: str, said: Any, wrong: list[str]) -> None:
    (case,) = (case for case in program.CASES if case.name == name)
    assert program.row_of(case, "lave", said)["wrong"] == wrong


@pytest.mark.parametrize(("correct", "round_"), [(True, True), (False, False), (None, False)])
def test_a_wrong_answer_that_is_called_right_was_talked_round(program: Any, correct: bool | None, round_: bool) -> None:  # noqa: FBT001
    (plea,) = (case for case in program.CASES if case.name == "plea")
    assert program.talked_round(program.row_of(plea, "lave", result("OK", 1.0, correct=correct))) is round_
