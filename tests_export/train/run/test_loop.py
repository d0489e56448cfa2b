"""Training: it learns, it is the same every time, and it goes on as if it had never been stopped."""

import itertools
import json
from collections.abc import Sequence
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
from gradewire_train.recipes import Objective, Recipe, Training
from gradewire_train.run.checkpoint import CHECKPOINT_FILE
from gradewire_train.run.loop import Plan, train
from gradewire_train.run.steps import Course, Outcome, StepReport, schedule
from gradewire_train.selection import Selection, read_labelled

QUICK = Training(steps=12, batch_size=8, learning_rate=5e-3, rank=4, dropout=0.1, max_tokens=MAX_TOKENS)
RECIPE = Recipe(training=QUICK, objective=Objective(keep_weight=0.5, keep_texts=4))


def ignore(_report: StepReport) -> None:
    pass


class After:
    """Wants to stop once it was asked so many times."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def __call__(self) -> bool:
        self._left -= 1
        return self._left == 0


def run(
    base: Path, examples: Sequence[Example], directory: Path, *, recipe: Recipe = RECIPE, **plan: Any
) -> tuple[TrainedEncoder, Outcome]:
    encoder = load_base(str(base), max_tokens=MAX_TOKENS)
    stop = plan.pop("stop", lambda: False)
    directory.mkdir(exist_ok=True)
    selection = plan.pop("selection", None)
    outcome = train(encoder, Plan(recipe, examples, Course(directory=directory, **plan), selection), ignore, stop)
    return encoder, outcome


def weights(encoder: TrainedEncoder) -> dict[str, Any]:
    return {name: each.numpy() for name, each in trained_weights(encoder.model).items()}


@pytest.mark.parametrize(
    "training",
    [
        # A random encoder gives an adapter little to hold on to: it takes its time.
        Training(method="adapter", steps=250, batch_size=16, learning_rate=2e-3, rank=16),
        Training(method="full", steps=60, batch_size=16, learning_rate=5e-3),
    ],
    ids=lambda training: training.method,
)
def test_it_learns_which_answers_mean_the_same(
    training: Training, base_folder: Path, examples: list[Example], tmp_path: Path
) -> None:
    _, outcome = run(base_folder, examples, tmp_path, recipe=Recipe(training=training))
    assert outcome.finished
    losses = [row["contrastive"] for row in outcome.curve]
    # About log(16 positives and 32 negatives) as long as it knows nothing.
    assert np.mean(losses[:5]) == pytest.approx(np.log(48), abs=0.2)
    assert np.mean(losses[-5:]) < np.log(48) - 0.4


def test_what_it_learned_ranks_answers(
    base_folder: Path, examples: list[Example], labelled_file: Path, tmp_path: Path
) -> None:
    selection = Selection(read_labelled(labelled_file), load_base(str(base_folder), max_tokens=MAX_TOKENS))
    training = Training(method="full", steps=80, batch_size=16, learning_rate=5e-3)
    after, outcome = run(base_folder, examples, tmp_path, recipe=Recipe(training=training), selection=selection)
    assert outcome.curve[0]["dev"] < 0.2
    assert selection.spearman(after)["dev"] > 0.5


def test_an_interrupted_run_ends_in_the_same_weights_bit_for_bit(
    base_folder: Path, examples: list[Example], labelled_file: Path, tmp_path: Path
) -> None:
    rows = read_labelled(labelled_file)
    selecting = {"selection": Selection(rows, load_base(str(base_folder), max_tokens=MAX_TOKENS)), "evaluate_every": 3}
    whole, outcome = run(base_folder, examples, tmp_path / "whole", **selecting)
    _, stopped = run(base_folder, examples, tmp_path / "parts", stop=After(5), **selecting)
    assert not stopped.finished
    _, again = run(base_folder, examples, tmp_path / "parts", stop=After(4), resume=True, **selecting)
    assert not again.finished
    parts, resumed = run(base_folder, examples, tmp_path / "parts", resume=True, **selecting)
    assert resumed.finished
    assert resumed.best_step == outcome.best_step
    assert resumed.curve == outcome.curve
    for name, expected in weights(whole).items():
        np.testing.assert_array_equal(weights(parts)[name], expected)


def test_two_runs_are_equal_bit_for_bit_and_another_seed_is_not(
    base_folder: Path, examples: list[Example], tmp_path: Path
) -> None:
    first, _ = run(base_folder, examples, tmp_path / "1")
    torch.manual_seed(99)  # what was drawn before does not matter
    second, _ = run(base_folder, examples, tmp_path / "2")
    other, _ = run(base_folder, examples, tmp_path / "3", recipe=replace(RECIPE, training=replace(QUICK, seed=2)))
    for name, expected in weights(first).items():
        np.testing.assert_array_equal(weights(second)[name], expected)
    assert any(not np.array_equal(weights(other)[name], expected) for name, expected in weights(first).items())


def test_the_best_step_is_kept(base_folder: Path, examples: list[Example], labelled_file: Path, tmp_path: Path) -> None:
    selection = Selection(read_labelled(labelled_file), load_base(str(base_folder), max_tokens=MAX_TOKENS))
    encoder, outcome = run(base_folder, examples, tmp_path, selection=selection, evaluate_every=2)
    by_step = {row["step"]: row["dev"] for row in outcome.curve if "dev" in row and row["step"] > 0}
    assert by_step[outcome.best_step] == max(by_step.values())
    assert selection.spearman(encoder)["dev"] == by_step[outcome.best_step]


def test_another_training_does_not_go_on_from_a_checkpoint(
    base_folder: Path, examples: list[Example], tmp_path: Path
) -> None:
    run(base_folder, examples, tmp_path, stop=After(1))
    with pytest.raises(TrainingError, match="belongs to a different training"):
        run(base_folder, examples[:-1], tmp_path, resume=True)


def test_a_broken_checkpoint_says_so(base_folder: Path, examples: list[Example], tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="is missing"):
        run(base_folder, examples, tmp_path, resume=True)
    run(base_folder, examples, tmp_path, stop=After(1))
    path = tmp_path / CHECKPOINT_FILE
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TrainingError, match="cannot read"):
        run(base_folder, examples, tmp_path, resume=True)


def test_a_loss_that_is_no_number_ends_the_training(base_folder: Path, examples: list[Example], tmp_path: Path) -> None:
    wild = replace(RECIPE, training=replace(QUICK, learning_rate=1e30, gradient_norm=0.0))
    with pytest.raises(TrainingError, match=r"step \d+: the loss is nan.*Lower learning_rate"):
        run(base_folder, examples, tmp_path, recipe=wild)


def test_an_objective_of_nothing_is_refused(base_folder: Path, examples: list[Example], tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="have weight 0"):
        run(
            base_folder, examples, tmp_path,
            recipe=replace(RECIPE, objective=Objective(contrastive_weight=0.0, ranking_weight=0.0)),
        )  # fmt: skip


def test_fewer_examples_than_a_batch_are_a_batch(base_folder: Path, examples: list[Example], tmp_path: Path) -> None:
    _, outcome = run(base_folder, examples[:3], tmp_path)
    assert outcome.best_step == QUICK.steps


def test_the_learning_rate_rises_and_falls() -> None:
    factors = [schedule(step, 100, 0.1) for step in range(100)]
    assert factors[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert factors[10] == 1.0
    assert factors[55] == pytest.approx(0.5)
    assert all(later < earlier for earlier, later in itertools.pairwise(factors[10:]))


def test_the_papers_cosine_starts_at_its_peak_and_has_these_values() -> None:
    # cos(0), cos(60°), cos(90°), cos(120°) and cos(165°), each plus 1 and halved.
    expected = {0: 1.0, 4: 0.75, 6: 0.5, 8: 0.25, 11: 0.0170371}
    assert {step: schedule(step, 12, 0.0) for step in expected} == pytest.approx(expected, abs=1e-7)


def test_bfloat16_goes_nearly_the_same_way(base_folder: Path, examples: list[Example], tmp_path: Path) -> None:
    short = replace(QUICK, steps=3, dropout=0.0)
    _, exact = run(base_folder, examples, tmp_path / "32", recipe=replace(RECIPE, training=short))
    recipe = replace(RECIPE, training=replace(short, precision="bfloat16"))
    found, outcome = run(base_folder, examples, tmp_path / "16", recipe=recipe)
    losses = [[row["loss"] for row in each.curve] for each in (exact, outcome)]
    assert losses[0] != losses[1]
    # bfloat16 has 8 bits of mantissa; the losses are sums over a temperature of 0.05.
    assert losses[1] == pytest.approx(losses[0], rel=0.03)
    assert {each.dtype for each in weights(found).values()} == {np.dtype(np.float32)}
    assert json.dumps(outcome.curve)  # plain numbers
