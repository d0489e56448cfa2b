"""Messages between the server and a judge's worker: a line of JSON each, with token ids but no texts."""

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from gradewire_models.judges.catalog import Form

MAX_FRAME_BYTES: Final = 4 << 20
"""The longest message, a run of some thousand token ids, takes a hundredth of this."""


class FrameError(Exception):
    """Received or outgoing bytes are not a valid frame."""


def to_frame(message: dict[str, Any]) -> bytes:
    """Return the frame of one message.

    Floats survive exactly, because JSON carries the shortest digits that read back as the same number.

    Raises:
        FrameError: It is longer than MAX_FRAME_BYTES, or holds NaN or infinity.
    """
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise FrameError(f"a message cannot be written: {error}") from error
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"a message has {len(body)} bytes; at most {MAX_FRAME_BYTES} are allowed")
    return body + b"\n"


class FrameReader:
    """A splitter of a stream of bytes into messages."""

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
        context_tokens: Longest sequence, including the prefix.
        nice: Added to the worker's nice level, 0 to 19.
    """

    form: Form
    path: str
    threads: int
    context_tokens: int
    max_states: int
    nice: int


@dataclass(frozen=True, slots=True)
class CoreLimits:
    """The limits of a core's runs, for planning; the worker's answer to OpenModel.

    Attributes:
        max_row_tokens: Longest row. Longer texts are split into rows at multiples of it, always at the same positions,
            so that an answer does not depend on other work in the run.
        max_growing: Most states that grow over several runs, without prefixes. With 1, nothing else may be computed
            between two runs of such a state.
        max_prefixes: Most prefix states at a time. Rows without a prefix occupy one of these places while they last.
    """

    max_row_tokens: int
    max_rows: int
    max_growing: int
    max_prefixes: int


class Row(NamedTuple):
    """The next tokens of one state.

    Attributes:
        state: Number of the state; a new one begins after the prefix.
        ids: Token ids, at least one.
        labels: Token ids whose probabilities as the next token are wanted; may be empty.
    """

    state: int
    ids: tuple[int, ...]
    labels: tuple[int, ...] = ()
    next_token: bool = False
    keep: bool = False


class Run(NamedTuple):
    """The rows of one computation.

    Attributes:
        prefix: State before all rows; None without one.
        rows: At least one; no two of the same state.
        drop: States that are not needed any more; they are dropped before the run.
    """

    prefix: int | None
    rows: tuple[Row, ...]
    drop: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens that it computes."""
        return sum(len(row.ids) for row in self.rows)


class RowResult(NamedTuple):
    """The answer to a row.

    Attributes:
        probabilities: Relative probabilities of the labels, sum 1; empty if none were requested.
        mass: Share of the labels in all next tokens; None if the core does not know it.
        next_token: Token id; -1 if not requested.
    """

    probabilities: tuple[float, ...] = ()
    mass: float | None = None
    next_token: int = -1


def read_run(message: dict[str, Any]) -> Run:
    """Return the run of a message with the same fields; JSON turns named tuples into lists."""
    rows = (Row(state, tuple(ids), tuple(labels), *wanted) for state, ids, labels, *wanted in message["rows"])
    return Run(message["prefix"], tuple(rows), tuple(message["drop"]))


def read_results(message: dict[str, Any]) -> list[RowResult]:
    """Return the `results` of a message, one per row of a run."""
    return [RowResult(tuple(probabilities), mass, token) for probabilities, mass, token in message["results"]]


class CoreError(Exception):
    """The model cannot be opened, or gave no valid answer."""


class Core(Protocol):
    """A language model with states; see `messages`. Use it on one thread.

    The answer to a row depends only on the tokens of its state and its prefix, and on how both were split into rows,
    bit for bit. It does not depend on other rows, other states or earlier runs.
    """

    @property
    def limits(self) -> CoreLimits:
        """The limits that runs must respect."""

    def run(self, run: Run) -> list[RowResult]:
        """Compute a run; one result per row.

        Raises:
            CoreError: The model gave invalid numbers.
            KeyError: A state does not exist.
        """
