"""Where scores of steps are written to."""

from typing import Protocol

from gradewire.integrations.validation.step_scores import StepScores


class Sink(Protocol):
    """Takes the scores of each step, also late and out of order; called on one thread, and its errors are logged."""

    def write(self, scores: StepScores) -> None:
        """Writes the scores of one step under that step."""

    def close(self) -> None:
        """Writes out what is left; called once, by `ValidationScorer.close`."""
