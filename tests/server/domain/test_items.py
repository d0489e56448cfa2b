"""What messages quote is cut, so that a message has a bound."""

from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.items import (
    MAX_MESSAGE_CHARACTERS,
    MAX_QUOTED_CHARACTERS,
    Failure,
    Status,
    quoted,
    shortened,
)
from gradewire_server.requests.errors import InvalidRequestError, NothingLoadedError

ANY_TEXT = st.text(max_size=200) | st.text(max_size=20).map(lambda text: text * 50)


def test_a_short_text_is_quoted_as_python_does() -> None:
    assert quoted("it's") == '"it\'s"'
    assert quoted("a\0b") == "'a\\x00b'"
    assert quoted("x" * 80) == f"'{'x' * 80}'"


def test_a_long_text_is_cut_and_says_so() -> None:
    assert quoted("x" * 81) == f"'{'x' * 79}…'"
    assert quoted("x" * 3_000_000) == f"'{'x' * 79}…'"
    assert shortened("abcd", 3) == "ab…"
    assert shortened("abc", 3) == "abc"


@given(ANY_TEXT)
def test_no_quote_is_longer_than_its_bound(text: str) -> None:
    shown = quoted(text)
    assert len(shown) <= MAX_QUOTED_CHARACTERS + 2
    assert shown[0] == shown[-1]
    assert shown.isprintable()
    assert shown == repr(text) or shown.endswith(f"…{shown[0]}")


def test_no_message_is_longer_than_its_bound() -> None:
    text = "x" * 5000
    assert len(Failure(Status.UNAVAILABLE, text).message) == MAX_MESSAGE_CHARACTERS
    assert Failure(Status.UNAVAILABLE, text) == Failure(Status.UNAVAILABLE, text[:2000])
    for error in (InvalidRequestError("metrics[0]", text), NothingLoadedError(text)):
        assert len(str(error)) == MAX_MESSAGE_CHARACTERS
    assert str(InvalidRequestError("metrics[0]", text)).startswith("metrics[0]: xxx")
