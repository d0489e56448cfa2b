"""Messages between the server and a judge's worker. Each is a line of JSON, with token IDs but no texts."""

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from gradewire_models.judges.catalog import Form

MAX_FRAME_BYTES: Final = 4 << 20
"""Maximum size of a message. The largest real message, a run with a few thousand token IDs, is a hundred times
smaller.
"""


class FrameError(Exception):
    """Raised when received or outgoing bytes are not a valid frame."""


def to_frame(message: dict[str, Any]) -> bytes:
    """Return one message's frame.

    Floats survive exactly, because JSON writes enough digits to parse the same number again.

    Raises:
        FrameError: The frame is longer than MAX_FRAME_BYTES, or contains NaN or infinity.
    """
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise FrameError(f"a message cannot be written: {error}") from error
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"a message has {len(body)} bytes; at most {MAX_FRAME_BYTES} are allowed")
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
            raise FrameError(f"a frame is too long; at most {MAX_FRAME_BYTES} bytes are allowed")
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
    """The limits of a core's runs, for planning. The worker sends them in reply to OpenModel.

    Attributes:
        max_row_tokens: Maximum length of a row. Longer texts are split into rows at multiples of this length, so an
            answer does not depend on other work in the run.
        max_growing: Maximum number of states that grow over several runs, not counting prefixes. If this is 1, nothing
            else may be computed between two runs of a growing state.
        max_prefixes: Maximum number of prefix states at a time. Unfinished rows without a prefix together count as one
            prefix state.
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
        labels: IDs of the tokens whose next-token probabilities to return; may be empty.
    """

    state: int
    ids: tuple[int, ...]
    labels: tuple[int, ...] = ()
    next_token: bool = False
    keep: bool = False


class Run(NamedTuple):
    """The rows of one computation.

    Attributes:
        prefix: ID of the state that precedes all rows; None if there is no prefix.
        rows: At least one row. Each has a different state.
        drop: IDs of states to drop before the run.
    """

    prefix: int | None
    rows: tuple[Row, ...]
    drop: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """Number of tokens that the run computes."""
        return sum(len(row.ids) for row in self.rows)


class RowResult(NamedTuple):
    """The result of a row.

    Attributes:
        probabilities: Relative probabilities of the labels, with a sum of 1; empty if the row has no labels.
        mass: Total probability of the labels among all next tokens; None if the core does not know it.
        next_token: Token id; -1 if not requested.
    """

    probabilities: tuple[float, ...] = ()
    mass: float | None = None
    next_token: int = -1


def read_run(message: dict[str, Any]) -> Run:
    """Return the run in a message. Convert lists back to named tuples, because JSON has no tuples."""
    rows = (Row(state, tuple(ids), tuple(labels), *wanted) for state, ids, labels, *wanted in message["rows"])
    return Run(message["prefix"], tuple(rows), tuple(message["drop"]))


def read_results(message: dict[str, Any]) -> list[RowResult]:
    """Return the `results` of a message, one per row of a run."""
    return [RowResult(tuple(probabilities), mass, token) for probabilities, mass, token in message["results"]]


class CoreError(Exception):
    """Raised when the model cannot be opened or does not return a valid answer."""


class Core(Protocol):
    """A language model with states; see `messages`. Use it on one thread.

    A row's result depends only on the tokens of its state and its prefix, and on how both were split into rows. Other
    rows, other states and earlier runs do not change a single bit of the result.
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
