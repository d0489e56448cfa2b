"""Which grader an encoder's fits ask for."""

import pytest

from gradewire_server.domain.metric import Calibration, graders_of, preferred_grader


def fit(grader: str, origin: str = "catalog") -> Calibration:
    parameters = (("grader", grader),) if grader else (("other", "x"),)
    return Calibration("correctness", 3, parameters, None, fit="{}", origin=origin)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fits", "graders"),
    [
        ((), ()),
        ((fit(""),), ()),
        ((fit("b"), fit(""), fit("a"), fit("b")), ("a", "b")),
        ((fit("b"), fit("mine", "user")), ("mine",)),
        ((fit("b"), fit("", "user")), ()),
    ],
)
def test_a_users_fits_have_precedence(fits: tuple[Calibration, ...], graders: tuple[str, ...]) -> None:
    assert graders_of(fits) == graders


def test_the_default_grader_has_precedence() -> None:
    assert preferred_grader(("a", "b"), "b") == "b"
    assert preferred_grader(("a", "b"), "c") == "a"
    assert preferred_grader((), "c") == ""
    # Of GPU encoders' fits, which name variants, the default's.
    assert preferred_grader(("a-fp16-cuda", "b-fp16-cuda"), "b") == "b-fp16-cuda"
    assert preferred_grader(("a", "bb"), "b") == "a"
    assert preferred_grader(("a", "b"), "") == "a"
