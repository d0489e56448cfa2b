"""The sample: a share of all answers, the same whenever it is drawn."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.item import Item
from gradewire_server.metrics.cascade.sample import is_sampled

ITEMS = [Item(str(n), f"Question {n}?", ("a", "b"), f"answer {n % 7}") for n in range(4000)]


def drawn(share: float, seed: int = 0) -> np.ndarray:
    return np.array([is_sampled(item, share, seed) for item in ITEMS])


def test_it_is_the_share_that_was_asked_for() -> None:
    for share in (0.05, 0.3, 0.9):
        assert abs(drawn(share).mean() - share) < 4 * (share * (1 - share) / len(ITEMS)) ** 0.5
    assert not drawn(0.0).any()
    assert drawn(1.0).all()


def test_a_larger_share_holds_every_smaller_one() -> None:
    assert not (drawn(0.1) & ~drawn(0.2)).any()


def test_all_that_a_judge_may_be_shown_counts() -> None:
    """Else answers that differ in it alone would be drawn together."""
    for name, value in (("references", ("c",)), ("captions", ("A dog.",)), ("prediction", "other"), ("question", "Q?")):
        changed = np.array([is_sampled(replace(item, **{name: value}), 0.3, 0) for item in ITEMS[:500]])
        assert (changed != drawn(0.3)[:500]).any(), name


def test_seeds_draw_independently() -> None:
    both = drawn(0.3, seed=1) & drawn(0.3, seed=2)
    assert abs(both.mean() - 0.09) < 0.02


@given(st.text(min_size=1), st.text(min_size=1), st.floats(0, 1))
def test_id_and_group_do_not_count(question: str, prediction: str, share: float) -> None:
    one = Item("1", question, ("a",), prediction, group="g")
    assert is_sampled(one, share, 0) == is_sampled(Item("2", question, ("a",), prediction), share, 0)
