"""Ctrl-C wherever it comes: what was saved is of one piece, and goes on to the same weights bit for bit."""

import math
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests_export.train.conftest import MAX_TOKENS

from gradewire_train import TrainingError
from gradewire_train.encoder import TrainedEncoder, load_base, trained_weights
from gradewire_train.examples import Example
from gradewire_train.recipes import Recipe, Training
from gradewire_train.run.card import sfve_account, write_account
from gradewire_train.run.loop import Outcome, Plan, train
from gradewire_train.run.steps import Course, first_interrupt
from gradewire_train.selection import Selection, read_labelled

RECIPE = Recipe(training=Training(steps=6, batch_size=8, learning_rate=5e-3, rank=2, max_tokens=MAX_TOKENS))
Run = Callable[..., tuple[Mapping[str, Any], Outcome]]


@pytest.fixture
def run(base_folder: Path, examples: Sequence[Example], labelled_file: Path, tmp_path: Path) -> Run:
    rows = read_labelled(labelled_file)

    def call(name: str, *, resume: bool = False) -> tuple[Mapping[str, Any], Outcome]:
        encoder = load_base(str(base_folder), max_tokens=MAX_TOKENS)
        (tmp_path / name).mkdir(exist_ok=True)
        course = Course(directory=tmp_path / name, evaluate_every=2, checkpoint_every=2, resume=resume)
        plan = Plan(RECIPE, examples, course, Selection(rows, encoder))
        with first_interrupt(lambda: None) as stop:
            outcome = train(encoder, plan, lambda _: None, stop)
        return trained_weights(encoder.model), outcome

    return call


def signals_at(owner: type, method: str, call: int, times: int, patch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, so many times, right after a method's `call`th call, before its caller hears of it."""
    original, calls = getattr(owner, method), iter(range(1, 1000))

    def patched(*arguments: Any, **named: Any) -> Any:
        found = original(*arguments, **named)
        if next(calls) == call:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return found

    patch.setattr(owner, method, patched)


# After the optimiser moved the weights in step 3; in the look after step 4, which is the third with that at the base.
@pytest.mark.parametrize(("owner", "method", "call"), [(torch.optim.AdamW, "step", 3), (Selection, "spearman", 3)])
@pytest.mark.parametrize("times", [1, 2])
def test_it_goes_on_to_the_same_weights(
    owner: type, method: str, call: int, times: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, outcome = run("whole")
    with monkeypatch.context() as patch:
        signals_at(owner, method, call, times, patch)
        if times == 1:
            assert not run("parts")[1].finished
        else:
            with pytest.raises(KeyboardInterrupt):
                run("parts")
    parts, resumed = run("parts", resume=True)
    assert resumed.finished
    assert (resumed.curve, resumed.best_step) == (outcome.curve, outcome.best_step)
    for name, expected in whole.items():
        np.testing.assert_array_equal(parts[name], expected)


def test_another_base_does_not_go_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        signals_at(torch.optim.AdamW, "step", 1, 1, patch)
        run("parts")
    init = TrainedEncoder.__init__

    def other(self: TrainedEncoder, model: Any, pooling: Any, tokenizer: Any, base: Any) -> None:
        init(self, model, pooling, tokenizer, replace(base, weights_sha256="0" * 64))

    monkeypatch.setattr(TrainedEncoder, "__init__", other)
    with pytest.raises(TrainingError, match="belongs to a different training"):
        run("parts", resume=True)


def test_rows_that_nothing_ranks_end_it(
    base_folder: Path, examples: Sequence[Example], labelled_file: Path, tmp_path: Path
) -> None:
    encoder = load_base(str(base_folder), max_tokens=MAX_TOKENS)
    rows = [replace(row, prediction=row.references[0]) for row in read_labelled(labelled_file)]
    selection = Selection([replace(row, question="", references=("w1",), prediction="w1") for row in rows], encoder)
    plan = Plan(RECIPE, examples, Course(directory=tmp_path), selection)
    with pytest.raises(TrainingError, match="step 0: the dev rows cannot be ranked"):
        train(encoder, plan, lambda _: None)


def test_the_curve_is_json_where_a_part_has_no_figure(encoder: TrainedEncoder, tmp_path: Path) -> None:
    outcome = Outcome(1, [{"step": 0.0, "dev": 0.5, "dev one": math.nan}], 1.0, finished=True)
    account = sfve_account(encoder.base, RECIPE, (), outcome, "rows")
    write_account(tmp_path, encoder.base, RECIPE, account, outcome.curve)
    assert (tmp_path / "curve.jsonl").read_text() == '{"step": 0.0, "dev": 0.5, "dev one": null}\n'
    assert "| 0 | - | 0.500 | - |" in (tmp_path / "README.md").read_text()
