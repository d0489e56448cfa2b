"""Both orders by both decisions, to the letter, and what no order of answers may change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.choices import CompareDecision
from gradewire_server.domain.items import Winner
from gradewire_server.metrics.judged.compare import decide, winner_of

A, B, TIE = Winner.A, Winner.B, Winner.TIE
SWAPPED = {A: B, B: A, TIE: TIE, None: None}
WINNERS = st.sampled_from(Winner)
DECISIONS = st.sampled_from(CompareDecision)
PROBABILITIES = st.tuples(*[st.integers(0, 20).map(lambda number: number / 20)] * 3)


@pytest.mark.parametrize(
    ("a_first", "b_first", "both", "majority"),
    [
        (A, A, A, A),
        (B, B, B, B),
        (TIE, TIE, TIE, TIE),
        (A, B, None, None),
        (B, A, None, None),
        (A, TIE, None, A),
        (TIE, A, None, A),
        (B, TIE, None, B),
        (TIE, B, None, B),
    ],
)
def test_the_table(a_first: Winner, b_first: Winner, both: Winner | None, majority: Winner | None) -> None:
    assert decide((a_first, b_first), CompareDecision.BOTH) is both
    assert decide((a_first, b_first), CompareDecision.MAJORITY) is majority


@given(WINNERS, WINNERS, DECISIONS)
def test_answers_that_change_places_change_the_winner_and_nothing_else(
    a_first: Winner, b_first: Winner, decision: CompareDecision
) -> None:
    swapped = decide((SWAPPED[b_first], SWAPPED[a_first]), decision)  # type: ignore[arg-type]
    assert swapped is SWAPPED[decide((a_first, b_first), decision)]


@given(WINNERS, WINNERS)
def test_majority_keeps_every_winner_of_both(a_first: Winner, b_first: Winner) -> None:
    both = decide((a_first, b_first), CompareDecision.BOTH)
    assert both is None or decide((a_first, b_first), CompareDecision.MAJORITY) is both


@pytest.mark.parametrize(
    ("probabilities", "winner"),
    [
        ((0.5, 0.3, 0.2), A),
        ((0.3, 0.5, 0.2), B),
        ((0.3, 0.2, 0.5), TIE),
        ((0.4, 0.4, 0.2), TIE),
        ((0.4, 0.2, 0.4), TIE),
        ((0.2, 0.4, 0.4), TIE),
        ((0.0, 0.0, 0.0), TIE),
    ],
)
def test_the_most_probable_one_wins_and_of_equal_ones_none(
    probabilities: tuple[float, float, float], winner: Winner
) -> None:
    assert winner_of(probabilities) is winner


@given(PROBABILITIES)
def test_swapped_probabilities_swap_the_winner(probabilities: tuple[float, float, float]) -> None:
    a, b, tie = probabilities
    assert winner_of((b, a, tie)) is SWAPPED[winner_of(probabilities)]
