"""SMILE's parts name the values of the matched reference and the closest window."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.items import Item
from gradewire_server.metrics.common import first_of_the_highest
from gradewire_server.metrics.smile.formula import closest_windows, value_outcome
from gradewire_server.metrics.smile.texts import smile_texts


@pytest.mark.parametrize("filler", ["", " and so on" * 200], ids=["short", "longer than what is kept"])
def test_the_outcome_is_of_the_matched_reference(filler: str) -> None:
    item = Item("1", "When?", ("in 1912", "in 1913", "a ship"), f"It sank in 1912{filler}.")
    assert [value_outcome(item, index) for index in range(3)] == ["found", "contradicted", None]


@given(st.lists(st.lists(st.sampled_from([0.5, 0.5 + 5e-7, 0.5 + 5e-6, 0.4]), min_size=3, max_size=3), min_size=3))
def test_the_closest_window_is_the_first_of_the_highest(cosines: list[list[float]]) -> None:
    columns = np.array(cosines, np.float32)
    words = [f"w{index}" for index in range(len(cosines))]
    texts = smile_texts(" ".join(words), ("k1", "k2", "k3"), ("k1", "k2", "k3"))
    found = closest_windows(texts, texts.candidates, columns, np.eye(3, dtype=np.float32))
    assert [each.cosine for each in found.values()] == columns.max(axis=0).tolist()
    assert [each.window for each in found.values()] == [words[first_of_the_highest(column)] for column in columns.T]
