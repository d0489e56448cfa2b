"""Validation in Lightning: `validation_step` returns items, and a callback submits them.

Start a server, then run: python -m examples.training.lightning_trainer --server 127.0.0.1:50051 --directory runs/pl
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from examples.training.questions import ROWS, Adder, all_numbers, answers
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from gradewire.integrations import ValidationSettings
from gradewire.integrations.training.lightning import ValidationCallback


class AdderModule(LightningModule):  # type: ignore[misc]  # mypy runs without lightning
    """`Adder` as a Lightning module."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Adder()

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        """Return a batch's loss."""
        del batch_idx
        _, numbers = batch
        loss: torch.Tensor = functional.cross_entropy(self.model(numbers), numbers.sum(dim=1))
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """Return a batch's answers as items."""
        del batch_idx
        places, numbers = batch
        said = answers(self.model, numbers)
        rows = zip(places.tolist(), said, strict=True)
        return {"items": [{**ROWS[place], "id": str(place), "prediction": answer} for place, answer in rows]}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam."""
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    """Train the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="127.0.0.1:50051", help="HOST:PORT of a gradewire server")
    parser.add_argument("--directory", type=Path, required=True, help="directory of the run: spool and logs")
    parser.add_argument("--metrics", default="exact_match,smile", help="metrics to score with")
    parser.add_argument("--wait-s", type=float, default=0, help="seconds to wait for scores, to keep the best model")
    parser.add_argument("--devices", type=int, default=1, help="number of training processes")
    arguments = parser.parse_args()

    seed_everything(0)
    validation = ValidationCallback(
        ValidationSettings(arguments.server, arguments.metrics, directory=arguments.directory / "spool"),
        wait_s=arguments.wait_s,
    )
    best = ModelCheckpoint(
        arguments.directory / "best", "{step}", monitor="validation/exact_match/mean", mode="max", save_top_k=1
    )
    rows = TensorDataset(torch.arange(len(ROWS)), all_numbers())
    trainer = Trainer(
        accelerator="cpu",
        devices=arguments.devices,
        strategy="ddp" if arguments.devices > 1 else "auto",
        max_epochs=60,
        check_val_every_n_epoch=20,
        log_every_n_steps=10,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=arguments.wait_s > 0,
        logger=[
            CSVLogger(arguments.directory, name="csv", version=0),
            TensorBoardLogger(arguments.directory, name="tensorboard", version=0),
        ],
        callbacks=[validation, best] if arguments.wait_s else [validation],
    )
    trainer.fit(AdderModule(), DataLoader(rows, batch_size=20, shuffle=True), DataLoader(rows, batch_size=20))


if __name__ == "__main__":
    main()
