"""Hugging Face's Trainer runs callback and compute_metrics; models are tiny ones with random weights."""

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from examples.training.hugging_face_trainer import make_tokenizer
from examples.training.questions import ROWS
from tests.client.small_server import SmallServer
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from gradewire import InvalidRequest
from gradewire.integrations import StepState, ValidationScorer, ValidationSettings
from gradewire.integrations.training.hugging_face import ValidationCallback
from gradewire.options import ScoreOptions

NOBODY = "127.0.0.1:1"
FEW = ROWS[:6]


@pytest.fixture(autouse=True)
def _libraries_warn_of_small_things() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def train(callback: ValidationCallback, tmp_path: Path, **changed: Any) -> list[dict[str, Any]]:
    """Trains a causal model for four steps with two evaluations; gives the log's history."""
    return list(trained(callback, tmp_path, **changed).state.log_history)


def trained(callback: ValidationCallback, tmp_path: Path, **changed: Any) -> Trainer:
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(make_tokenizer()), **sizes))
    encoded = [{"input_ids": [3, 4, 7], "labels": [3, 4, 7], "attention_mask": [1, 1, 1]}] * 4
    arguments = TrainingArguments(
        str(tmp_path / "hf"),
        max_steps=4,
        eval_strategy="steps",
        eval_steps=2,
        per_device_train_batch_size=4,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        **{"save_strategy": "no", **changed},
    )
    trainer = Trainer(model, arguments, train_dataset=encoded, eval_dataset=encoded, callbacks=[callback])
    trainer.train()
    return trainer


def prediction(answers: list[str]) -> Any:
    ids = make_tokenizer()(answers, padding=True, return_token_type_ids=False)["input_ids"]
    return SimpleNamespace(predictions=np.where(np.array(ids) == 0, -100, ids))


def callback_of(address: str, tmp_path: Path, **settings: Any) -> ValidationCallback:
    own = {name: settings.pop(name) for name in ("directory", "limits", "sinks") if name in settings}
    options = {name: settings.pop(name) for name in ScoreOptions.__optional_keys__ & settings.keys()}
    spool = ValidationSettings(address, "exact_match", **{"directory": tmp_path / "spool", **own}, options=options)
    settings = {"rows": FEW, "processing_class": make_tokenizer(), **settings}
    return ValidationCallback(spool, **settings)


def test_a_causal_model_answers_after_each_evaluation(small_server: SmallServer, tmp_path: Path) -> None:
    asked: list[Any] = []

    def answers(model: Any) -> list[str]:
        asked.append(model)
        return ["zero"] * len(FEW)

    history = train(callback_of(small_server.address, tmp_path, answers=answers), tmp_path)
    assert [type(model) for model in asked] == [LlamaForCausalLM] * 2
    scored = {entry["step"]: entry for entry in history if "eval_exact_match" in entry}
    assert {step: entry["eval_exact_match"] for step, entry in scored.items()} == {2: 1 / 6, 4: 1 / 6}
    assert all(entry["eval_exact_match_not_scored"] == 0.0 for entry in scored.values())
    assert len((tmp_path / "spool/scores.csv").read_text().splitlines()) == 3


def test_the_best_checkpoint_of_a_plain_trainer_is_that_of_the_best_scores(
    small_server: SmallServer, tmp_path: Path
) -> None:
    right = [str(row["references"][0]) for row in FEW]
    said = iter([right, ["nothing"] * len(FEW)])
    callback = callback_of(small_server.address, tmp_path, answers=lambda _: next(said), wait_s=30.0)
    best = {"metric_for_best_model": "eval_exact_match", "greater_is_better": True, "save_steps": 2}
    state = trained(callback, tmp_path, save_strategy="steps", **best).state
    assert (state.best_metric, Path(state.best_model_checkpoint or "").name) == (1.0, "checkpoint-2")
    logged = [entry["step"] for entry in state.log_history if "eval_exact_match" in entry]
    assert logged == [2, 4], "each evaluation's scores are logged once"


def test_a_dead_server_ends_no_training(tmp_path: Path) -> None:
    callback = callback_of(NOBODY, tmp_path, answers=lambda _: ["zero"] * 6, deadline_s=0.2, close_s=0.5, wait_s=0.3)
    history = train(callback, tmp_path)
    assert [entry["step"] for entry in history if "eval_loss" in entry] == [2, 4]
    assert not any("eval_exact_match" in entry for entry in history)
    with ValidationScorer(NOBODY, directory=tmp_path / "spool") as scorer:
        assert scorer.counts() == {StepState.NOT_SCORED: 2}


def test_compute_metrics_decodes_what_was_generated(small_server: SmallServer, tmp_path: Path) -> None:
    callback = callback_of(small_server.address, tmp_path, wait_s=30.0)
    said = ["zero", "one", "two", "eleven", "five four", "nine"]
    found = callback.compute_metrics(prediction(said))
    assert (found["exact_match"], found["exact_match_not_scored"]) == (0.5, 0.0)
    assert found["exact_match_low"] < 0.5 < found["exact_match_high"]
    sent = [item for request in small_server.script.requests for item in request.items]
    assert [item.prediction for item in sent] == said
    assert [item.question for item in sent] == [row["question"] for row in FEW]
    callback.close()


def test_what_did_not_come_in_time_is_no_number(tmp_path: Path) -> None:
    callback = callback_of(NOBODY, tmp_path, wait_s=0.2, close_s=0.1)
    metrics = callback.compute_metrics(prediction(["zero"] * 6))
    assert math.isnan(metrics["exact_match"])
    assert metrics["exact_match_not_scored"] == 1.0
    callback.close()


def test_without_waiting_compute_metrics_returns_at_once(tmp_path: Path) -> None:
    callback = callback_of(NOBODY, tmp_path, close_s=0.1)
    assert callback.compute_metrics(prediction(["zero"] * 6)) == {}
    callback.close()


@pytest.mark.parametrize(
    ("predictions", "settings", "named"),
    [
        (np.zeros((6, 3, 27)), {}, "predict_with_generate=True"),
        (np.zeros((6, 3)), {}, "not token ids"),
        (np.zeros((5, 3), dtype=int), {}, "5 answers for 6 rows"),
        (np.zeros((6, 3), dtype=int), {"processing_class": None}, "processing_class"),
    ],
)
def test_predictions_of_other_forms_are_named(
    tmp_path: Path, predictions: Any, settings: dict[str, Any], named: str
) -> None:
    callback = callback_of(NOBODY, tmp_path, **settings)
    with pytest.raises(InvalidRequest, match=named):
        callback.compute_metrics(SimpleNamespace(predictions=predictions))
