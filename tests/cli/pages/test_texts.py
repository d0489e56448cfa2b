"""Texts of strangers are bounded, and what would act unseen is written out."""

from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.pages.texts import FoundWindow, ShownText, find_window, shown, visible


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


def marked(text: str, window: str) -> tuple[str, bool] | None:
    found = find_window(text, window)
    return (text[found.start : found.end], found.exact) if found else None


def test_case_and_punctuation_do_not_matter_and_are_left_out_at_the_ends() -> None:
    assert marked('It was "Pyotr Ilyich  Tchaikovsky", who …', "pyotr ilyich tchaikovsky") == (
        "Pyotr Ilyich  Tchaikovsky",
        True,
    )
    # The server deletes punctuation inside a word and drops what is nothing else.
    assert marked("a well-known -- U.S. state!", "wellknown us") == ("well-known -- U.S", True)


def test_an_inflected_stretch_is_said_to_be_about_there() -> None:
    assert marked("The dogs were running over three hills.", "three hill") == ("three hills", False)
    # "be" is nothing like "were"; its neighbours settle the place.
    assert marked("The dogs were running over hills.", "dog be running") == ("dogs were running", False)


def test_an_exact_stretch_is_preferred_to_an_earlier_one_that_is_like_it() -> None:
    assert marked("hills and a hill", "hill") == ("hill", True)
    assert find_window("hills and a hill", "hill") == FoundWindow(12, 16, exact=True)


def test_what_is_not_there_is_not_marked() -> None:
    assert marked("The capital is Paris.", "leonardo da vinci") is None
    assert marked("Paris", "paris london") is None
    assert marked("", "paris") is None
    assert marked("paris", "") is None


def test_a_stretch_that_is_hardly_like_the_window_is_not_marked() -> None:
    # One letter in common of seven and eight: (1/7 + 1/8) / 2.
    assert marked("parking tickets", "present trumpet") is None
    # Half of the letters is the least: 4/8, then 3/8.
    assert marked("parkings", "park") == ("parkings", False)
    assert marked("parkings", "par") is None


def test_a_text_without_word_characters_has_its_runs_as_words() -> None:
    assert marked("?! ...", "?! ...") == ("?! ...", True)


def test_lower_case_that_is_longer_does_not_shift_the_place() -> None:
    # "İ".lower() is two characters, of which the combining dot is deleted.
    assert marked("İİİ then İzmir is it", "izmir") == ("İzmir", True)


def test_words_beyond_those_the_server_looks_at_are_not_looked_at() -> None:
    text = "word " * 1024 + "late"
    assert marked(text, "late") is None


def test_a_megabyte_is_no_burden() -> None:
    word = "x" * 1_000_000
    assert marked(f"{word} {word}y", f"{word}y") == (f"{word}y", True)
    assert find_window("a" * 500_000 + " b" * 200_000, " ".join("c" * 1000)) is None


@given(st.text(max_size=60), st.integers(0, 5), st.integers(1, 4))
def test_bare_words_of_any_text_are_found_where_they_stand(text: str, start: int, length: int) -> None:
    runs = ["".join(c for c in run.lower() if c.isalnum() or c == "_") for run in text.split()]
    words = [run for run in runs if run]
    window = words[start : start + length]
    if not window:
        return
    found = find_window(text, " ".join(window))
    assert found
    assert found.exact
    inside = [
        "".join(c for c in run.lower() if c.isalnum() or c == "_") for run in text[found.start : found.end].split()
    ]
    assert [run for run in inside if run] == window
