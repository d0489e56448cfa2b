"""Files of steps are whole or known to be damaged."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.integrations.validation.step_file import (
    DamagedStepError,
    StepHeader,
    TooLargeStepError,
    read_outline,
    read_step,
    write_step,
)

_HEADER = StepHeader(12, "validation", 1.5, {"exact_match": "exact_match"}, "set@1")
_ROWS = [b'{"prediction": "a"}\n', b'{"prediction": "b"}\n']


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("step") / "a.jsonl"
    write_step(path, _HEADER, _ROWS, 10**6)
    return path.read_bytes()


def read(content: bytes) -> tuple[StepHeader, list[Any]]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "a.jsonl"
        path.write_bytes(content)
        return read_step(path)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert write_step(path, _HEADER, iter(_ROWS), 10**6) == (2, path.stat().st_size)
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
        write_step(tmp_path / "a.jsonl", _HEADER, iter(lambda: _ROWS[0], None), 300)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_raise_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write_step(tmp_path / "a.jsonl", _HEADER, (b"%d\n" % (1 // divisor) for divisor in (1, 0)), 10**6)
    assert list(tmp_path.iterdir()) == []
