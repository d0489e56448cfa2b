"""Whatever a text is, its values are read with bounded work, and nothing in it is run."""

import cProfile
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.values import tokens
from gradewire_server.metrics.values.matching import MAX_WANTED, match_values
from gradewire_server.metrics.values.reading import MAX_VALUES, Outcome, _read_values, values_of, written_form
from gradewire_server.metrics.values.tokens import MAX_TOKENS, plain, tokens_of

_MAX_CALLS: Final = 400
"""Of functions, C functions among them, by token that is read; plain English has 30."""
HOSTILE: Final = {
    "digits": "9" * 1_000_000,
    "brackets": "(" * 100_000 + "1" + ")" * 100_000,
    "powers": "10**10**10**10**10",
    "power of a power": "(10^300)^300 + 1",
    "factorial": "9999999!! + 170!!",
    "exponents": "1e999 " * 1_000,
    "digits of other scripts": "\u0663\u0664 \u0969 \uff13 " * 1_000,
    "words that are no numbers": "NaN inf -inf nan infinity " * 1_000,
    "commas": "1,234,567," * 10_000,
    "hyphens": "1-2-3-" * 10_000,
    "units": "5 m/s/s/s " * 2_000,
    "marks": "\u0301" * 10_000 + "5",
    "number words": "one hundred and " * 2_000,
    "half": "and a half " * 2_000,
    "operators": "x+" * 5_000,
    "relations": "x<y<" * 5_000,
    "fractions": "\\frac{1}{" * 2_000,
    "LaTeX": "\\frac{1}{2}" * 2_000,
    "lists": "1. a 2. b " * 2_000,
    "names": "A-b-c-d-" * 2_000,
    "elements": "HeLiBeB" * 2_000 + "1",
    "months": "May " * 4_000,
    "Roman": "MMM" * 4_000,
    "call": "__import__('os').system('exit 1') + 1",
}


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Characters of a text in which values are looked for: an eighth of the usual, to save time."""
    most = tokens.MAX_CHARACTERS // 8
    monkeypatch.setattr(tokens, "MAX_CHARACTERS", most)
    monkeypatch.setattr(tokens, "_TAIL", most // 4)
    yield most
    written_form.cache_clear()  # it knows nothing of the bound


def calls(text: str) -> int:
    """Return how many functions reading a text calls, those written in C among them."""
    written_form.cache_clear()
    profile = cProfile.Profile(subcalls=False)  # counts in C: a hook in Python takes four times as long
    profile.enable()
    try:
        _read_values(text)  # without the caches
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_read_with_bounded_work(text: str) -> None:
    assert len(values_of(text)) <= MAX_VALUES
    assert calls(text) <= _MAX_CALLS * MAX_TOKENS
    match = match_values(text, text, text)
    assert match.wanted <= MAX_WANTED
    assert match.found + match.contradicted + match.missing == match.wanted


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_is_beyond_the_bound_costs_nothing(text: str, bound: int) -> None:
    long = text * (2 * bound // len(text) + 1)
    assert len(plain(long)) <= 4 * bound
    assert calls(long * 3) <= 2 * calls(long) + 100


def test_numbers_that_floats_do_not_hold_are_none() -> None:
    assert values_of("9" * 400 + " 1e999 10^400") == ()


@given(st.text(max_size=300))
def test_any_text_has_values_that_are_numbers(text: str) -> None:
    for value in values_of(text):
        number = getattr(value.content, "value", 0.0)
        assert math.isfinite(number)


ALPHABET: Final = st.sampled_from([
    *"0123456789", *" .,-+*/^!()=<>%$:'\"", "\u00bd", "\u00b2", "\u03bb", "\u2212", "sqrt", "pi", " million", " km",
    " of ", " May ", " century ", " BC", " and a half", "IV", " first ", "x", "e", "\\frac{", "}{", "}", "H2O",
    "2-butanol",
])  # fmt: skip


@given(st.lists(ALPHABET, max_size=60).map("".join), st.lists(ALPHABET, max_size=60).map("".join))
def test_texts_of_what_values_are_made_of(reference: str, answer: str) -> None:
    match = match_values(answer, reference, answer)
    assert match.found + match.contradicted + match.missing == match.wanted
    assert match.coarser <= match.missing
    assert set(match.kinds.values()) <= set(Outcome)


@given(st.lists(ALPHABET, max_size=60).map("".join))
def test_every_text_says_its_own_values(text: str) -> None:
    match = match_values("", text, text)
    lists = {kind for kind in match.kinds if kind == "list"}
    assert lists or match.found == match.wanted


@given(st.text(max_size=200))
def test_tokens_lie_in_order_inside_the_text(text: str) -> None:
    tokens = tokens_of(text)
    assert all(text[token.start : token.end] == token.text for token in tokens)
    assert all(first.end <= second.start for first, second in pairwise(tokens))


def test_values_at_both_ends_of_a_long_text_are_read() -> None:
    """Where an answer has more values than are compared, it begins or ends with what counts more often than not."""
    text = f"7 litres, then {'; '.join(str(number) for number in range(100, 400))} and at last 42 kg"
    found = [value.text for value in values_of(text)]
    assert len(found) == MAX_VALUES
    assert (found[0], found[-1]) == ("7 litres", "42 kg")


def test_of_a_long_text_beginning_and_end_are_read() -> None:
    text = f"In 1912 it began. {'It went on and on. ' * 1_000}So the answer is 42 km."
    assert [value.text for value in values_of(text)] == ["1912", "42 km"]
    assert [value.text for value in values_of("a 123456789" + "0" * 20_000 + " end 7")] == ["7"]


def test_a_number_is_not_cut_where_the_middle_of_a_text_is_left_out(bound: int) -> None:
    middle = bound - bound // 4
    found = [
        [value.text for value in values_of(f"{'a' * length} 1234567 {'b ' * bound}")]
        for length in range(middle - 20, middle + 20)
    ]
    # A number that ends where the text is cut may go on, so it is left out as well.
    assert [number for number, read in enumerate(found) if read == ["1234567"]] == list(range(11))
    assert [number for number, read in enumerate(found) if read == []] == list(range(11, 40))


def test_so_many_values_are_read_and_no_more() -> None:
    assert len(values_of("5 km, " * 500)) == MAX_VALUES == 64
