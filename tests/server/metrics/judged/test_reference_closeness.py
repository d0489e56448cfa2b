"""Which alias is the closest to an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.judged.reference_closeness import closest


@pytest.mark.parametrize(
    ("references", "prediction", "best"),
    [
        (("Ada", "Ada Lovelace"), "Lovelace was her name", "Ada Lovelace"),
        (("Ada", "Lovelace"), "nobody", "Ada"),
        # Articles and the like are in every English answer.
        (("America", "the USA"), "It's in the south of the continent", "America"),
        (("William Shakespeare", "the Bard of Avon"), "the author of the play", "William Shakespeare"),
        (("It", "The The"), "the the", "The The"),
        # Of equals that whose wording is nearer.
        (("Hague", "The Hague"), "The Hague", "Hague"),
        (("the Tin Woodman", "Tin Woodman"), "the Tin Man", "the Tin Woodman"),
        # No blanks between words, and endings.
        (("Edo", "東京", "江戸"), "昔の名前は江戸です。", "江戸"),
        (("Peking", "北京"), "首都是北京。", "北京"),
        (("Seoul", "서울"), "수도는 서울입니다", "서울"),
        (("Rome", "Москва"), "столица находится в Москве", "Москва"),
        # A title said word for word is no less close than a name with letters beyond ASCII.
        (("Grand Inquisitor", "Tomás de Torquemada"), "Tomás de Torquemada, the Grand Inquisitor", "Grand Inquisitor"),
        (("?", "!"), "x", "?"),
    ],
)
def test_the_closest_comes_first(references: tuple[str, ...], prediction: str, best: str) -> None:
    keys = [reference.casefold() for reference in references]
    assert references[closest(keys, prediction).places[0]] == best


@given(st.lists(st.text(min_size=1, max_size=8).filter(str.strip), min_size=1, max_size=6), st.text(max_size=20))
def test_every_place_is_ranked_once(keys: list[str], prediction: str) -> None:
    assert sorted(closest(keys, prediction).places) == list(range(len(keys)))


@given(st.lists(st.sampled_from(["ada", "lovelace", "北京", "the"]), min_size=2, max_size=5))
def test_equals_stay_in_their_order(keys: list[str]) -> None:
    ranked = closest(keys, "").places
    assert list(ranked) == sorted(ranked)


@pytest.mark.parametrize(
    ("reference", "prediction", "shared"),
    [
        ("a small lake", "the lake", True),
        ("the lake", "the sea", False),  # articles are in every answer
        ("The The", "the band", True),  # but here nothing else is
        ("water", "aquatic", False),
        ("котёнок", "два котёнка", True),  # five of seven runs of letters
        ("Москва", "Лондон", False),
        ("江戸", "昔の名前は江戸です。", True),
    ],
)
def test_whether_a_word_is_shared(reference: str, prediction: str, shared: bool) -> None:  # noqa: FBT001 - the answer
    assert closest(["x y z", reference.casefold()], prediction).shared is shared
