"""N(x) and where its words stand in the raw text."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.text.lemmas import lemmatizer
from gradewire_server.metrics.text.smile_normalise import bare_words, normalise, word_spans

TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="ab İßΣςé1_'.,-!?\t\n\u00a0\u0307\u200b\u0e31\U0001f600", max_size=60),
    st.lists(st.sampled_from(["cats", "U.S.", "well-known", "—", "İs", "1,000", "(the", "end)."]), max_size=12).map(
        " ".join
    ),
).filter(str.strip)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("The Cats!", ("the", "cat")),
        ("U.S. well-known   o'clock", ("us", "wellknown", "oclock")),
        ("1,000 - 2.5%", ("1000", "25")),
        ("Ein Straßenfest in İzmir", ("ein", "straßenfest", "in", "izmir")),
        ("snake_case", ("snake_case",)),
        ("東京 タワー", ("東京", "タワー")),
    ],
)
def test_words_are_lower_cased_bare_lemmas(raw: str, words: tuple[str, ...]) -> None:
    normalised = normalise(raw)
    assert normalised.words == words
    assert normalised.text == " ".join(words)


def test_a_text_without_any_word_stays_itself_in_lower_case() -> None:
    assert normalise(" ?! … ").text == " ?! … "
    assert normalise(" ?! … ").words == ("?!", "…")
    assert word_spans(" ?! … ", 99).tolist() == [[1, 3], [4, 5]]


def test_spans_leave_the_punctuation_around_a_word_out() -> None:
    text = '"Well-known (cats)," U.S.'
    assert [text[a:b] for a, b in word_spans(text, 99)] == ["Well-known", "cats", "U.S"]


def test_spans_count_characters_of_the_raw_text_where_lower_case_is_longer() -> None:
    text = "İİ and İ"  # lower-cased: two characters each
    assert [text[a:b] for a, b in word_spans(text, 99)] == ["İİ", "and", "İ"]


def test_only_as_many_spans_as_asked_for() -> None:
    text = "İİ, a b İ c"
    assert [text[a:b] for a, b in word_spans(text, 3)] == ["İİ", "a", "b"]


@given(TEXTS)
def test_every_word_has_the_span_it_comes_from(raw: str) -> None:
    text = unicodedata.normalize("NFC", raw)
    normalised = normalise(text)
    spans = word_spans(text, 99).tolist()
    assert len(spans) == len(normalised.words)
    assert [position for span in spans for position in span] == sorted(p for span in spans for p in span)
    if any(re.match(r"\w", character) for character in text.lower()):
        bare = [re.sub(r"[^\w\s]", "", text[a:b].lower()) for a, b in spans]
        assert tuple(lemmatizer()(word, word) for word in bare) == normalised.words
    else:
        assert tuple(text[a:b].lower() for a, b in spans) == normalised.words


@given(TEXTS)
def test_words_are_never_blank_and_hold_no_white_space(raw: str) -> None:
    normalised = normalise(raw)
    assert normalised.words
    assert all(word and word.split() == [word] for word in normalised.words)


@given(TEXTS, st.sampled_from([1, 10_000]))
def test_words_are_the_same_however_long_the_text(text: str, times: int) -> None:
    long = text * times
    assert bare_words(long) == re.sub(r"[^\w\s]+", "", long.lower()).split()


@pytest.mark.parametrize("end", [128, 0x110000])
def test_every_character_is_kept_or_deleted_as_a_regular_expression_says(end: int) -> None:
    text = "".join(map(chr, range(end)))
    assert bare_words(text) == re.sub(r"[^\w\s]+", "", text.lower()).split()
