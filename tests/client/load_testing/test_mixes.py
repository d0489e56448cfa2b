from itertools import islice

import pytest

from gradewire.load_testing.mixes import MIXES, Items, Mix, OwnRows
from gradewire_proto.v1 import types_pb2


def drawn(items: Items, count: int) -> list[tuple[types_pb2.Item, bool, int]]:
    return [tuple(items.next()) for _ in range(count)]


@pytest.mark.parametrize("name", ["short", "verbose"])
def test_answers_have_as_many_words_as_the_mix_says_and_are_new(name: str) -> None:
    mix = MIXES[name]
    found = drawn(mix.items("0/0/1"), 3000)
    lengths = [len(item.prediction.split()) for item, _, _ in found]
    assert (min(lengths), max(lengths)) == (mix.min_words, mix.max_words)
    assert lengths == [words for _, _, words in found]
    assert not any(repeated for _, repeated, _ in found)
    assert len({item.prediction for item, _, _ in found}) > 0.99 * len(found)
    assert all(item.references and item.question for item, _, _ in found)


def test_half_of_the_answers_of_repeats_are_of_one_pool() -> None:
    mix = MIXES["repeats"]
    pool = {item.prediction for item in mix.pool()}
    for seed in ("0/0/1", "0/1/1"):
        found = drawn(mix.items(seed), 2000)
        repeated = [item.prediction for item, again, _ in found if again]
        assert 900 < len(repeated) < 1100
        assert set(repeated) <= pool


def test_the_same_seed_gives_the_same_answers() -> None:
    mix = Mix(min_words=3, max_words=50, repeat_share=0.2)
    assert drawn(mix.items("a"), 50) == drawn(mix.items("a"), 50)
    assert drawn(mix.items("a"), 50) != drawn(mix.items("b"), 50)


def test_rows_of_a_file_come_in_their_order_from_anywhere() -> None:
    items = [types_pb2.Item(prediction=f"answer {number}", references=["answer"]) for number in range(5)]
    rows = OwnRows([item.SerializeToString() for item in items])
    found = [item.prediction for item, repeated, words in drawn(rows.items("0"), 12) if repeated and words == 2]
    begin = found.index("answer 0")
    assert list(islice(found, begin, begin + 5)) == [f"answer {number}" for number in range(5)]
    assert rows.pool() == items
