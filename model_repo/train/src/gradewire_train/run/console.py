"""Shows a training's progress: a live line on a terminal, one line every 20 steps anywhere else."""

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gradewire_train.run.steps import StepReport
from gradewire_train.selection import MEAN

_PLAIN_EVERY = 20


class TrainingConsole:
    """Context in which `report` shows a training on `console`."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._dev = ""
        if console.is_terminal:
            self._bar = Progress(
                BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), console=console, transient=True
            )
            self._bar.add_task("", total=steps)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def stopping(self) -> None:
        """Says that the first Ctrl-C was heard."""
        self._console.print("stopping after this step; Ctrl-C again stops at once, without a checkpoint of it")

    def report(self, step: StepReport) -> None:
        """Shows one step."""
        evaluated = MEAN in step.figures
        if evaluated:
            self._dev = f", dev Spearman {step.figures[MEAN]:.4f}"
        if not step.step:
            self._console.print(f"base{self._dev}", highlight=False)
            return
        terms = ", ".join(f"{name} {value:.3f}" for name, value in step.figures.items() if not name.startswith(MEAN))
        line = f"{terms}{self._dev}, {step.examples_per_s:.0f} examples/s, {_clock(step.remaining_s)} left"
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=step.step, description=line)
        elif evaluated or step.step % _PLAIN_EVERY == 0 or step.step == step.steps:
            self._console.print(f"step {step.step}/{step.steps}: {line}", highlight=False, markup=False, soft_wrap=True)


def _clock(seconds: float) -> str:
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes}:{left:02d}"
