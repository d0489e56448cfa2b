from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.encoders.grading.texts import joined, parted

TEXTS = st.tuples(*[st.text(st.sampled_from("ab1 2\n[]é"), max_size=8)] * 3)


@given(TEXTS)
def test_joined_texts_are_parted_again(texts: tuple[str, str, str]) -> None:
    assert parted(joined(texts)) == texts


@given(TEXTS, TEXTS)
def test_other_texts_never_give_the_same(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert (joined(one) == joined(other)) == (one == other)


def test_where_one_text_ends_is_a_part_of_it() -> None:
    assert len({joined(each) for each in [("a b", "", "c"), ("a", " b", "c"), ("a", "", " bc"), ("", "a b", "c")]}) == 4
