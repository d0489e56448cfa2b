"""Run a training command: read inputs, train, show progress and write results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import torch
from rich.console import Console

from gradewire_models.build.progress import ConsoleProgress
from gradewire_models.export.folder import Pooling
from gradewire_train import TrainingError
from gradewire_train.encoder import TrainedEncoder, load_base
from gradewire_train.recipes import GraderRecipe, Optimisation, Recipe, read_recipe, with_settings
from gradewire_train.run.checkpoint import begin_in
from gradewire_train.run.staged import staged
from gradewire_train.run.steps import Course, Outcome, StepReport, TrainingConsole, first_interrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Course):
    """The options of all training commands; `settings` contains the recipe settings from options.

    `device` is not in the recipe, because it changes only the rounding and the time.
    """

    recipe_path: Path | None
    wordnet: Path | None
    wheels: Path | None
    settings: Mapping[str, Any]
    evaluate_every: int = 0
    device: Literal["cpu", "cuda"] = "cpu"

    @property
    def device_option(self) -> str:
        """The option for the model card's command, with a blank before it; "" for the default."""
        return "" if self.device == "cpu" else f" --device {self.device}"


class Work(Protocol):
    """A training run with all of its data in memory."""

    def train(self, course: Course, report: Callable[[StepReport], None], stop: Callable[[], bool]) -> Outcome:
        """Train; see `gradewire_train.run.loop.train`."""

    def save(self, directory: Path, outcome: Outcome) -> None:
        """Write the trained weights, the card and the command's other files."""

    def summary(self, outcome: Outcome) -> str:
        """Return a summary for the user."""


K = TypeVar("K", Recipe, GraderRecipe)
R = TypeVar("R", bound=Request)


def run_training(request: R, kind: type[K], prepare: Callable[[R, K, Console], Work]) -> bool:
    """Train, and write the result to the directory; return False after an interrupt, which leaves a checkpoint.

    `prepare` reads all inputs before training starts.

    Raises:
        ModelError: An input cannot be read, downloaded or used.
        OSError: The directory is not writable.
    """
    console = Console(stderr=True, highlight=False)
    recipe = read_recipe(request.recipe_path, kind) if request.recipe_path else kind()
    recipe = with_settings(recipe, dict(request.settings))
    checkpoint = begin_in(request.directory, resume=request.resume)
    work = prepare(request, recipe, console)
    with TrainingConsole(console, recipe.training.steps) as shown, first_interrupt(shown.stopping) as stop:
        outcome = work.train(request, shown.report, stop)
    if not outcome.finished:
        console.print(f"stopped. Continue with the same command and --resume (checkpoint in {request.directory})")
        return False
    with staged(request.directory) as fresh:
        work.save(fresh, outcome)
    checkpoint.unlink()
    console.print(f"{work.summary(outcome)}, {outcome.seconds:.0f} s: {request.directory}")
    return True


def base_encoder(
    request: Request, training: Optimisation, max_tokens: int, console: Console, *, pooling: Pooling | None = None
) -> TrainedEncoder:
    """Load the model that training starts from onto the device, and show the download's progress.

    `pooling` overrides the base's own.

    Raises:
        TrainingError: The device is not available or lacks the precision; for other errors, see `load_base`.
    """
    if request.device == "cuda":
        _check_gpu(training)
    base = training.base
    with ConsoleProgress(console, base) as progress:
        encoder = load_base(base, max_tokens=max_tokens, pooling=pooling, wheels=request.wheels, report=progress.report)
    encoder.model.to(request.device)
    return encoder


def _check_gpu(training: Optimisation) -> None:
    if not torch.cuda.is_available():
        raise TrainingError("--device cuda: torch finds no GPU. Install a torch with CUDA, or leave out --device")
    # Older GPUs only emulate bfloat16, more slowly than float32.
    if training.precision == "bfloat16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise TrainingError(
            f"precision: {torch.cuda.get_device_name()} does not compute in bfloat16. Use --precision float32"
        )
