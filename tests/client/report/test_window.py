"""The stretch of the raw text that a normalised window stands for: found exactly, about, or not at all."""

from hypothesis import given
from hypothesis import strategies as st

from gradewire.report.window import FoundWindow, find_window


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
