"""Messages between the server and a judge's worker, as lines of JSON with token IDs, but without texts."""

import json
from dataclasses import dataclass
from typing import Any, Final

from gradewire_models.judges.catalog import Form
from gradewire_models.judges.cores.rows import Row, RowResult, Run

MAX_FRAME_BYTES: Final = 4 << 20
"""The maximum size of a message. Real messages are at least a hundred times smaller."""


class FrameError(Exception):
    """Raised when received or outgoing bytes are not a valid frame."""


def to_frame(message: dict[str, Any]) -> bytes:
    """Return a message's frame, which preserves floats exactly.

    Raises:
        FrameError: The frame is longer than MAX_FRAME_BYTES, or contains NaN or infinity.
    """
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise FrameError(f"a message cannot be written: {error}") from error
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"a message has {len(body)} bytes, but at most {MAX_FRAME_BYTES} are allowed")
    return body + b"\n"


class FrameReader:
    """A reader that splits a byte stream into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Add bytes and return the messages that are now complete.

        Raises:
            FrameError: A frame is longer than MAX_FRAME_BYTES, or is not a JSON object.
        """
        *frames, self._rest = (self._rest + data).split(b"\n")
        if any(len(frame) > MAX_FRAME_BYTES for frame in (*frames, self._rest)):
            raise FrameError(f"a frame is longer than {MAX_FRAME_BYTES} bytes")
        try:
            messages = list(map(json.loads, frames))
        except ValueError as error:
            raise FrameError(f"a frame is not JSON: {error}") from error
        if not all(isinstance(message, dict) for message in messages):
            raise FrameError("a frame is not a JSON object")
        return messages


@dataclass(frozen=True, slots=True)
class OpenModel:
    """The first message to a worker.

    Attributes:
        path: model.onnx or the GGUF file.
        device: "cpu", "cuda" or "cuda:N".
        context_tokens: Maximum length of a sequence, including the prefix.
        nice: Increment of the worker's nice level, 0 to 19.
    """

    form: Form
    path: str
    threads: int
    context_tokens: int
    max_states: int
    nice: int
    device: str = "cpu"


def read_run(message: dict[str, Any]) -> Run:
    """Return the run in a message."""
    rows = (Row(state, tuple(ids), tuple(labels), *wanted) for state, ids, labels, *wanted in message["rows"])
    return Run(message["prefix"], tuple(rows), tuple(message["drop"]))


def read_results(message: dict[str, Any]) -> list[RowResult]:
    """Return the results in a message."""
    return [RowResult(tuple(probabilities), mass, token) for probabilities, mass, token in message["results"]]
