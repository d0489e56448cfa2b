"""Texts of strangers are bounded, and what would act unseen is written out."""

from hypothesis import given
from hypothesis import strategies as st

from gradewire.report.texts import ShownText, shown, visible
from gradewire.report.window import FoundWindow


def test_characters_that_hide_or_turn_text_are_written_out() -> None:
    assert visible("a\u202eb\x00c\u200bd\ufeff") == "a[U+202E]b[U+0000]c[U+200B]d[U+FEFF]"
    assert visible("\ud800") == "[U+D800]"
    assert visible("tab\there\nand there") == "tab\there\nand there"
    # Joiners make emoji and Indic conjuncts.
    assert visible("👩\u200d🔬 क्\u200dष") == "👩\u200d🔬 क्\u200dष"


@given(st.text())
def test_every_text_can_be_written_as_utf_8(text: str) -> None:
    assert visible(text + "\udfff").encode().decode() == visible(text + "\udfff")


def test_a_short_text_is_shown_whole_around_its_mark() -> None:
    assert shown("one two three", max_characters=100) == ShownText("one two three")
    assert shown("one two three", max_characters=100, mark=FoundWindow(4, 7, exact=True)) == ShownText(
        "one ", "two", " three"
    )


def test_a_long_text_says_what_is_left_out() -> None:
    cut = shown("x" * 1_000_000, max_characters=1000)
    assert len(cut.before) == 1000
    assert cut.cut == "characters 1 to 1,000 of 1,000,000"


def test_a_mark_far_inside_is_in_sight() -> None:
    text = "x" * 5000 + "here" + "y" * 5000
    cut = shown(text, max_characters=1000, mark=FoundWindow(5000, 5004, exact=True))
    assert (cut.before, cut.marked, cut.after) == ("x" * 200, "here", "y" * 796)
    assert cut.cut == "characters 4,801 to 5,800 of 10,004"


def test_a_mark_longer_than_the_room_is_cut_too() -> None:
    cut = shown("z" * 5000, max_characters=1000, mark=FoundWindow(0, 5000, exact=True))
    assert (cut.before, cut.marked, cut.after) == ("", "z" * 1000, "")
