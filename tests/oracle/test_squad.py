"""exact_match and token_f1 equal SQuAD 2's figures with abstention=blank."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.oracle.squad import Figures, figures_of, means
from tests.support.engines.programs import Table
from tests.support.examples import example_count

from gradewire_server.domain.items import Item, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.matching.exact_match import ExactMatch, SquadParameters
from gradewire_server.metrics.overlap.token_f1 import TokenF1

OFFICIAL = SquadParameters(abstention="blank")  # type: ignore[arg-type]
WORDS = st.sampled_from(["cat", "Cat", "dogs,", "U.S.", "1,000", "it's", "ñandú", "of", "Unknown", "貓"])
PIECES = st.sampled_from(["the", "A", "an", "-", "!", *["cat", "Cat", "dogs,", "of", "the-cat", "貓"]])
# A reference keeps a word; exact_match has a rule of its own for texts of articles and punctuation only.
REFERENCES = st.tuples(st.lists(PIECES, max_size=3), WORDS, st.lists(PIECES, max_size=3)).map(
    lambda parts: " ".join([*parts[0], parts[1], *parts[2]])
)


def measured(prediction: str, answers: tuple[str, ...]) -> Figures:
    """Return our figures, with 0 for an empty prediction like the command's "mean, empty wrong"."""
    item = Item("1", "", answers, prediction, answerable=bool(answers))
    metrics: tuple[Any, Any] = (ExactMatch(), TokenF1())
    results = [Table().run(metric.score(item, OFFICIAL, NO_MODEL)) for metric in metrics]
    assert {result.status for result in results} <= {Status.OK, Status.EMPTY_PREDICTION}
    return Figures(*(result.score or 0.0 for result in results))


# A row takes a millisecond, but a busy machine takes long to draw one.
@settings(max_examples=example_count(60), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=6).map(" ".join), st.lists(REFERENCES, max_size=3).map(tuple))
def test_each_row_equals_the_definition(prediction: str, answers: tuple[str, ...]) -> None:
    assert measured(prediction, answers) == pytest.approx(figures_of(prediction, answers))


HAND_MADE = [
    # prediction, answers, exact, F1
    ("the Seine", ("Seine", "river Seine"), 1, 1),
    ("river", ("Seine", "river Seine"), 0, 2 / 3),
    ("", ("Seine",), 0, 0),
    ("", (), 1, 1),
    ("The!", (), 1, 1),
    ("unanswerable", (), 0, 0),
    ("of of of", ("of of",), 0, 0.8),
]


@pytest.mark.parametrize(("prediction", "answers", "exact", "f1"), HAND_MADE)
def test_figures_computed_by_hand(prediction: str, answers: tuple[str, ...], exact: float, f1: float) -> None:
    assert figures_of(prediction, answers) == pytest.approx((exact, f1))
    assert measured(prediction, answers) == pytest.approx((exact, f1))


def test_means_computed_by_hand() -> None:
    found = means((prediction, answers) for prediction, answers, _, _ in HAND_MADE)
    assert found == pytest.approx((3 / 7, (1 + 2 / 3 + 2 + 0.8) / 7))
