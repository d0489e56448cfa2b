"""A training as it stands after a step, so that it goes on as if it had never been stopped."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from gradewire_train import TrainingError
from gradewire_train.run.staged import remove_unfinished

CHECKPOINT_FILE = "checkpoint.pt"
_FORMAT = 2


@dataclass(slots=True)
class Checkpoint:
    """The state of a training after a step.

    Order of examples and dropout are functions of seed and step, so no generator's state is kept. Only a training with
    the same `identity` may go on from here. `best_step` is the one that the selection ranks highest so far, 0 before
    the first evaluation. `curve` has one row a step: step, loss and its terms, and the selection's figures where it was
    evaluated.
    """

    identity: str
    step: int = 0
    weights: Mapping[str, Any] = field(default_factory=dict)
    optimizer: Mapping[str, Any] = field(default_factory=dict)
    best_step: int = 0
    best: Mapping[str, Any] = field(default_factory=dict)
    curve: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0


def begin_in(directory: Path, *, resume: bool) -> Path:
    """Make a training's directory and return the path of its checkpoint.

    Raises:
        TrainingError: One was interrupted there, and is not to be resumed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    remove_unfinished(directory)
    checkpoint = directory / CHECKPOINT_FILE
    if checkpoint.exists() and not resume:
        raise TrainingError(f"{checkpoint} is an interrupted training: --resume goes on; delete it to start again")
    return checkpoint


def save_checkpoint(checkpoint: Checkpoint, directory: Path) -> None:
    """Write it whole or not at all, and replace the one before; raises OSError."""
    path = directory / CHECKPOINT_FILE
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as file:
        torch.save({"format": _FORMAT, **asdict(checkpoint)}, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def load_checkpoint(directory: Path, identity: str) -> Checkpoint:
    """Read the checkpoint of a training.

    Only tensors and plain values are read: a checkpoint cannot bring code.

    Raises:
        TrainingError: There is none, it is broken, or its identity is another.
    """
    path = directory / CHECKPOINT_FILE
    if not path.is_file():
        raise TrainingError(f"--resume: {path} is not there; start without --resume")
    try:
        found = torch.load(path, weights_only=True)
        written_as = found.pop("format")
        checkpoint = Checkpoint(**found)
    # torch raises whatever its reader meets in a broken file.
    except Exception as error:
        raise TrainingError(f"--resume: {path} cannot be read ({error}); start again without --resume") from error
    if written_as != _FORMAT:
        raise TrainingError(f"--resume: {path} was written by another version; start again without --resume")
    if checkpoint.identity != identity:
        raise TrainingError(
            f"--resume: {path} belongs to another training (recipe, base, texts or dev rows differ); give what it was "
            "started with, or another --out"
        )
    return checkpoint
