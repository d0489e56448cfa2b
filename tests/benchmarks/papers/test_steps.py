import random
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.papers import __main__ as program
from benchmarks.papers import steps
from benchmarks.papers.__main__ import main
from benchmarks.papers.page import RESULTS, Papers
from benchmarks.papers.steps import STEPS, sampled
from hypothesis import given
from hypothesis import strategies as st

from gradewire.metrics.choice import MetricDefaults, choose_metrics

MODELS = ("a", "b")
rows = st.lists(
    st.fixed_dictionaries(
        {"dataset": st.sampled_from(["nq", "tq"]), "question": st.text(max_size=2), "model": st.sampled_from("abc")}
    ),
    max_size=40,
    unique_by=lambda row: tuple(row.values()),
)


@given(rows, st.integers(0, 5), st.randoms(use_true_random=False))
def test_whole_questions_are_drawn_whatever_the_order_of_rows(
    given_rows: list[dict[str, str]], count: int, draw: random.Random
) -> None:
    chosen = sampled(given_rows, MODELS, count)
    shuffled = draw.sample(given_rows, len(given_rows))
    assert sampled(shuffled, MODELS, count) == chosen
    of_question = Counter((row["dataset"], row["question"]) for row in chosen)
    assert set(of_question.values()) <= {len(MODELS)}
    for dataset in ("nq", "tq"):
        models: dict[str, set[str]] = {}
        for row in given_rows:
            if row["dataset"] == dataset and row["model"] in MODELS:
                models.setdefault(row["question"], set()).add(row["model"])
        whole = sum(len(each) == len(MODELS) for each in models.values())
        assert sum(key[0] == dataset for key in of_question) == min(count, whole)


def test_more_questions_only_add_rows() -> None:
    all_rows = [{"dataset": "nq", "question": str(n), "model": model} for n in range(30) for model in MODELS]
    few, more = (sampled(all_rows, MODELS, count) for count in (5, 9))
    assert more[: len(few)] == few


def test_the_first_questions_come_in_the_order_of_the_rows() -> None:
    questions = [("tq", "z"), ("nq", "b"), ("nq", "a"), ("tq", "y"), ("nq", "c")]
    all_rows = [
        {"dataset": dataset, "question": question, "model": model}
        for dataset, question in questions
        for model in (*MODELS, "c")
        if (question, model) != ("b", "a")
    ]
    chosen = steps.first_questions(all_rows, MODELS, 1)
    assert [(row["question"], row["model"]) for row in chosen] == [("z", "a"), ("z", "b"), ("a", "a"), ("a", "b")]


def test_ranks_are_of_the_two_models_that_annotators_find_closest() -> None:
    def cells(key: str, **accuracies: tuple[float, float]) -> list[dict[str, object]]:
        return [
            {"dataset": dataset, "model": model, key: {"value": value}}
            for model, values in accuracies.items()
            for dataset, value in zip(("nq", "tq"), values, strict=True)
        ]

    document = {
        "human": cells("human", a=(0.9, 0.8), b=(0.5, 0.5), c=(0.8, 0.88)),
        "evaluators": [
            {"evaluator": "smile", "cells": cells("accuracy", a=(0.7, 0.7), b=(0.9, 0.9), c=(0.6, 0.7))},
            {"evaluator": "sbert", "cells": cells("accuracy", a=(0.1, 0.2), b=(0.0, 0.0), c=(0.2, 0.2))},
            {"evaluator": "exact_match", "cells": cells("accuracy", a=(0.0, 0.0), b=(0.1, 0.1), c=(0.0, 0.0))},
        ],
    }
    assert steps.ranks(document).splitlines() == [
        "| metric | a | c |",
        "|---|---:|---:|",
        "| annotators | 1 | 2 |",
        "| smile | 1 | 2 |",
        "| sbert | 2 | 1 |",
        "| exact_match | 2 | 2 |",
    ]


def test_tables_of_rows_are_left_out() -> None:
    kept = "**All rows**\n\n| metric |\n|---|\n| smile |\n\n"
    about = "**Proposed flags**\n\n| row |\n|---|\n| 1 |\n\n**Wrong verdicts by class**\n\n| class |\n|---|\n| x |\n\n"
    lines = "```\nsmile: smile:v1/1\n```\n"
    assert steps.without_rows(kept + about + lines) == kept + lines
    assert steps.without_rows(about + kept) == kept
    assert steps.without_rows(kept + about) == kept


def test_every_metric_of_a_step_is_known() -> None:
    for metrics in (*steps.EVOUNA_METRICS.values(), steps.VISUAL_METRICS, steps.LAVE):
        labels = choose_metrics(",".join(metrics), MetricDefaults()).labels
        assert len(set(labels)) == len(metrics)


def test_every_block_of_the_results_page_belongs_to_a_step_that_a_source_names() -> None:
    commands = {source["command"] for source in Papers.read().about["sources"].values()}
    for step in STEPS:
        assert f"python -m benchmarks.papers --step {step.name}" in commands
    assert (RESULTS / "papers.md").is_file()


def test_the_list_names_each_step_and_its_papers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["papers", "--list"])
    assert main() == 0
    said = capsys.readouterr().out
    for step in STEPS:
        assert f"{step.name} ({', '.join(step.papers)}): {step.about}" in said


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--only", "knvqa"], ["evouna"]),
        (["--only", "lave", "--only", "visit-bench"], ["visual", "vqa", "lave", "visit-bench"]),
        (["--only", "smile", "--step", "judge"], ["judge"]),
        (["--page"], []),
        ([], [step.name for step in STEPS]),
    ],
)
def test_only_the_chosen_steps_run_and_the_page_is_written(
    options: list[str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in {name for step in STEPS for name in step.files}:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "data.noun").touch()
    done: list[str] = []
    monkeypatch.setattr(program, "_measure", lambda step, _: done.append(step.name))
    monkeypatch.setattr(program, "write_page", lambda: done.append("page"))
    monkeypatch.setenv("GRADEWIRE_WORDNET_DIRECTORY", "")
    monkeypatch.setenv("GRADEWIRE_JUDGE_BACKEND", "")
    folders = ["--data", str(tmp_path), "--work", str(tmp_path / "work"), "--wordnet", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["papers", *folders, *options])
    assert main() == 0
    assert done == [*expected, "page"]


def test_steps_of_other_papers_and_a_folder_without_wordnet_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "_measure", pytest.fail)
    monkeypatch.setattr(program, "write_page", pytest.fail)
    monkeypatch.setattr("sys.argv", ["papers", "--only", "knvqa", "--step", "judge"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "no step of --step is for knvqa" in capsys.readouterr().err
    # Otherwise METEOR would fail on every row, after which the page lacks its values.
    monkeypatch.setattr("sys.argv", ["papers", "--step", "visual", "--wordnet", str(tmp_path)])
    assert main() == program.EXIT_NO_WORDNET
    assert f"{tmp_path} has no data.noun" in capsys.readouterr().err
