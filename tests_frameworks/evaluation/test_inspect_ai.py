from math import isnan
from typing import Any, get_args

import pytest
from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSampleScore
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Scorer, ScoreReason
from inspect_ai.solver import generate
from tests_frameworks.evaluation.rows import ANSWERS, ITEMS

from gradewire import Status
from gradewire.integrations.evaluation.inspect_ai import REASONS, gradewire_score, gradewire_verdict


def run(scorer: list[Scorer]) -> EvalLog:
    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", ANSWERS[messages[-1].text])
        # Without it the mock model counts tokens, by a table that it would download.
        output.usage = ModelUsage()
        return output

    samples = [Sample(id=at + 1, input=item.question, target=list(item.references)) for at, item in enumerate(ITEMS)]
    task = Task(dataset=samples, solver=generate(), scorer=scorer)
    model = get_model("mockllm/model", custom_outputs=answer)
    log = run_eval(task, model=model, display="none", log_dir="logs", log_format="json")[0]
    assert log.status == "success", log.error
    return log


def scores(log: EvalLog, name: str) -> list[EvalSampleScore]:
    assert log.samples is not None
    return [sample.scores[name] for sample in log.samples if sample.scores]


def test_a_sample_has_the_servers_score_and_an_empty_completion_none(expected: list[float | None]) -> None:
    right, wrong, empty = scores(run([gradewire_score()]), "gradewire_score")

    assert [right.value, wrong.value] == pytest.approx(expected[:2], abs=2e-4)
    assert isnan(empty.as_float())
    assert (empty.reason, empty.metadata["status"]) == ("no_response", "EMPTY_PREDICTION")
    assert right.metadata["metric_line"].startswith("correctness")
    assert len(right.metadata["digest"]) == 64
    assert right.explanation.startswith("correctness gives")


def test_means_are_of_what_was_scored(expected: list[float | None]) -> None:
    log = run([gradewire_score(), gradewire_verdict()])

    score, verdict = log.results.scores
    assert score.metrics["mean"].value == pytest.approx(sum(expected[:2]) / 2, abs=2e-4)
    assert verdict.metrics["accuracy"].value == 0.5
    assert (score.scored_samples, score.unscored_samples) == (2, 1)
    assert [at.value for at in scores(log, "gradewire_verdict")[:2]] == ["C", "I"]


def test_a_metric_without_a_verdict_has_a_score_and_no_verdict() -> None:
    log = run([gradewire_score("rouge_l"), gradewire_verdict("rouge_l")])

    right = log.samples[0].scores
    assert right["gradewire_score"].value > 0
    assert isnan(right["gradewire_verdict"].as_float())
    assert right["gradewire_verdict"].reason == "scoring_failed"


def test_without_a_server_the_run_ends_and_nothing_has_a_score(nobody: str) -> None:
    for score in scores(run([gradewire_score(address=nobody, deadline_s=0.5)]), "gradewire_score"):
        assert isnan(score.as_float())
        assert score.reason == "scoring_failed"
        assert score.metadata["error_type"] == "ServerUnreachable"


def test_reasons_are_words_of_inspect_and_of_every_status_but_ok() -> None:
    assert {*REASONS.values(), "scoring_failed"} <= set(get_args(ScoreReason))
    assert set(REASONS) <= set(Status) - {Status.OK}


def test_the_log_has_the_scorers_arguments(address: str) -> None:
    log = run([gradewire_score("smile:fast", address)])

    assert log.eval.scorers[0].options == {"metric": "smile:fast", "address": address}
