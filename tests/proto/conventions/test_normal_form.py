"""NFC where its time is bounded, and nothing else."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.conventions import normal_form
from gradewire_proto.conventions.normal_form import MAX_MARKS, TooManyMarksError, has_long_run, nfc

# Marks of three classes, one that is two marks, one without a class, and what may stand around them.
PIECES = st.sampled_from(
    ["a", "é", "\u0301", "\u0316", "\u0344", "\u0f73", "\U0001d165", "\u09be", "🎉", "—", "漢", " ", "\u200b"]
)
RUNS = st.lists(st.builds(str.__mul__, PIECES, st.integers(1, 45)), max_size=6).map("".join)


@given(RUNS)
def test_texts_are_refused_exactly_for_marks_in_a_row(text: str) -> None:
    longest = row = 0
    for character in text:
        row = row + 1 if unicodedata.category(character).startswith("M") else 0
        longest = max(longest, row)
    assert has_long_run(text) == (longest > MAX_MARKS)
    if longest <= MAX_MARKS:
        assert nfc(text) == unicodedata.normalize("NFC", text)


def test_whatever_normalising_sorts_counts_as_a_mark() -> None:
    for code in range(0x110000):
        if unicodedata.combining(unicodedata.normalize("NFD", chr(code))[0]):
            assert has_long_run(chr(code) * (MAX_MARKS + 1)), hex(code)


@pytest.mark.parametrize(
    "text", ["a" + "\u0301" * 50_000 + "\u0316" * 50_000, "🎉" * 40 + "\u0f73" * 50_000, "\u0344" * 50_000]
)
def test_marks_without_end_are_never_normalised(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def normalize(form: str, text: str) -> str:
        raise AssertionError(form, len(text))

    monkeypatch.setattr(normal_form, "normalize", normalize)
    with pytest.raises(TooManyMarksError, match="30 combining marks"):
        nfc(text)
