"""Yes/no questions by rule: never a guess."""

import pytest

from gradewire_server.metrics.judged.binary_questions import is_binary, majority, rule_verdict
from gradewire_server.metrics.judged.reference_filter import count_references


@pytest.mark.parametrize(
    ("references", "binary", "most"),
    [
        (("yes",), True, True),
        (("No.", "no", "YES"), True, False),
        (("yes", "no"), True, None),
        (("no", "no", "yes", "yes, it is"), True, None),
        (("no", "nope", "yes"), True, False),
        (("yes", "yes", "wood"), True, True),
        (("wood", "wood", "yes"), False, True),
        (("wood",), False, None),
        (("yes, it is",), False, True),
        (("yes", "wood", "wood", "yes", "no"), True, True),
        # Votes are counted without regard to case and marks.
        (("no", "yes", "Yes", "YES."), True, True),
        (("wood", "Yes", "yes"), True, True),
        # What a prediction may not say is no vote either.
        (("yes", "no", "No data", "Certainly!", "Sure"), True, None),
    ],
)
def test_the_majority_of_references(references: tuple[str, ...], binary: bool, most: bool | None) -> None:  # noqa: FBT001
    assert is_binary(count_references(references)) is binary
    assert majority(references) is most


@pytest.mark.parametrize(
    ("references", "prediction", "right"),
    [
        (("yes", "yes", "no"), "Yes, it is.", True),
        (("yes", "yes", "no"), "no", False),
        (("no", "no", "yes"), "there isn't any", True),
        (("no",), "tile", None),
        (("yes", "no"), "yes", None),
        (("wood", "yes"), "yes", None),
        (("no",), "No image was provided, so I cannot tell.", None),
        (("yes",), "Certainly! Looking closely, the answer is no.", None),
    ],
)
def test_the_rule(references: tuple[str, ...], prediction: str, right: bool | None) -> None:  # noqa: FBT001
    assert rule_verdict("Is it?", references, prediction) is right


@pytest.mark.parametrize(
    ("question", "references", "prediction"),
    [
        ("Which band sang Owner of a Lonely Heart?", ("Yes", "Yes (band)"), "Yes, I know: it was Genesis."),
        ("Which band sang Owner of a Lonely Heart?", ("Yes", "yes"), "Yes"),
        ("Who is the villain of the film?", ("No", "Dr. No", "Julius No"), "No, it was Goldfinger"),
    ],
)
def test_the_rule_is_for_questions_that_ask_for_yes_or_no(
    question: str, references: tuple[str, ...], prediction: str
) -> None:
    assert rule_verdict(question, references, prediction) is None
