import json
from math import isnan, nan
from pathlib import Path
from typing import Any

import pytest
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.models.dummy.dummy_model import DummyModel, DummyModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
from lighteval.tasks.registry import Registry
from lighteval.tasks.requests import Doc
from tests_frameworks.evaluation.rows import ANSWERS, ITEMS

from gradewire.integrations.evaluation.evaluator import AnswerEvaluator
from gradewire.integrations.evaluation.lighteval import GradewireComputation, mean_of_scored

TASK = """
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

from gradewire.integrations.evaluation.lighteval import gradewire_metric


def prompt(line, task_name):
    golds = line["answers"]
    return Doc(
        task_name=task_name,
        query=line["question"],
        choices=golds,
        gold_index=list(range(len(golds))),
        specific={{"question": line["question"]}},
    )


TASKS_TABLE = [
    LightevalTaskConfig(
        name="pets",
        prompt_function=prompt,
        hf_repo={folder!r},
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        generation_size=32,
        metrics=[gradewire_metric({settings})],
    )
]
"""


class TableModel(DummyModel):
    """Answers from a table."""

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        return [ModelResponse(text=[ANSWERS[doc.specific["question"]]]) for doc in docs]


@pytest.fixture(autouse=True)
def only_our_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file among the tasks that lighteval brings downloads when it is imported, and all of them are."""
    monkeypatch.setattr(Registry, "_load_from_files", lambda *_: {})
    monkeypatch.setattr(Registry, "_load_from_subdirs", lambda *_: {})


def run(tmp_path: Path, settings: str = "") -> tuple[dict[str, float], list[float]]:
    rows = tmp_path / "rows"
    rows.mkdir()
    lines = [json.dumps({"question": item.question, "answers": list(item.references)}) for item in ITEMS]
    (rows / "test.jsonl").write_text("\n".join(lines))
    task = tmp_path / "pets_task.py"
    task.write_text(TASK.format(folder=str(rows), settings=settings))
    tracker = EvaluationTracker(output_dir=str(tmp_path / "out"))
    pipeline = Pipeline(
        tasks="pets|0",
        pipeline_parameters=PipelineParameters(
            launcher_type=ParallelismManager.NONE, custom_tasks_directory=str(task), bootstrap_iters=0
        ),
        evaluation_tracker=tracker,
        model=TableModel(DummyModelConfig()),
    )
    pipeline.evaluate()
    (values,) = tracker.metrics_logger.metrics_values.values()
    return pipeline.get_results()["results"]["all"], values["gradewire"]


def test_a_pipeline_shows_the_servers_scores_and_leaves_an_empty_answer_out(
    tmp_path: Path, expected: list[Any]
) -> None:
    results, values = run(tmp_path)

    # lighteval shuffles the documents.
    assert sorted(value for value in values if not isnan(value)) == pytest.approx(sorted(expected[:2]), abs=2e-4)
    assert [isnan(value) for value in values].count(True) == 1
    assert results["gradewire"] == pytest.approx(sum(expected[:2]) / 2, abs=2e-4)


def test_without_a_server_the_result_is_nan(tmp_path: Path, nobody: str) -> None:
    results, values = run(tmp_path, f"address={nobody!r}, deadline_s=0.3")

    assert all(isnan(value) for value in (*values, results["gradewire"]))


def test_several_samples_of_a_document_count_as_their_mean() -> None:
    docs = [Doc(query="?", choices=["cat", "dog"], gold_index=gold) for gold in (0, 1, 0)]
    responses = [ModelResponse(text=texts) for texts in (["cat", "dog", ""], ["dog"], [""])]

    first, second, third = GradewireComputation(AnswerEvaluator("exact_match")).compute(docs, responses)

    assert (first, second) == (0.5, 1.0)
    assert isnan(third)
    assert mean_of_scored([1.0, nan, 0.0]) == 0.5
