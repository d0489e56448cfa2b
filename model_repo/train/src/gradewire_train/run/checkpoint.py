"""Save and load the state of a training run, so that a resumed run gives the same weights."""

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
    """The state of a training run after a step.

    Only a run with the same `identity` may continue from a checkpoint. `best_step` is 0 before the first evaluation.
    `curve` has a row for each step: step, loss, the loss's terms and, after an evaluation, the selection's values.
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
    """Create a training run's directory, and return the checkpoint's path.

    Raises:
        TrainingError: The directory has a checkpoint, but `resume` is False.
    """
    directory.mkdir(parents=True, exist_ok=True)
    remove_unfinished(directory)
    checkpoint = directory / CHECKPOINT_FILE
    if checkpoint.exists() and not resume:
        raise TrainingError(
            f"{checkpoint} is from an interrupted training run. Continue with --resume, or delete the file"
        )
    return checkpoint


def save_checkpoint(checkpoint: Checkpoint, directory: Path) -> None:
    """Write the checkpoint, and replace the previous one in one step.

    Raises:
        OSError: The file is not writable.
    """
    path = directory / CHECKPOINT_FILE
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as file:
        torch.save({"format": _FORMAT, **asdict(checkpoint)}, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def load_checkpoint(directory: Path, identity: str) -> Checkpoint:
    """Read the checkpoint of a training run.

    Load only tensors and plain values, so that a checkpoint cannot run code.

    Raises:
        TrainingError: The checkpoint is missing or broken, or belongs to a different training run.
    """
    path = directory / CHECKPOINT_FILE
    if not path.is_file():
        raise TrainingError(f"--resume: {path} is missing. Start without --resume")
    try:
        found = torch.load(path, weights_only=True, map_location="cpu")
        written_as = found.pop("format")
        checkpoint = Checkpoint(**found)
    # For a broken file, torch raises errors of many types.
    except Exception as error:
        raise TrainingError(f"--resume: cannot read {path} ({error}). Start again without --resume") from error
    if written_as != _FORMAT:
        raise TrainingError(f"--resume: a different version wrote {path}. Start again without --resume")
    if checkpoint.identity != identity:
        raise TrainingError(
            f"--resume: {path} belongs to a different training run: recipe, base, start, texts, dev rows or "
            "device differ. Use the same options as at the start, or a different --out"
        )
    return checkpoint
