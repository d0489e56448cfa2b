"""What SMILE says of the values of the reference that it matched."""

import pytest

from gradewire_server.domain.items import Item
from gradewire_server.metrics.smile.formula import value_outcome


@pytest.mark.parametrize("filler", ["", " and so on" * 200], ids=["short", "longer than what is kept"])
def test_the_outcome_is_of_the_matched_reference(filler: str) -> None:
    item = Item("1", "When?", ("in 1912", "in 1913", "a ship"), f"It sank in 1912{filler}.")
    assert [value_outcome(item, index) for index in range(3)] == ["found", "contradicted", None]
