"""The answers that are sent: mixes, and rows of a file."""

from collections.abc import Iterator
from itertools import islice

import pytest

from gradewire_cli.bench.load.content import MIXES, Mix, OwnRows, SentItem
from gradewire_proto.v1 import types_pb2


def drawn(items: Iterator[SentItem], count: int) -> list[SentItem]:
    return list(islice(items, count))


def rows(count: int) -> list[types_pb2.Item]:
    return [types_pb2.Item(id=str(number), prediction=f"row {number}", references=["row"]) for number in range(count)]


@pytest.mark.parametrize("name", ["short", "verbose"])
def test_answers_have_as_many_words_as_the_mix_says_and_are_new(name: str) -> None:
    mix = MIXES[name]
    found = drawn(mix.supply(0, 0, 1), 3000)
    lengths = [len(each.item.prediction.split()) for each in found]
    assert (min(lengths), max(lengths)) == (mix.min_words, mix.max_words)
    assert not any(each.repeated for each in found)
    assert len({each.item.prediction for each in found}) > 0.99 * len(found)
    assert all(each.item.references and each.item.question for each in found)


def test_half_of_the_answers_of_repeats_are_of_one_pool() -> None:
    mix = MIXES["repeats"]
    pool = {item.prediction for item in mix.pool()}
    for part in range(2):
        found = drawn(mix.supply(0, part, 2), 2000)
        repeated = [each.item.prediction for each in found if each.repeated]
        assert 900 < len(repeated) < 1100
        assert set(repeated) <= pool


def test_the_same_seed_gives_the_same_answers_and_processes_have_answers_of_their_own() -> None:
    mix = Mix(min_words=3, max_words=50, repeat_share=0.2)
    assert drawn(mix.supply(7, 0, 2), 50) == drawn(mix.supply(7, 0, 2), 50)
    assert drawn(mix.supply(7, 0, 2), 50) != drawn(mix.supply(8, 0, 2), 50)
    sent = [{each.item.prediction for each in drawn(MIXES["short"].supply(7, part, 2), 400)} for part in range(2)]
    assert len(set.union(*sent)) > 0.97 * 800


def test_processes_share_rows_out_and_each_row_is_new_once() -> None:
    own = OwnRows(rows(8))
    assert (len(own), own.pool()) == (8, [])
    for part, expected in enumerate((["0", "3", "6"], ["1", "4", "7"], ["2", "5"])):
        found = drawn(own.supply(0, part, 3), 2 * len(expected))
        assert [each.item.id for each in found] == expected * 2
        assert [each.repeated for each in found] == [False] * len(expected) + [True] * len(expected)


def test_a_row_of_the_content_of_an_earlier_one_is_not_new() -> None:
    twice = [*rows(3), *rows(2)]
    twice[3].id, twice[4].references[:] = "another id", ["other"]
    found = drawn(OwnRows(twice).supply(0, 0, 1), 5)
    assert [each.repeated for each in found] == [False, False, False, True, False]


def test_processes_beyond_the_rows_send_what_others_send() -> None:
    found = drawn(OwnRows(rows(2)).supply(0, 3, 4), 4)
    assert [each.item.id for each in found] == ["0", "1", "0", "1"]
    assert all(each.repeated for each in found)
