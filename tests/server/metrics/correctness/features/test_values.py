"""Values of an item as features, and the reference that they choose."""

import math

import pytest
from tests.server.metrics.correctness.features.test_measure import of


@pytest.mark.parametrize(
    ("prediction", "reference", "share", "conflict"),
    [
        ("two", "2", 1.0, 0.0),
        ("1,000 people", "one thousand", 1.0, 0.0),
        ("September 15, 1996", "15 September 1996", 1.0, 0.0),
        ("October 15, 1996", "September 15, 1996", 0.0, 1.0),
        ("4", "2", 0.0, 1.0),
        ("nobody knows", "September 15, 1996", 0.0, 0.0),
    ],
)
def test_values_are_found_contradicted_or_missing(
    prediction: str, reference: str, share: float, conflict: float
) -> None:
    found = of(prediction, reference)
    assert (found["value_recall"], found["value_conflict"]) == (share, conflict)


def test_without_values_in_references_nothing_is_said_of_them() -> None:
    found = of("a cat 7", "a cat")
    assert all(math.isnan(found[name]) for name in ("value_recall", "value_conflict", "values_beside"))


def test_the_reference_whose_values_fit_is_the_one_that_features_come_from() -> None:
    """SMILE's best one says 1979; the answer says what the other one does."""
    found = of("in May 1980", "June 1979", "May 1980", best=0)
    assert (found["value_recall"], found["value_conflict"], found["new_recall"]) == (1.0, 0.0, 1.0)


def test_smiles_best_reference_stays_where_no_value_fits_better() -> None:
    found = of("in the spring of some year", "spring 1979", "May 1980", best=0)
    assert found["new_recall"] == 0.5


def test_a_value_of_the_question_contradicts_nothing() -> None:
    found = of("In 2017 there were 5", "5", question="How many in 2017?")
    assert (found["value_recall"], found["value_conflict"], found["values_beside"]) == (1.0, 0.0, 0.0)
