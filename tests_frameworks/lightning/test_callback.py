"""Lightning's Trainer runs the callback; the server answers, is away, or comes back for the next training."""

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from tests.client.small_server import SmallServer
from torch.utils.data import DataLoader

from gradewire import InvalidRequest
from gradewire.integrations import StepState, ValidationScorer, ValidationSettings
from gradewire.integrations.training.lightning import ValidationCallback

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def _lightning_warns_of_small_things() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Module(LightningModule):
    """Answers "cat" from its second validation on, whatever was asked."""

    def __init__(self, returned: Any = "items") -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.returned = returned

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        del batch_idx
        return self.layer(batch[:, None]).mean()

    def validation_step(self, batch: torch.Tensor, batch_idx: int, dataloader_idx: int = 0) -> Any:
        del batch_idx, dataloader_idx
        answer = "cat" if self.trainer.global_step > 2 else "dog"
        items = [{"references": ["cat"], "prediction": answer, "id": str(row)} for row in batch.tolist()]
        return {self.returned: items}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def loader(rows: int = 8) -> DataLoader[torch.Tensor]:
    return DataLoader(torch.arange(float(rows)), batch_size=4)


def fit(callback: ValidationCallback, tmp_path: Path, *, module: Module | None = None, loaders: Any = None) -> None:
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=2,
        logger=CSVLogger(tmp_path, name="csv"),
        callbacks=[callback],
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    trainer.fit(module or Module(), loader(), loaders or loader())


def logged(tmp_path: Path, version: int = 0) -> list[dict[str, str]]:
    with (tmp_path / f"csv/version_{version}/metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_scores_are_logged_under_their_steps(small_server: SmallServer, tmp_path: Path) -> None:
    callback = ValidationCallback(ValidationSettings(small_server.address, "exact_match", directory=tmp_path / "spool"))
    fit(callback, tmp_path)
    rows = logged(tmp_path)
    assert [(row["step"], row["validation/exact_match/mean"]) for row in rows] == [("2", "0.0"), ("4", "1.0")]
    sent = [item.id for request in small_server.script.requests for item in request.items]
    assert sent == [str(float(row)) for row in range(8)] * 2, "the sanity check is not scored"
    assert callback.scorer is None


def checkpointed(callback: ValidationCallback, monitor: str, tmp_path: Path) -> ModelCheckpoint:
    """Trains for four epochs, of which the second one answers right; gives the checkpoint callback."""
    checkpoint = ModelCheckpoint(tmp_path / "checkpoints", "{step}", monitor=monitor, mode="max")
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=4,
        logger=CSVLogger(tmp_path, name="csv"),
        callbacks=[checkpoint, callback],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(RightOnlyInTheSecondEpoch(), loader(), loader())
    return checkpoint


class RightOnlyInTheSecondEpoch(Module):
    def validation_step(self, batch: torch.Tensor, batch_idx: int, dataloader_idx: int = 0) -> Any:
        del batch_idx, dataloader_idx
        answer = "cat" if self.current_epoch == 1 else "dog"
        return {"items": [{"references": ["cat"], "prediction": answer} for _ in batch.tolist()]}


@pytest.mark.parametrize("value", ["mean", "mean_low"])
def test_a_callback_that_waits_has_the_best_checkpoint_chosen_by_scores(
    small_server: SmallServer, tmp_path: Path, value: str
) -> None:
    settings = ValidationSettings(small_server.address, "exact_match", directory=tmp_path / "spool")
    checkpoint = checkpointed(ValidationCallback(settings, wait_s=30.0), f"validation/exact_match/{value}", tmp_path)
    assert Path(checkpoint.best_model_path).name == "step=4.ckpt"
    rows = [row for row in logged(tmp_path) if row["validation/exact_match/mean"]]
    assert [(row["step"], row["validation/exact_match/mean"]) for row in rows] == [
        ("2", "0.0"),
        ("4", "1.0"),
        ("6", "0.0"),
        ("8", "0.0"),
    ], "scores are logged once"


def test_late_scores_choose_no_checkpoint_and_end_no_training(tmp_path: Path) -> None:
    settings = ValidationSettings(NOBODY, "exact_match", directory=tmp_path / "spool", options={"deadline_s": 0.2})
    checkpoint = checkpointed(
        ValidationCallback(settings, wait_s=0.1, close_s=0.1), "validation/exact_match/mean", tmp_path
    )
    assert checkpoint.best_model_score is not None
    assert torch.isinf(checkpoint.best_model_score)


def test_several_loaders_have_names_of_their_own(small_server: SmallServer, tmp_path: Path) -> None:
    callback = ValidationCallback(
        ValidationSettings(small_server.address, "exact_match", directory=tmp_path / "spool"), name="held_out"
    )
    fit(callback, tmp_path, loaders=[loader(), loader(4)])
    with ValidationScorer(small_server.address, "exact_match", directory=tmp_path / "spool") as scorer:
        results = scorer.results()
    assert [(scores.step, scores.name, scores.items) for scores in results] == [
        (2, "held_out", 8),
        (2, "held_out_1", 4),
        (4, "held_out", 8),
        (4, "held_out_1", 4),
    ]


def test_a_dead_server_ends_no_training_and_the_next_one_logs_its_steps(
    small_server: SmallServer, tmp_path: Path
) -> None:
    callback = ValidationCallback(
        ValidationSettings(NOBODY, "exact_match", directory=tmp_path / "spool", options={"deadline_s": 0.2}),
        close_s=0.5,
    )
    fit(callback, tmp_path)
    assert not (tmp_path / "csv/version_0/metrics.csv").exists()
    with ValidationScorer(NOBODY, directory=tmp_path / "spool") as scorer:
        assert scorer.counts() == {StepState.NOT_SCORED: 2}
        scorer.close(0)
    fit(ValidationCallback(ValidationSettings(small_server.address, "rouge_l", directory=tmp_path / "spool")), tmp_path)
    rows = logged(tmp_path, version=1)
    assert {row["step"]: row["validation/exact_match/mean"] for row in rows if row["validation/exact_match/mean"]} == {
        "2": "0.0",
        "4": "1.0",
    }
    assert [row["step"] for row in rows if row["validation/rouge_l/mean"]] == ["2", "4"]
    with ValidationScorer(NOBODY, directory=tmp_path / "spool") as scorer:
        assert scorer.counts() == {StepState.SCORED: 4}


def test_a_module_without_items_is_told_before_the_training_starts(small_server: SmallServer, tmp_path: Path) -> None:
    callback = ValidationCallback(ValidationSettings(small_server.address, "exact_match", directory=tmp_path / "spool"))
    with pytest.raises(InvalidRequest, match='validation_step returned no "items"'):
        fit(callback, tmp_path, module=Module("predictions"))
    assert callback.scorer is None, "the directory is free again"


def test_items_may_be_made_from_outputs_and_batches(small_server: SmallServer, tmp_path: Path) -> None:
    callback = ValidationCallback(
        ValidationSettings(small_server.address, "exact_match", directory=tmp_path / "spool"),
        items=lambda outputs, batch: [{**row, "question": str(len(batch))} for row in outputs["predictions"]],
    )
    fit(callback, tmp_path, module=Module("predictions"))
    assert {item.question for request in small_server.script.requests for item in request.items} == {"4"}
    assert len(logged(tmp_path)) == 2
