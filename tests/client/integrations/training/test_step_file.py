"""Rows on disk are sent as the rows themselves would be."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gradewire import Item
from gradewire._calls.submit import READ_NAMES
from gradewire.integrations.training.step_file import (
    DamagedStepError,
    StepHeader,
    TooLargeStepError,
    decode_row,
    encode_row,
    read_outline,
    read_step,
    write_step,
)
from gradewire.items import ItemProblem, encode_item

_TEXTS = st.text() | st.just("\ud800")
_VALUES = st.recursive(
    _TEXTS | st.integers() | st.floats() | st.none() | st.booleans() | st.binary() | st.decimals() | st.fractions(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_NAMES = st.sampled_from(["references", "Reference", "prediction", "response", "question", "id", "captions", "other"])
_ROWS = st.dictionaries(_NAMES, _VALUES, max_size=6) | _VALUES


def sent(row: Any) -> object:
    """What the client would send; of a problem only that there is one, for its words may quote the value."""
    encoded = encode_item(0, row, max_bytes=10**6)
    return ItemProblem if isinstance(encoded, ItemProblem) else encoded


@given(_ROWS)
def test_any_row_is_sent_from_disk_as_it_would_be_sent_at_once(row: Any) -> None:
    line = encode_row(row, READ_NAMES)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert sent(decode_row(line)) == sent(row)


@given(st.lists(st.text(), max_size=4), st.text(), st.text(), st.text())
def test_items_come_back(references: list[str], prediction: str, question: str, caption: str) -> None:
    item = Item(references=references, prediction=prediction, question=question, captions=[caption], id="7")
    assert sent(decode_row(encode_row(item, READ_NAMES))) == sent(item)


@pytest.mark.parametrize("value", [Decimal("1.50"), Fraction(1, 3)])
def test_exact_numbers_keep_their_text(value: object) -> None:
    row = {"references": [value], "prediction": value}
    assert sent(decode_row(encode_row(row, READ_NAMES))) == sent(row)
    assert sent(row) is not ItemProblem


def test_pictures_are_kept_where_they_are_shown() -> None:
    row = {"references": ["a"], "prediction": "b", "images": [Image.new("L", (2, 2)), {"bytes": b"\x00"}]}
    kept = encode_item(0, decode_row(encode_row(row, READ_NAMES | {"images"})), max_bytes=10**6, images=True)
    assert kept == encode_item(0, row, max_bytes=10**6, images=True)
    assert json.loads(encode_row(row, READ_NAMES))["images"] is None


def test_a_row_that_nothing_can_write_becomes_one_without_a_score() -> None:
    circular: dict[str, Any] = {"references": ["a"], "prediction": "b"}
    circular["question"] = [circular]
    for row in (circular, object(), {"references": object(), "prediction": "b"}):
        assert sent(decode_row(encode_row(row, READ_NAMES))) is ItemProblem


_HEADER = StepHeader(12, "validation", 1.5, {"exact_match": "exact_match"}, "set@1")
_ROWS_STEP_FILE = [b'{"prediction": "a"}\n', b'{"prediction": "b"}\n']


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("step") / "a.jsonl"
    write_step(path, _HEADER, _ROWS_STEP_FILE, 10**6)
    return path.read_bytes()


def read(content: bytes) -> tuple[StepHeader, list[Any]]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "a.jsonl"
        path.write_bytes(content)
        return read_step(path)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert write_step(path, _HEADER, iter(_ROWS_STEP_FILE), 10**6) == (2, path.stat().st_size)
    assert read_step(path) == (_HEADER, [{"prediction": "a"}, {"prediction": "b"}])
    assert read_outline(path) == (_HEADER, 2)
    assert list(tmp_path.iterdir()) == [path]


@given(st.data())
def test_every_cut_and_every_changed_byte_is_found(whole: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(DamagedStepError):
        read(whole[:place])
    rows_begin, rows_end = whole.index(b"\n") + 1, whole.rindex(b'{"rows"')
    place = data.draw(st.integers(rows_begin, rows_end - 1))
    other = data.draw(st.integers(1, 255))
    with pytest.raises(DamagedStepError):
        read(whole[:place] + bytes([whole[place] ^ other]) + whole[place + 1 :])


@given(st.binary(max_size=300))
def test_any_other_file_is_damaged(content: bytes) -> None:
    with pytest.raises(DamagedStepError):
        read(content)
    with TemporaryDirectory() as directory:
        path = Path(directory) / "a.jsonl"
        path.write_bytes(content)
        with pytest.raises(DamagedStepError):
            read_outline(path)


@pytest.mark.parametrize(
    ("name", "value"), [("step", "1"), ("name", 3), ("metrics", ["smile"]), ("metrics", {"a": 1}), ("more", 1)]
)
def test_headers_of_other_types_are_damage(whole: bytes, name: str, value: Any) -> None:
    first, rest = whole.split(b"\n", 1)

    header = json.dumps({**json.loads(first), name: value}).encode()
    with pytest.raises(DamagedStepError, match="first line"):
        read(header + b"\n" + rest)


def test_a_step_that_is_too_large_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(TooLargeStepError, match="300 bytes"):
        write_step(tmp_path / "a.jsonl", _HEADER, iter(lambda: _ROWS_STEP_FILE[0], None), 300)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_raise_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write_step(tmp_path / "a.jsonl", _HEADER, (b"%d\n" % (1 // divisor) for divisor in (1, 0)), 10**6)
    assert list(tmp_path.iterdir()) == []
