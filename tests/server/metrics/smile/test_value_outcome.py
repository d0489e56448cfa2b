"""What SMILE says of the values of the reference that it matched."""

import pytest

from gradewire_server.domain.item import Item
from gradewire_server.domain.parts import SmileParts
from gradewire_server.domain.result import MetricResult
from gradewire_server.metrics.smile.value_outcome import with_value_outcome


def outcome(item: Item, matched: int) -> str | None:
    parts = SmileParts(sentence=0.5, keyword=0.5, exact=0.5, lexical=0.5, best_window="", bin=3, correct=False)
    result = with_value_outcome(MetricResult(score=0.5, parts=parts, matched_reference=matched), item)
    assert isinstance(result.parts, SmileParts)
    assert result.score == 0.5
    return result.parts.value_outcome


@pytest.mark.parametrize("filler", ["", " and so on" * 200], ids=["short", "longer than what is kept"])
def test_the_outcome_is_of_the_matched_reference(filler: str) -> None:
    item = Item("1", "When?", ("in 1912", "in 1913", "a ship"), f"It sank in 1912{filler}.")
    assert [outcome(item, index) for index in range(3)] == ["found", "contradicted", None]
