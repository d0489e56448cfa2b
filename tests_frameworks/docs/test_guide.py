"""The lines of glue of the guide run as they stand, with small models in the place of the reader's."""

import functools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from examples.training.hugging_face_trainer import make_tokenizer
from examples.training.questions import ROWS
from lightning.pytorch import LightningModule, Trainer
from tests.client.small_server import SmallServer
from torch.utils.data import DataLoader
from transformers import (
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
)

GUIDE = Path(__file__).parents[2] / "docs/guides/training-loops.md"


@pytest.fixture(autouse=True)
def _libraries_warn_of_small_things() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def blocks(small_server: SmallServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    page = GUIDE.read_text("utf-8").replace("127.0.0.1:50051", small_server.address)
    return re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)


def run(block: str, **names: Any) -> dict[str, Any]:
    exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102 - the page is ours
    return names


def test_lightning(blocks: list[str], tmp_path: Path) -> None:
    module_class = run(blocks[1], LightningModule=LightningModule)["Module"]

    class Module(module_class):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def answer(self, batch: list[dict[str, Any]]) -> list[str]:
            return ["zero"] * len(batch)

        def training_step(self, batch: list[dict[str, Any]], batch_idx: int) -> torch.Tensor:
            del batch, batch_idx
            return self.layer(torch.ones(1)).mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    quiet = {"accelerator": "cpu", "enable_progress_bar": False, "enable_checkpointing": False, "logger": False}
    named = run(blocks[2], Trainer=functools.partial(Trainer, **quiet))
    loader = DataLoader(ROWS[:6], batch_size=3, collate_fn=list)
    named["trainer"].fit(Module(), loader, loader)
    assert len((tmp_path / "runs/1/spool/scores.jsonl").read_text().splitlines()) == 2
    waiting = run(
        blocks[3],
        Trainer=functools.partial(Trainer, **{**quiet, "enable_checkpointing": True}),
        ValidationSettings=named["ValidationSettings"],
        ValidationCallback=named["ValidationCallback"],
    )
    waiting["trainer"].fit(Module(), loader, loader)
    assert len(list((tmp_path / "runs/2/best").iterdir())) == 1


def test_hugging_face(blocks: list[str], tmp_path: Path) -> None:
    tokenizer, rows = make_tokenizer(), ROWS[:6]
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    model = T5ForConditionalGeneration(T5Config(vocab_size=len(tokenizer), **sizes))
    encoded = [{**tokenizer(row["question"], return_token_type_ids=False), "labels": [7, 1]} for row in rows]
    arguments = Seq2SeqTrainingArguments(
        str(tmp_path), max_steps=2, eval_strategy="steps", eval_steps=1, save_strategy="no", use_cpu=True,
        predict_with_generate=True, generation_max_length=3, report_to="none", disable_tqdm=True,
    )  # fmt: skip
    named = run(
        blocks[4],
        rows=rows,
        tokenizer=tokenizer,
        model=model,
        arguments=arguments,
        train_dataset=encoded,
        eval_dataset=encoded,
        collator=DataCollatorForSeq2Seq(tokenizer, model),
        Seq2SeqTrainer=Seq2SeqTrainer,
    )
    named["trainer"].train()
    history = named["trainer"].state.log_history
    assert [entry["step"] for entry in history if "eval_correctness" in entry] == [1, 2]


def test_torchmetrics(blocks: list[str]) -> None:
    named = run(blocks[5], predictions=["a", "b"], references=["a", ["a"]], questions=["?", "?"])
    assert named["values"]["correctness"].item() == 0.5
