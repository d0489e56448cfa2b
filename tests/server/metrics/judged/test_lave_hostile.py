"""Malformed, empty, hostile, multilingual and over-long items: each has its status, and no score comes by accident."""

import re
from typing import Any

import pytest
from benchmarks.judges.hostile import CASES, Case
from tests.support.engines.hash_engine import HashEngine
from tests.support.engines.programs import Table
from tests.support.judges.scripted import Script, choice

from gradewire_server.domain.items import Item, ResultWarning, ScoredResult, Status
from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.judged.lave import LAVE, LaveParameters
from gradewire_server.metrics.judged.prompt import PLACEHOLDER
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS
from gradewire_server.scoring import MetricRequest, Scorer

# The prompt that is shipped, but all references are seen.
PARAMETERS = LaveParameters(
    "scripted", prompt=re.sub(r"(?m)^most = \d+", "most = 1000", PACKAGE_PROMPTS.find("lave", "").text)
)


def item_of(case: Case) -> Item:
    return Item(case.name, case.question, case.references, case.prediction)


def knows_ada(need: Choose) -> Choice:
    """3 for an answer with Ada in it, else 1."""
    return choice(need, (0, 0, 1) if "Ada" in need.prompt.prediction else (1, 0, 0))


def graded(case: Case) -> tuple[Any, Table]:
    table = Table(judge=Script(on_choose=knows_ada))
    return table.run(LAVE.score(item_of(case), PARAMETERS, NO_MODEL)), table


def test_there_are_enough_of_them() -> None:
    assert len(CASES) == len({case.name for case in CASES}) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_has_its_status_and_is_seen_as_it_should_be(case: Case) -> None:
    result, table = graded(case)
    assert result.status is Status[case.status], result.message
    assert (result.score is not None) == (case.status == "OK")
    masked = case.decided_by == "judge" and PLACEHOLDER in (case.seen or "")
    told = {ResultWarning.TRUNCATED: case.truncated, ResultWarning.MASKED: masked}
    assert result.warnings == tuple(warning for warning, expected in told.items() if expected)
    judged = case.status == "OK" and case.decided_by == "judge"
    assert len(table.judge.asked) == judged
    if case.decided_by == "rule":
        assert (result.score, result.parts.decided_by) == (float(bool(case.right)), "rule")
    elif judged:
        assert_seen(case, table)


def assert_seen(case: Case, table: Table) -> None:
    (need,) = table.judge.asked
    question = case.question if case.seen_question is None else case.seen_question
    references = case.references if case.seen_references is None else case.seen_references
    assert need.prompt.prediction == (case.prediction if case.seen is None else case.seen)
    total = len(references)
    votes = len(set(references)) < total or set(references) == {"yes", "no"}
    counted = [f"{text} ({references.count(text)} of {total})" for text in dict.fromkeys(references)]
    shown = "; ".join(counted if votes else references)
    assert need.prompt.lead == f"Question: {question}\nAccepted answers: {shown}\nStudent's answer: "
    assert (need.prompt.tail, need.prompt.opening) == ("", "The student's answer is")


async def test_neighbours_are_right() -> None:
    engine = HashEngine()
    engine.script.on_choose = knows_ada
    items: list[Item] = []
    for case in CASES:
        items += [item_of(case), Item("right", "Who?", ("Ada",), "Ada"), Item("wrong", "Who?", ("Ada",), "Bob")]
    results: dict[int, ScoredResult] = {}

    def emit(item: int, _metric: int, scored: ScoredResult) -> None:
        results[item] = scored

    await Scorer(engine.ports).score(items, [MetricRequest(LAVE, PARAMETERS, NO_MODEL)], emit=emit)
    for place, case in enumerate(CASES):
        assert results[3 * place].result.status is Status[case.status], case.name
        assert [results[3 * place + n].result.score for n in (1, 2)] == [1.0, 0.0], case.name
