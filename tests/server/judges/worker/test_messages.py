import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.judges.worker.messages import MAX_FRAME_BYTES, FrameError, FrameReader, to_frame

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
_messages = st.lists(st.dictionaries(st.text(), _values, max_size=4), max_size=4)


@given(_messages, st.lists(st.integers(1, 30), min_size=1, max_size=20))
def test_messages_survive_whatever_pieces_they_come_in(messages: list[dict[str, Any]], cuts: list[int]) -> None:
    stream = b"".join(map(to_frame, messages))
    reader = FrameReader()
    found: list[dict[str, Any]] = []
    at = turn = 0
    while at < len(stream):
        piece = cuts[turn % len(cuts)]
        found += reader.feed(stream[at : at + piece])
        at, turn = at + piece, turn + 1
    assert found == messages


@given(st.lists(st.floats(0.0, 1.0), max_size=20))
def test_probabilities_survive_to_the_last_bit(values: list[float]) -> None:
    (message,) = FrameReader().feed(to_frame({"values": values}))
    assert struct.pack(f"{len(values)}d", *message["values"]) == struct.pack(f"{len(values)}d", *values)


def test_a_frame_beyond_the_limit_is_refused_before_its_end_comes() -> None:
    with pytest.raises(FrameError, match="is longer than"):
        FrameReader().feed(b" " * (MAX_FRAME_BYTES + 1))


@pytest.mark.parametrize("body", [b"", b"not json", b"[1]", b'"text"', b"\xff\xfe"])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(body + b"\n")


def test_nothing_longer_than_the_limit_is_sent() -> None:
    with pytest.raises(FrameError, match="at most"):
        to_frame({"text": "x" * MAX_FRAME_BYTES})


def test_nan_never_leaves() -> None:
    with pytest.raises(FrameError):
        to_frame({"mass": float("nan")})


def test_a_frame_is_a_line_of_json() -> None:
    assert to_frame({"a": [1, "\n"]}) == b'{"a":[1,"\\n"]}\n'
