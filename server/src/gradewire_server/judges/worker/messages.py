"""Messages between the server and a judge's worker, as lines of JSON with token IDs, but without texts."""

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from gradewire_models.judges.catalog import Form

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
        path: model.onnx (int8) or the GGUF file.
        context_tokens: Maximum length of a sequence, including the prefix.
        nice: Increment of the worker's nice level, 0 to 19.
    """

    form: Form
    path: str
    threads: int
    context_tokens: int
    max_states: int
    nice: int


@dataclass(frozen=True, slots=True)
class CoreLimits:
    """The limits of a core's runs, which the worker sends in reply to OpenModel.

    Attributes:
        max_row_tokens: Maximum length of a row. Longer texts are split into rows at multiples of this length.
        max_growing: Maximum number of states that grow over several runs, not counting prefixes. 1 means that no other
            state may be computed between two runs of a growing state.
        max_prefixes: Maximum number of prefix states. All unfinished rows without a prefix count as one prefix state.
    """

    max_row_tokens: int
    max_rows: int
    max_growing: int
    max_prefixes: int


class Row(NamedTuple):
    """The next tokens of one state.

    Attributes:
        state: ID of the state. A new state starts after the prefix.
        ids: Token IDs, at least one.
        labels: IDs of the tokens for which to return next-token probabilities. Possibly empty.
    """

    state: int
    ids: tuple[int, ...]
    labels: tuple[int, ...] = ()
    next_token: bool = False
    keep: bool = False


class Run(NamedTuple):
    """The rows of one computation.

    Attributes:
        prefix: ID of the state that precedes all rows, or None if there is no prefix.
        rows: At least one row, each with a different state.
        drop: IDs of states to drop before the run.
    """

    prefix: int | None
    rows: tuple[Row, ...]
    drop: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """The number of tokens that the run computes."""
        return sum(len(row.ids) for row in self.rows)


class RowResult(NamedTuple):
    """The result of a row.

    Attributes:
        probabilities: The labels' relative probabilities, with a sum of 1. A row without labels has no probabilities.
        mass: The labels' total probability among all next tokens, or None if unknown.
        next_token: Token ID, or -1 if not requested.
    """

    probabilities: tuple[float, ...] = ()
    mass: float | None = None
    next_token: int = -1


def read_run(message: dict[str, Any]) -> Run:
    """Return the run in a message."""
    rows = (Row(state, tuple(ids), tuple(labels), *wanted) for state, ids, labels, *wanted in message["rows"])
    return Run(message["prefix"], tuple(rows), tuple(message["drop"]))


def read_results(message: dict[str, Any]) -> list[RowResult]:
    """Return the results in a message."""
    return [RowResult(tuple(probabilities), mass, token) for probabilities, mass, token in message["results"]]


class CoreError(Exception):
    """Raised when the model cannot be opened or does not return a valid answer."""


class Core(Protocol):
    """A language model with states. For one thread only.

    A row's result depends only on the tokens of the row's state and prefix, and on how these tokens were split into
    rows. Other rows, other states and earlier runs do not change the result.
    """

    @property
    def limits(self) -> CoreLimits:
        """The limits that runs must respect."""

    def run(self, run: Run) -> list[RowResult]:
        """Compute a run and return one result per row.

        Raises:
            CoreError: The model returned invalid numbers.
            KeyError: A state does not exist.
        """
