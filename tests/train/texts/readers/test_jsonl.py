"""JSON lines of the user: what is wrong is told with its line and field."""

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_train.errors import TrainingError
from gradewire_train.texts.readers.jsonl import FieldError, Row, clean, read, text


def question(row: Row) -> str:
    return text(row, "question")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON in UTF-8"),
        ("[1]", "a JSON object is expected, not list"),
        ('{"q": "x"}', r"no field .question. \(fields: 'q'\)"),
        (json.dumps({"k" * 5_000: 1}), r"\(fields: 'k{39}\)"),
        ('{"question": "\\ud800"}', "a lone surrogate"),
        ('{"question": 3}', 'field "question": a text is expected, not int'),
        ('{"question": " \\u0000 "}', 'field "question" is blank'),
        (json.dumps({"question": "x" * 2001}), "2001 characters, at most 2000"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_is_an_error_that_names_it(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"question": "why"}}\n\n{line}\n')
    with pytest.raises(TrainingError, match=rf"rows\.jsonl, line 3: .*{message}.*--skip-bad-lines"):
        list(read(path, question, skip_bad_lines=False))


def test_bad_lines_are_left_out_and_counted_when_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"question": "why"}\n{\n\xff\xfe\n{"question": "when"}\n')
    with caplog.at_level(logging.WARNING):
        assert list(read(path, question, skip_bad_lines=True)) == [(1, "why"), (4, "when")]
    assert "2 bad lines left out; the first: line 2: not JSON" in caplog.text


@pytest.mark.parametrize(("content", "message"), [("", "it is empty"), ("{\n", "line 1: not JSON")])
def test_a_file_without_a_good_line_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(TrainingError, match=rf"holds no line that can be used; {message}"):
        list(read(path, question, skip_bad_lines=True))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"nothing\.jsonl cannot be read: No such file"):
        list(read(tmp_path / "nothing.jsonl", question, skip_bad_lines=True))


def test_blanks_and_control_characters_become_single_blanks_and_accents_are_composed() -> None:
    assert clean(" cafe\u0301\x1b[31m\t\nau  lait ", "a") == "caf\u00e9 [31m au lait"


@given(st.text())
def test_what_is_clean_stays_so(given_text: str) -> None:
    try:
        cleaned = clean(given_text, "a")
    except FieldError:
        assert not given_text.strip("\x1c\x1d\x1e\x1f") or not given_text.isprintable() or not given_text.strip()
        return
    assert clean(cleaned, "a") == cleaned
