"""Windows: all of them, each once, in a stated order, never too many."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.metrics.smile.texts import MAX_WINDOWS, MAX_WORDS, windows_of

LENGTHS = st.sets(st.integers(1, 9), min_size=1, max_size=4)


def by_definition(words: list[str], lengths: set[int]) -> tuple[dict[int, list[str]], bool]:
    """The definition: by position, then short to long, 512 distinct ones of 1 024 words; all at the first position."""
    kept = words[:1024]
    found: dict[int, list[str]] = {min(n, len(kept)): [] for n in sorted(lengths)}
    total, truncated = 0, len(words) > 1024
    for start in range(len(kept)):
        for n, texts in found.items():
            window = " ".join(kept[start : start + n])
            if start + n > len(kept) or window in texts:
                continue
            if total >= 512 and start > 0:
                truncated = True
                continue
            texts.append(window)
            total += 1
    return found, truncated


def test_windows_of_each_length_once_in_order_of_position() -> None:
    windows = windows_of(("a", "b", "a", "b", "c"), [1, 2])
    assert windows.by_length == {1: ("a", "b", "c"), 2: ("a b", "b a", "b c")}
    assert not windows.truncated


def test_a_longer_reference_looks_at_the_whole_prediction() -> None:
    windows = windows_of(("a", "b"), [2, 3, 7])
    assert windows.by_length == {2: ("a b",)}
    assert [windows.length_for(n) for n in (1, 2, 3, 7)] == [1, 2, 2, 2]


def test_repeated_words_do_not_use_up_the_limit() -> None:
    windows = windows_of(("ha",) * MAX_WORDS, [1])
    assert windows.by_length == {1: ("ha",)}
    assert not windows.truncated


def test_the_limit_counts_position_by_position() -> None:
    words = tuple(f"w{i}" for i in range(400))
    windows = windows_of(words, [1, 2])
    assert windows.truncated
    assert {n: len(texts) for n, texts in windows.by_length.items()} == {1: MAX_WINDOWS // 2, 2: MAX_WINDOWS // 2}


def test_words_beyond_the_first_1024_are_not_looked_at() -> None:
    windows = windows_of(("ha",) * MAX_WORDS + ("end",), [1])
    assert windows.by_length == {1: ("ha",)}
    assert windows.truncated


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40), LENGTHS)
def test_windows_are_what_the_definition_says(words: list[str], lengths: set[int]) -> None:
    expected, truncated = by_definition(words, lengths)
    windows = windows_of(tuple(words), lengths)
    assert {n: list(texts) for n, texts in windows.by_length.items()} == expected
    assert windows.truncated == truncated


@given(st.integers(500, 1100), st.integers(2, 700), LENGTHS)
def test_windows_of_long_predictions_are_what_the_definition_says(
    count: int, vocabulary: int, lengths: set[int]
) -> None:
    words = [f"w{i * i % vocabulary}" for i in range(count)]
    expected, truncated = by_definition(words, lengths)
    windows = windows_of(tuple(words), lengths)
    assert {n: list(texts) for n, texts in windows.by_length.items()} == expected
    assert windows.truncated == truncated


@settings(max_examples=example_count(5))
@given(st.integers(515, 560), st.integers(0, 2), st.integers(1, 600))
def test_more_lengths_than_windows_have_one_each(count: int, shorter: int, vocabulary: int) -> None:
    words = [f"w{i * i % vocabulary}" for i in range(count)]
    lengths = set(range(1, count + 1 - shorter))
    expected, truncated = by_definition(words, lengths)
    windows = windows_of(tuple(words), lengths)
    assert {n: list(texts) for n, texts in windows.by_length.items()} == expected
    assert windows.truncated == truncated
    assert all(texts[0] == " ".join(words[:n]) for n, texts in windows.by_length.items())
    assert sum(map(len, windows.by_length.values())) <= max(MAX_WINDOWS, len(lengths))
