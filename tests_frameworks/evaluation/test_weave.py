from typing import Any

import pytest
import weave
from tests_frameworks.evaluation.rows import ANSWERS, COMPLETION, ITEMS

from gradewire.integrations.evaluation.weave import GradewireScorer

ROWS = [{"question": item.question, "references": list(item.references)} for item in ITEMS]


@weave.op
def answer(question: str) -> str:
    return ANSWERS[question]


async def run(scorer: GradewireScorer, rows: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    summary: dict[str, Any] = await weave.Evaluation(dataset=rows or ROWS, scorers=[scorer]).evaluate(answer)
    return summary["GradewireScorer"]


async def test_a_summary_is_of_what_the_server_scored(expected: list[Any]) -> None:
    summary = await run(GradewireScorer())

    assert summary["score"]["mean"] == pytest.approx(sum(expected[:2]) / 2, abs=2e-4)
    assert summary["right"] == {"true_count": 1, "true_fraction": 0.5}


async def test_an_empty_output_has_neither_score_nor_verdict() -> None:
    told = await GradewireScorer().score(output="", **ROWS[2])

    assert (told["score"], told["right"], told["details"]["status"]) == (None, None, "EMPTY_PREDICTION")


async def test_a_column_map_names_other_columns() -> None:
    rows = [{"question": item.question, "golds": [item.prediction or "?"]} for item in ITEMS]
    scorer = GradewireScorer(metric="exact_match", column_map={"references": "golds"})

    assert (await run(scorer, rows))["score"] == {"mean": 1.0}


async def test_without_a_server_there_is_no_mean(nobody: str) -> None:
    summary = await run(GradewireScorer(address=nobody, deadline_s=0.3))

    assert not {"score", "right"} & set(summary or {})


@pytest.mark.parametrize(("extraction", "score"), [(None, 0.0), ("auto", 1.0)])
async def test_the_final_answer_of_a_completion_is_graded_if_asked_for(extraction: Any, score: float) -> None:
    scorer = GradewireScorer(metric="exact_match", extraction=extraction)

    assert (await scorer.score(output=COMPLETION, references=["a cat"]))["score"] == score
