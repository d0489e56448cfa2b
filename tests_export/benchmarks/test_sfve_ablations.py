"""Runs of the ablations on a tiny base: what each changes, what is skipped, and what goes on after a kill."""

import fcntl
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from benchmarks.agreement.sfve_ablations import ALL, CHANGES, OURS, UNTRAINED, runs
from benchmarks.agreement.sfve_ablations.measuring import StandIn
from benchmarks.agreement.sfve_ablations.runs import Ablations
from tests_export.conftest import Folder

from gradewire_train.examples import GROUPS, TASKS, Example, Files

HELD = "the w1"


def standin(half: str) -> StandIn:
    rows = [
        {
            "question": f"the w{number}",
            "references": [f"w{number}", f"w{number + 1}"],
            "prediction": f"w{number + 2}",
            "descriptions": [f"the w{number + 2} .", f"yes w{number + 2}"],
            "shifted_references": [f"w{number} ."],
            "label": float(number % 3),
            "dataset": "nq",
            "half": half,
        }
        for number in range(1, 9)
    ]
    return StandIn(rows)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Drawing needs all of WordNet; this keeps what is asked of it, and gives a few examples."""
    asked: list[dict[str, Any]] = []

    def made(counts: dict[str, int], files: Files, **more: Any) -> list[Example]:
        asked.append({"counts": counts, "files": files, **more})
        plain = [Example("synonyms", f"the w{n + 20}", f"w{n}", f"w{n + 1}", (f"w{n + 30}",)) for n in range(12)]
        return [Example("synonyms", HELD, "w1", "w2", ("w3",)), *plain]

    monkeypatch.setattr(runs, "make_examples", made)
    return asked


@pytest.fixture
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "q.jsonl"
    path.write_text('{"question": "the w40", "answer": "w41"}\n')
    return path


@pytest.fixture
def ablations(tmp_path: Path, questions: Path) -> Ablations:
    sets = {name: standin(name) for name in ("a", "b", "apart")}
    return Ablations(sets, Files([questions], half="a"), None, tmp_path, {"steps": 4, "batch_size": 4})


@pytest.fixture(scope="session")
def base(make_folder: Callable[..., Folder]) -> str:
    return str(make_folder("bert", pooling="mean").path)


def result(work: Path) -> dict[str, Any]:
    (found,) = work.glob("*/result.json")
    written: dict[str, Any] = json.loads(found.read_text())
    return written


def test_a_run_trains_once_and_leaves_its_scores_and_looks(
    ablations: Ablations, base: str, read: list[dict[str, Any]], tmp_path: Path
) -> None:
    ablations.run(ALL, base, 1)
    found = result(tmp_path)
    assert (found["kind"], found["seed"], found["steps"], found["batch_size"]) == (ALL, 1, 4, 4)
    assert set(found["sets"]) == {"a", "b", "apart"}
    assert [len(scores) for scores in found["sets"]["b"]] == [3] * 8
    assert [look["step"] for look in found["curve"]] == [1, 2]
    # A question of the set that reports is not trained on.
    assert found["examples"] == 12
    assert (read[0]["seed"], read[0]["files"].half) == (1, "a")
    ablations.run(ALL, base, 1)
    assert len(read) == 1


def test_a_finished_run_of_other_inputs_is_no_result(
    ablations: Ablations, base: str, read: list[dict[str, Any]], questions: Path
) -> None:
    ablations.run(ALL, base, 1)
    with pytest.raises(click.ClickException, match=r"has a run with other recipe\. Choose another --work"):
        replace(ablations, small={"steps": 8, "batch_size": 4}).run(ALL, base, 1)
    with pytest.raises(click.ClickException, match="other rows"):
        replace(ablations, sets={**ablations.sets, "b": standin("a")}).run(ALL, base, 1)
    questions.write_text('{"question": "the w40", "answer": "w42"}\n')
    with pytest.raises(click.ClickException, match="other questions"):
        ablations.run(ALL, base, 1)
    assert len(read) == 1


def test_a_run_that_does_not_name_its_inputs_is_no_result(ablations: Ablations, base: str, tmp_path: Path) -> None:
    ablations.run(UNTRAINED, base, 0)
    ablations.run(UNTRAINED, base, 0)
    (folder,) = tmp_path.iterdir()
    (folder / "inputs.json").unlink()
    with pytest.raises(click.ClickException, match="other base, rows"):
        ablations.run(UNTRAINED, base, 0)


def test_an_untrained_base_is_measured_as_it_is(ablations: Ablations, base: str, tmp_path: Path) -> None:
    ablations.run(UNTRAINED, base, 0)
    assert set(result(tmp_path)["sets"]) == {"a", "b", "apart"}


def test_what_another_process_does_is_left_to_it(
    ablations: Ablations, base: str, read: list[dict[str, Any]], tmp_path: Path
) -> None:
    ablations.run(ALL, base, 1)
    (folder,) = tmp_path.iterdir()
    (folder / "result.json").unlink()
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ablations.run(ALL, base, 1)
    assert not (folder / "result.json").exists()
    assert len(read) == 1


def test_a_killed_run_goes_on_and_ends_as_if_it_had_not_been(
    ablations: Ablations, base: str, read: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ablations.run(ALL, base, 1)
    whole = result(tmp_path)
    (folder,) = tmp_path.iterdir()
    (folder / "result.json").unlink()
    (folder / "curve.jsonl").unlink()

    def killed(*_arguments: Any) -> dict[str, Any]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ablations, "_measured", killed)
        with pytest.raises(KeyboardInterrupt):
            ablations.run(ALL, base, 1)
    ablations.run(ALL, base, 1)
    assert result(tmp_path)["sets"] == whole["sets"]
    assert result(tmp_path)["curve"] == whole["curve"]
    assert len(read) == 3


@pytest.mark.parametrize("kind", CHANGES)
def test_every_kind_is_the_papers_recipe_but_for_its_changes(kind: str, ablations: Ablations) -> None:
    recipe = ablations.recipe(kind, 3)
    changed = CHANGES[kind]
    assert recipe.training.seed == 3
    assert (recipe.training.steps, recipe.training.batch_size, recipe.training.warmup) == (4, 4, 0)
    assert recipe.training.learning_rate == changed.get("learning_rate", 1e-4)
    assert recipe.training.method == changed.get("method", "full")
    assert recipe.without == changed.get("without", ())
    counted = {task for task in TASKS if getattr(recipe.texts, task)}
    assert counted == set(GROUPS) if kind != OURS else counted >= set(GROUPS)
