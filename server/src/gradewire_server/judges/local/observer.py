"""What the embedded judge tells about its work: counters hang on it, nothing else."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """One run of the model.

    Attributes:
        sequences: How many prompts and texts were computed together.
        prefill_tokens: Of prompts, computed in this run.
        decode_tokens: Written by the judge in this run.
        reused_tokens: Of fixed turns whose state was kept, once for every item that began in this run.
        duration_s: Wall time.
        waiting: Items that wait for their first run, after it.
    """

    sequences: int
    prefill_tokens: int
    decode_tokens: int
    reused_tokens: int
    duration_s: float
    waiting: int


class JudgeObserver(Protocol):
    """Told of everything on the event loop; must not raise and not wait."""

    def ran(self, run: JudgeRun) -> None:
        """A run is done."""

    def restarted(self) -> None:
        """A worker was lost and is started again."""
