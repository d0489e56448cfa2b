import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire._input.cells import unpacked_list, unpacked_object

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=4)


@given(texts=TEXTS)
@settings(max_examples=example_count(300))
def test_lists_come_back_however_they_were_printed(texts: list[str]) -> None:
    for printed in (str(texts), json.dumps(texts), json.dumps(texts, ensure_ascii=False), str(tuple(texts))):
        assert unpacked_list(printed) == texts, printed
    assert unpacked_list(str(set(texts))) == sorted(set(texts))


@given(texts=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=12), min_size=2))
@settings(max_examples=example_count(300))
def test_arrays_come_back(texts: list[str]) -> None:
    with np.printoptions(threshold=10**6, linewidth=10**6):
        assert unpacked_list(str(np.array(texts, dtype=object))) == texts
        assert unpacked_list(repr(np.array(texts, dtype=object))) == texts


@given(numbers=st.lists(st.integers(-99, 99) | st.sampled_from([0.5, 2.0, -3.25]), min_size=1))
def test_arrays_of_numbers_come_back(numbers: list[float]) -> None:
    with np.printoptions(threshold=10**6, linewidth=10**6):
        assert unpacked_list(str(np.array(numbers))) == numbers
    assert unpacked_list(str(list(np.array(numbers)))) == numbers


def test_scalars_of_numpy_are_what_they_hold() -> None:
    assert unpacked_list(str([np.str_("it's"), "a"])) == ["it's", "a"]
    assert unpacked_list(str(["np.str_('a')"])) == ["np.str_('a')"]
    assert unpacked_list("[np.str_('a'), np.int64(-3)]") == ["a", -3]


@given(text=st.text(max_size=60))
@settings(max_examples=example_count(500))
def test_any_text_is_a_list_or_none(text: str) -> None:
    for cell in (text, f"[{text}]", f"({text})", f"{{{text}}}"):
        assert isinstance(unpacked_list(cell), list | None)


@pytest.mark.parametrize(
    "text",
    [
        "[sic]",
        "(Paris)",
        "(1, 2)",
        "{1, 2}",
        "[Paris] is right",
        "['a', 'b'] or so",
        "['a' 'b', 'c']",
        "['a' ... 'b']",
        "[1 2 ... 3]",
        "[11111111111111111111111111111111111111111111 1 x]",
        "['a', nan]",
        "",
        "[",
        "[" * 2000 + "]" * 2000,
        "[__import__('os').system('true')]",
    ],
)
def test_texts_that_only_look_like_lists_stay_texts(text: str) -> None:
    assert unpacked_list(text) is None


def test_what_is_too_long_to_be_parsed_is_a_text() -> None:
    assert unpacked_list(str(["a" * (1 << 21)])) is None


def test_objects_are_read_or_refused_never_taken_for_texts() -> None:
    assert unpacked_object("{'text': ['a'], 'answer_start': [1]}") == {"text": ["a"], "answer_start": [1]}
    assert unpacked_object('{"answer": "a"}') == {"answer": "a"}
    assert unpacked_object("{x | x > 0}") is None
    assert unpacked_object("{'text': array(['a'], dtype=object), 'answer_start': array([1])}") == {
        "text": ["a"],
        "answer_start": [1],
    }
    for text in ("{'text': array(['a', ..., 'b'], dtype=object)}", "{'text': array(['a]'], dtype=object)}"):
        with pytest.raises(ValueError, match="cannot be read"):
            unpacked_object(text)
