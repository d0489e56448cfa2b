"""Run optimiser steps, with progress, interruption, checkpoints, and selection of the best step."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

from gradewire_models.build.progress import ConsoleBars
from gradewire_train import TrainingError
from gradewire_train.encoder import device_of, set_weights, trained_weights
from gradewire_train.recipes import Optimisation
from gradewire_train.run.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from gradewire_train.selection import MEAN

_PLAIN_EVERY = 20


@contextmanager
def first_interrupt(notify: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Call `notify` on the first Ctrl-C, which only requests a stop; a second Ctrl-C has its usual effect.

    Yield a function that returns True after a request to stop. Outside the main thread, which alone can handle signals,
    the function always returns False.
    """
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return

    def request(_number: int, _frame: FrameType | None) -> None:
        requested.set()
        signal.signal(signal.SIGINT, before)
        notify()

    # None means that the old handler was not installed from Python and cannot be restored.
    before = signal.signal(signal.SIGINT, request) or signal.SIG_DFL
    try:
        yield requested.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True, slots=True)
class StepReport:
    """The progress after a step; step 0 is the base before training.

    Attributes:
        figures: The loss and its terms. After an evaluation, also the result of `Task.evaluate`.
        remaining_s: Estimated remaining seconds; NaN before the first step.
    """

    step: int
    steps: int
    figures: dict[str, float]
    examples_per_s: float
    remaining_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The step whose weights the model now has, and `Checkpoint.curve`. An unfinished run leaves a checkpoint."""

    best_step: int
    curve: list[dict[str, float]]
    seconds: float
    finished: bool


class Task(Protocol):
    """A model to train, and its loss."""

    @property
    def model(self) -> Any:
        """The module; training changes the weights that have gradients."""

    def rates(self) -> Sequence[tuple[float, Sequence[Any]]]:
        """Return groups of weights, each with the factor for its learning rate."""

    def terms(self, step: int) -> Mapping[str, Any]:
        """Return the loss's terms in a step, counted from 0, as float32 scalars by name."""

    def evaluate(self) -> dict[str, float]:
        """Return evaluation results by name. `MEAN` selects the best step; without results, the last step is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A run's existing directory, and the numbers of steps between evaluations (0: never) and between checkpoints."""

    directory: Path
    evaluate_every: int = 100
    checkpoint_every: int = 100
    resume: bool = False


def deterministic(settings: Optimisation) -> None:
    """Make all further computation in torch deterministic, with the recipe's number of threads.

    On a GPU, the same card and versions give the same weights; other cards round differently.
    """
    # Without this setting, cuBLAS may sum in a different order in every run. It is read at the first product.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(True)  # noqa: FBT003 - torch's own signature
    # Our code writes all memory before reading it; filling the memory first would take a fifth of the time.
    torch.utils.deterministic.fill_uninitialized_memory = False


def products(settings: Optimisation, device: Any) -> Any:
    """Return a context in which the device computes matrix products in the recipe's precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bfloat16")


class Steps:
    """A training run that starts from the base, or continues from a checkpoint with the same `identity` and device.

    Raises:
        TrainingError: The checkpoint belongs to another training run.
    """

    def __init__(self, task: Task, settings: Optimisation, identity: str, course: Course) -> None:
        self._task, self._settings, self._course = task, settings, course
        self._weights = [each for each in task.model.parameters() if each.requires_grad]
        self._optimizer = torch.optim.AdamW(
            [{"params": list(weights), "factor": factor} for factor, weights in task.rates()],
            lr=0.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=settings.weight_decay,
        )  # fmt: skip
        # Devices round differently, so a run that changes its device is another run.
        identity = f"{identity} {device_of(task.model).type}"
        # `_save` adds weights and optimiser.
        self._state = Checkpoint(identity)
        if course.resume:
            self._restore(load_checkpoint(course.directory, identity))

    def go(self, report: Callable[[StepReport], None], stop: Callable[[], bool]) -> Outcome:
        """Run the remaining steps; see `gradewire_train.run.loop.train`."""
        settings, state, every = self._settings, self._state, self._course.evaluate_every
        started, first = time.perf_counter() - state.seconds, state.step
        spent = state.seconds
        if state.step == 0 and every:
            figures = self._evaluate()
            state.curve.append({"step": 0.0, **figures})
            report(StepReport(0, settings.steps, figures, 0.0, math.nan))
        while state.step < settings.steps:
            figures = self._one_step()
            state.step += 1
            last = state.step == settings.steps
            if every and (last or state.step % every == 0):
                figures.update(self._evaluate())
            state.seconds = time.perf_counter() - started
            state.curve.append({"step": float(state.step), **figures})
            pace = (state.step - first) / max(state.seconds - spent, 1e-9)
            left_s = (settings.steps - state.step) / pace
            report(StepReport(state.step, settings.steps, figures, pace * settings.batch_size, left_s))
            if not last and stop():
                self._save()
                return Outcome(state.best_step, state.curve, state.seconds, finished=False)
            if not last and state.step % self._course.checkpoint_every == 0:
                self._save()
        self._save()
        if state.best_step and state.best_step != state.step:
            set_weights(self._task.model, state.best)
        return Outcome(state.best_step or state.step, state.curve, state.seconds, finished=True)

    def _one_step(self) -> dict[str, float]:
        settings = self._settings
        # Seed each step, so that dropout in a resumed run is the same.
        torch.manual_seed(settings.seed * 1_000_003 + self._state.step)
        self._task.model.train()
        terms = self._task.terms(self._state.step)
        if not terms:
            raise TrainingError("objective: all terms for these texts have weight 0. Set a weight above 0")
        loss = torch.stack(list(terms.values())).sum()
        figures = {"loss": loss.item(), **{name: term.item() for name, term in terms.items()}}
        if not math.isfinite(figures["loss"]):
            raise TrainingError(f"step {self._state.step + 1}: the loss is {figures['loss']}. Lower learning_rate")
        rate = settings.learning_rate * schedule(self._state.step, settings.steps, settings.warmup)
        for each in self._optimizer.param_groups:
            each["lr"] = rate * each["factor"]
        self._optimizer.zero_grad()
        loss.backward()
        if settings.gradient_norm:
            torch.nn.utils.clip_grad_norm_(self._weights, settings.gradient_norm)
        self._optimizer.step()
        return figures

    def _evaluate(self) -> dict[str, float]:
        found = self._task.evaluate()
        if math.isnan(found[MEAN]):
            raise TrainingError(
                f"step {self._state.step}: the dev rows cannot be ranked, because in every part all labels or all "
                "cosines are equal. Use different rows, or train without --dev"
            )
        known = [row[MEAN] for row in self._state.curve if row.get(MEAN, math.nan) > -1 and row["step"] > 0]
        # Never select the base (step 0), because the user wants trained weights.
        if self._state.step and found[MEAN] > max(known, default=-2.0):
            self._state.best_step, self._state.best = self._state.step, trained_weights(self._task.model)
        return found

    def _save(self) -> None:
        weights, optimizer = trained_weights(self._task.model), self._optimizer.state_dict()
        save_checkpoint(replace(self._state, weights=weights, optimizer=optimizer), self._course.directory)

    def _restore(self, found: Checkpoint) -> None:
        set_weights(self._task.model, found.weights)
        self._optimizer.load_state_dict(found.optimizer)
        self._state = replace(found, weights={}, optimizer={})


def schedule(step: int, steps: int, warmup: float) -> float:
    """Return the factor for the learning rate: a linear rise, then a cosine down to 0. Steps count from 0."""
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / (rising + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(steps - rising, 1)))


class TrainingConsole(ConsoleBars):
    """A context whose method `report` shows the progress of training on `console`."""

    def __init__(self, console: Console, steps: int) -> None:
        super().__init__(console, BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._dev = ""
        if self._bars is not None:
            self._bars.add_task("", total=steps)

    def stopping(self) -> None:
        """Confirm the first Ctrl-C."""
        self._console.print(
            "stopping after this step. Press Ctrl-C again to stop immediately, without a checkpoint for this step"
        )

    def report(self, step: StepReport) -> None:
        """Show the progress after a step."""
        evaluated = MEAN in step.figures
        if evaluated:
            self._dev = f", dev Spearman {step.figures[MEAN]:.4f}"
        if not step.step:
            self._console.print(f"base{self._dev}", highlight=False)
            return
        terms = ", ".join(f"{name} {value:.3f}" for name, value in step.figures.items() if not name.startswith(MEAN))
        line = f"{terms}{self._dev}, {step.examples_per_s:.0f} examples/s, {_clock(step.remaining_s)} left"
        if self._bars is not None:
            self._bars.update(self._bars.task_ids[0], completed=step.step, description=line)
        elif evaluated or step.step % _PLAIN_EVERY == 0 or step.step == step.steps:
            self._console.print(f"step {step.step}/{step.steps}: {line}", highlight=False, markup=False, soft_wrap=True)


def _clock(seconds: float) -> str:
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes}:{left:02d}"
