"""What opens a place stands nowhere in what is shown of its URL."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_cli.problems import InputError, UnreachableError, redacted, redacted_url

_PASSWORD = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C"), exclude_characters="/"), min_size=1)
_VALUE = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:SECRET@host/a.jsonl", "http://…@host/a.jsonl"),
        ("sftp://u:SECRET@SECRET@host/a.jsonl", "sftp://…@host/a.jsonl"),
        ("sftp://u:SECRET?SECRET@host/a.jsonl", "sftp://…"),
        ("sftp:/u:SECRET@host/a.jsonl", "sftp:/…@host/a.jsonl"),
        ("https://host/a.jsonl?X-Amz-Signature=SECRET&X-Amz-Date=1", "https://host/a.jsonl?…"),
        ("https://host?key=SECRET", "https://host?…"),
        ("https://host?key=u@SECRET", "https://…"),
        ("https://u:SECRET@host?key=u@SECRET", "https://…@host?…"),
        ("https://host/a?key=SECRET?SECRET#SECRET", "https://host/a?…"),
        ("https://host/a?key=SECRET/SECRET'SECRET", "https://host/a?…"),
        ("zip://a.csv::https://u:SECRET@host/a.zip?key=SECRET", "zip://a.csv::https://…@host/a.zip?…"),
        ("no file at http://SECRET@host/a?key=SECRET here", "no file at http://…@host/a?… here"),
        ("'https://host/a?key=SECRET': it is gone", "'https://host/a?…': it is gone"),
        ("s3://bucket/part-?.jsonl", "s3://bucket/part-?.jsonl"),
        ("s3://bucket/a differs: cider/1?corpus=prepared", "s3://bucket/a differs: cider/1?corpus=prepared"),
        ("file:///rows/a@b.jsonl", "file:///rows/a@b.jsonl"),
        ("rows/a@b?c=d.jsonl", "rows/a@b?c=d.jsonl"),
        ("C:/rows@home/a.jsonl", "C:/rows@home/a.jsonl"),
    ],
)
def test_keys_in_a_url_are_not_shown(url: str, shown: str) -> None:
    assert redacted(url) == shown
    assert redacted(shown) == shown


@settings(max_examples=example_count(200))
@given(user=_PASSWORD, password=_PASSWORD)
def test_no_password_is_shown_whatever_its_characters(user: str, password: str) -> None:
    assert redacted(f"sftp://{user}:{password}@host/a.jsonl") in {"sftp://…@host/a.jsonl", "sftp://…"}


@settings(max_examples=example_count(200))
@given(value=_VALUE)
def test_no_value_of_a_query_is_shown_whatever_its_characters(value: str) -> None:
    told = redacted(f"https://host/a.jsonl?key={value}x&date=1")
    assert told == "https://host/a.jsonl?…"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/a b.jsonl?sig=SECRET SECRET", "https://host/a b.jsonl?…"),
        ("https://host/a?SECRET", "https://host/a?…"),
        ("zip://a b.csv::https://u:SECRET SECRET@host/a.zip?SECRET", "zip://a b.csv::https://…@host/a.zip?…"),
        ("s3://bucket/part ?.jsonl", "s3://bucket/part ?.jsonl"),
        ("rows/a b@c?d.jsonl", "rows/a b@c?d.jsonl"),
    ],
)
def test_keys_with_blanks_are_hidden_where_the_text_is_one_url(url: str, shown: str) -> None:
    assert redacted_url(url) == shown
    assert redacted_url(shown) == shown


@settings(max_examples=example_count(200))
@given(value=st.text(st.characters(codec="utf-8", exclude_categories=("C",))))
def test_no_query_of_a_url_is_shown_whatever_its_characters(value: str) -> None:
    assert redacted_url(f"https://host/a b.jsonl?{value}") == "https://host/a b.jsonl?…"


@pytest.mark.parametrize("kind", [InputError, UnreachableError])
def test_no_message_of_the_command_shows_a_key(kind: type[InputError | UnreachableError]) -> None:
    error = kind("sftp://u:SECRET@host/a.jsonl: https://host/a?key=SECRET is not there")
    assert error.format_message() == "sftp://…@host/a.jsonl: https://host/a?… is not there"
    assert "SECRET" not in str(error)
