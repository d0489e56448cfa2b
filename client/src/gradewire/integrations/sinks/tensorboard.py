"""Scores of steps in TensorBoard."""

import os

from gradewire.errors import MissingExtra
from gradewire.integrations.validation.step_scores import StepScores


class TensorBoardSink:
    """Writes an event file of its own into a log directory; the description of each curve is its metric line.

    Args:
        log_directory: As other writers of the run have it, or any other below TensorBoard's --logdir.

    Raises:
        MissingExtra: TensorBoard is not installed.
    """

    def __init__(self, log_directory: str | os.PathLike[str]) -> None:
        try:
            from tensorboard.summary import Writer  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingExtra(
                f"TensorBoardSink needs tensorboard ({error}): pip install 'gradewire[tensorboard]'"
            ) from error
        self._writer = Writer(os.fspath(log_directory))

    def write(self, scores: StepScores) -> None:
        """Adds the scalars of `StepScores.scalars` under their step."""
        for tag, value in scores.scalars().items():
            label = tag.removeprefix(f"{scores.name}/").rpartition("/")[0]
            self._writer.add_scalar(tag, value, scores.step, description=scores.metrics[label].line)
        self._writer.flush()

    def close(self) -> None:
        """Closes the event file."""
        self._writer.close()
