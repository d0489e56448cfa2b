"""Messages between the server and a judge's worker, a line of JSON each; token ids only, never texts."""

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from gradewire_models.judges.catalog import Form

MAX_FRAME_BYTES: Final = 4 << 20
"""The longest message, a run of some thousand token ids, takes a hundredth of this."""


class FrameError(Exception):
    """Bytes that were received, or are to be sent, are not a valid frame."""


def to_frame(message: dict[str, Any]) -> bytes:
    """Return one message, ready to be sent.

    Floats survive exactly: JSON carries the shortest digits that read back as the same number.

    Raises:
        FrameError: It is longer than MAX_FRAME_BYTES, or holds NaN or infinity.
    """
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise FrameError(f"a message cannot be written: {error}") from error
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"a message of {len(body)} bytes; at most {MAX_FRAME_BYTES} are allowed")
    return body + b"\n"


class FrameReader:
    """A cutter of a stream of bytes into messages, however it arrives."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Take bytes; return the messages that are whole by now.

        Raises:
            FrameError: A frame is longer than MAX_FRAME_BYTES, or is not a JSON object.
        """
        *frames, self._rest = (self._rest + data).split(b"\n")
        if any(len(frame) > MAX_FRAME_BYTES for frame in (*frames, self._rest)):
            raise FrameError(f"a frame is too long; at most {MAX_FRAME_BYTES} bytes are allowed")
        try:
            messages = list(map(json.loads, frames))
        except ValueError as error:
            raise FrameError(f"a frame that is not JSON: {error}") from error
        if not all(isinstance(message, dict) for message in messages):
            raise FrameError("a frame that is not a JSON object")
        return messages


@dataclass(frozen=True, slots=True)
class OpenModel:
    """First message to a worker.

    Attributes:
        path: model.onnx (int8) or the GGUF file.
        context_tokens: Longest sequence, prefix included.
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
    """The limits of a core's runs, for those who plan them; the worker's answer to OpenModel.

    Attributes:
        max_row_tokens: Longest row. Longer texts are cut into rows at multiples of it, always at the same places, so
            that an answer does not depend on what else was computed.
        max_growing: States that grow over several runs, prefixes left out. With 1, nothing else may be computed between
            two runs of such a state.
        max_prefixes: Whose state it keeps at a time. What is computed behind none takes the place of
            one while it lasts.
    """

    max_row_tokens: int
    max_rows: int
    max_growing: int
    max_prefixes: int


class Row(NamedTuple):
    """Further tokens of one state.

    Attributes:
        state: Its number; a new one begins behind the prefix.
        ids: Token ids, at least one.
        labels: Token ids whose probabilities as the next token are wanted; empty for none.
    """

    state: int
    ids: tuple[int, ...]
    labels: tuple[int, ...] = ()
    next_token: bool = False
    keep: bool = False


class Run(NamedTuple):
    """The rows that are computed at once.

    Attributes:
        prefix: State that all rows stand behind; None for none.
        rows: At least one; no two of the same state.
        drop: States that are not needed any more, forgotten before the run.
    """

    prefix: int | None
    rows: tuple[Row, ...]
    drop: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """The number of tokens that it computes."""
        return sum(len(row.ids) for row in self.rows)


class RowResult(NamedTuple):
    """The answer to a row.

    Attributes:
        probabilities: Of the labels among themselves, sum 1; empty where none were asked for.
        mass: Share of the labels in all next tokens; None where the core cannot tell.
        next_token: Token id; -1 where it was not asked for.
    """

    probabilities: tuple[float, ...] = ()
    mass: float | None = None
    next_token: int = -1


def read_run(message: dict[str, Any]) -> Run:
    """Return the run of a message with the fields of one: named tuples become lists in JSON."""
    rows = (Row(state, tuple(ids), tuple(labels), *wanted) for state, ids, labels, *wanted in message["rows"])
    return Run(message["prefix"], tuple(rows), tuple(message["drop"]))


def read_results(message: dict[str, Any]) -> list[RowResult]:
    """Return the `results` of a message, one per row of a run."""
    return [RowResult(tuple(probabilities), mass, token) for probabilities, mass, token in message["results"]]


class CoreError(Exception):
    """The model cannot be opened, or gave no valid answer."""


class Core(Protocol):
    """A language model with states; see `messages`. Used by one thread.

    What a row answers depends on its state's tokens, on the prefix and on how both were cut into rows; not on other
    rows of the run, nor on other states, nor on what was computed before: bit for bit.
    """

    @property
    def limits(self) -> CoreLimits:
        """The limits that runs have to respect."""

    def run(self, run: Run) -> list[RowResult]:
        """Compute a run; one result per row.

        Raises:
            CoreError: The model gave no numbers.
            KeyError: A state is not there.
        """
