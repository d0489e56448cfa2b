"""Messages between the server and a judge's worker. They hold token ids only: texts stay in the server.

A worker knows *states*, each the keys and values of some tokens, under numbers that the server gives. One run computes
further tokens of several states together, all of them behind the same prefix (another state, or none). A prompt's fixed
turns become a state once and are the prefix of every item; a long item, or an answer that is being written, is a state
that grows run by run.
"""

from dataclasses import dataclass
from typing import Any

from gradewire_models.judges import Form


@dataclass(frozen=True, slots=True)
class OpenModel:
    """First message to a worker.

    Attributes:
        form: Which core computes.
        path: model.onnx (int8) or the GGUF file.
        threads: Of the core.
        context_tokens: Longest sequence, prefix included.
        max_states: How many states there may be at a time.
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
    """What a core asks of those who plan its runs; the worker's answer to OpenModel.

    Attributes:
        max_row_tokens: Longest row. Longer texts are cut into rows at multiples of it, always at the same places, so
            that an answer does not depend on what else was computed.
        max_rows: Of one run.
        max_growing: States that grow over several runs, prefixes left out. With 1, nothing else may be computed between
            two runs of such a state.
        max_prefixes: Whose state it keeps at a time. What is computed behind none takes the place of
            one while it lasts.
    """

    max_row_tokens: int
    max_rows: int
    max_growing: int
    max_prefixes: int


@dataclass(frozen=True, slots=True)
class Row:
    """Further tokens of one state.

    Attributes:
        state: Its number; a new one begins behind the prefix.
        ids: Token ids, at least one.
        labels: Token ids whose probabilities as the next token are wanted; empty for none.
        next_token: Whether the most probable next token is wanted.
        keep: Whether the state stays, for further rows or as a prefix.
    """

    state: int
    ids: tuple[int, ...]
    labels: tuple[int, ...] = ()
    next_token: bool = False
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What is computed at once.

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
        """How many it computes."""
        return sum(len(row.ids) for row in self.rows)

    def to_message(self) -> dict[str, Any]:
        """For a frame."""
        rows = [[row.state, row.ids, row.labels, row.next_token, row.keep] for row in self.rows]
        return {"prefix": self.prefix, "rows": rows, "drop": self.drop}


@dataclass(frozen=True, slots=True)
class RowResult:
    """What a row asked for.

    Attributes:
        probabilities: Of the labels among themselves, sum 1; empty where none were asked for.
        mass: Share of the labels in all next tokens; None where the core cannot tell.
        next_token: Token id; -1 where it was not asked for.
    """

    probabilities: tuple[float, ...] = ()
    mass: float | None = None
    next_token: int = -1


def read_run(message: dict[str, Any]) -> Run:
    """The run of a message made by `Run.to_message`."""
    rows = (
        Row(state, tuple(ids), tuple(labels), next_token=next_token, keep=keep)
        for state, ids, labels, next_token, keep in message["rows"]
    )
    return Run(message["prefix"], tuple(rows), tuple(message["drop"]))


def results_message(results: list[RowResult]) -> dict[str, Any]:
    """A worker's answer to a run."""
    return {"results": [[result.probabilities, result.mass, result.next_token] for result in results]}


def read_results(message: dict[str, Any]) -> list[RowResult]:
    """The results of a message made by `results_message`."""
    return [RowResult(tuple(probabilities), mass, token) for probabilities, mass, token in message["results"]]
