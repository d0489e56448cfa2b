"""A training as it stands after a step, so that it goes on as if it had never been stopped."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from gradewire_train.errors import TrainingError

CHECKPOINT_FILE = "checkpoint.pt"
_FORMAT = 2


@dataclass(slots=True)
class Checkpoint:
    """What a training is made of besides its recipe and texts.

    What is drawn (order of examples, dropout) is a function of seed and step, so no generator's state is kept.

    Attributes:
        identity: Digest of recipe, base, texts and what selects; only the same training may go on from here.
        step: Steps done.
        weights: What is trained, by name.
        optimizer: As torch gives it.
        best_step: The step whose weights are the best by what selects; 0 where there is none yet.
        best: Its weights.
        curve: One row a report: step, loss and its terms, or the figure that selects.
        seconds: Time spent so far.
    """

    identity: str
    step: int = 0
    weights: Mapping[str, Any] = field(default_factory=dict)
    optimizer: Mapping[str, Any] = field(default_factory=dict)
    best_step: int = 0
    best: Mapping[str, Any] = field(default_factory=dict)
    curve: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0


def save_checkpoint(checkpoint: Checkpoint, directory: Path) -> None:
    """Writes it whole or not at all, and replaces the one before.

    Raises:
        OSError: The directory cannot be written.
    """
    path = directory / CHECKPOINT_FILE
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as file:
        torch.save({"format": _FORMAT, **asdict(checkpoint)}, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def load_checkpoint(directory: Path, identity: str) -> Checkpoint:
    """Reads the checkpoint of a training.

    Only tensors and plain values are read: a checkpoint cannot bring code.

    Args:
        directory: Where the training writes.
        identity: As the training that goes on computes it.

    Raises:
        TrainingError: There is none, it is broken, or it is another training's.
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
