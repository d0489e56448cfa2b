"""What a summary tells of `auto`: who decided, what the judge was asked, and its mean over all rows."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, write_rows

from gradewire.testing import StubTransport, echo_scores
from gradewire_cli.results.tallies import CascadeTally, MetricTally, is_cascade
from gradewire_cli.rows.row import Row
from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_stats.estimated_mean import estimated_mean


def result(
    decided_by: str, reason: str, score: float | None, judge: float | None = None, **more: Any
) -> dict[str, Any]:
    said = {} if judge is None else {"judge_status": "OK", "judge_score": judge, "judge_correct": judge >= 0.5}
    verdict = {} if score is None else {"correct": score >= 0.5}
    return {"score": score, "decided_by": decided_by, "reason": reason, "sampled": False, **verdict, **said, **more}


def tallied(*results: dict[str, Any]) -> CascadeTally:
    tally = CascadeTally()
    for each in results:
        tally.add(each)
    return tally


def row_of(item: dict[str, Any]) -> Row:
    return Row(index=0, position="row 1", id="1", item=item, problem="", digest="0" * 32)


def test_who_decided_is_counted() -> None:
    tally = tallied(
        result("exact_match", "certain", 1.0),
        result("correctness", "certain", 0.9),
        result("correctness", "refused", 0.6),
        result("judge", "band", 0.2, judge=0.2),
        result("nobody", "band", None, judge_status="TIMEOUT"),
        {"score": None, "status": "INVALID_INPUT"},
    )
    (line,) = tally.lines()
    assert line == (
        "decided by correctness 1 (certain), correctness 1 (refused), exact_match 1 (certain), judge 1 (band), "
        "nobody 1 (band); the judge was called for 2 of 5 rows, 1 calls failed"
    )
    assert tally.document() == {
        "decided": {
            "correctness": {"certain": 1, "refused": 1},
            "exact_match": {"certain": 1},
            "judge": {"band": 1},
            "nobody": {"band": 1},
        },
        "asked": 2,
        "failed": 1,
        "judge_had_it_judged_all": {},
    }


def test_a_sample_tells_of_all_rows() -> None:
    cheap = [0.9, 0.8, 0.3, 0.7, 0.1] * 8
    judge = [0.8, 0.8, 0.1, 0.9, 0.2] * 8
    rows = [
        result("correctness", "sample", own, judge=said, sampled=True)
        if place % 2
        else result("correctness", "certain", own)
        for place, (own, said) in enumerate(zip(cheap, judge, strict=True))
    ]
    rows += [result("judge", "band", 0.4, judge=0.4) for _ in range(10)]
    tally = tallied(*rows)
    found = tally.estimates()["mean"]
    sampled = [place % 2 == 1 for place in range(40)]
    assert found == estimated_mean(
        [*cheap, *[0.4] * 10], [*judge, *[0.4] * 10], [*sampled, *[False] * 10], known=[False] * 40 + [True] * 10
    )
    assert (found.sampled, found.known) == (20, 10)
    assert "the judge's mean score if it judged all rows: " in tally.lines()[1]
    assert "the judge's share called right if it judged all rows: " in tally.lines()[2]


def test_rows_that_are_alike_are_one_draw_and_answers_to_a_question_belong_together() -> None:
    """Ten copies of a sampled answer say what one says; five answers to each question widen the second interval."""
    items = [{"question": f"q {place // 5}", "references": ["a"], "prediction": f"p {place}"} for place in range(60)]
    scores = [0.1 + 0.8 * ((place // 5) % 4) / 4 for place in range(60)]
    results = [
        result("correctness", "sample", own, judge=own, sampled=True)
        if place % 2
        else result("correctness", "certain", own)
        for place, own in enumerate(scores)
    ]
    tally, alone = CascadeTally(), CascadeTally()
    for item, each in zip(items, results, strict=True):
        tally.add(each, row_of(item))
        alone.add(each)
    found, single = tally.estimates()["mean"], alone.estimates()["mean"]
    assert (found.value, found.low, found.high) == (single.value, single.low, single.high)
    assert found.population_high - found.population_low > 1.5 * (single.population_high - single.population_low)
    copies = CascadeTally()
    for _ in range(10):
        copies.add(result("correctness", "sample", 0.9, judge=0.9, sampled=True), row_of(items[0]))
    assert copies.estimates() == {}


def test_few_sampled_rows_tell_nothing() -> None:
    assert tallied(*[result("correctness", "sample", 0.9, judge=0.9, sampled=True)] * 9).estimates() == {}


@pytest.mark.parametrize(
    ("label", "own"), [("auto", True), ("auto?risk=0.1", True), ("auto/1?risk=0.1", True), ("smile", False)]
)
def test_labels_of_the_cascade(label: str, own: bool) -> None:  # noqa: FBT001 - both cases
    assert is_cascade(label) is own


def test_the_command_prints_it_and_keeps_the_parts_of_a_failure(command: Command, tmp_path: Path) -> None:
    def judge(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = echo_scores(request, score=lambda _: 0.5)
        for item in reply.items:
            (each,) = item.results
            if item.id == "1":
                each.status, each.message = types_pb2.STATUS_TIMEOUT, "too late"
                each.ClearField("score")
                each.auto.decided_by, each.auto.reason, each.auto.judge_status = "nobody", "band", "TIMEOUT"
            else:
                each.auto.decided_by, each.auto.reason = "correctness", "certain"
                each.auto.probability, each.correct = 0.5, True
        return reply

    rows = [{"id": str(place), "question": "q", "references": ["a"], "prediction": "b"} for place in range(3)]
    out, summary = tmp_path / "out.jsonl", tmp_path / "summary.json"
    done = command(
        *("score", write_rows(tmp_path / "rows.jsonl", rows), "--metrics", "auto", "--out", out),
        *("--summary-json", summary, "--fail-on", "never", "--retries", "0", "--judge", "some-judge"),
        stub=StubTransport(judge),
    )
    assert done.exit_code == 0, done.output
    assert (
        "auto: decided by correctness 2 (certain), nobody 1 (band); the judge was called for 1 of 3 rows" in done.stderr
    )
    written = [json.loads(line)["scores"]["auto"] for line in out.read_text("utf-8").splitlines()]
    assert [(each["status"], each["decided_by"]) for each in written] == [
        ("OK", "correctness"),
        ("TIMEOUT", "nobody"),
        ("OK", "correctness"),
    ]
    assert json.loads(summary.read_text("utf-8"))["metrics"]["auto"]["cascade"]["failed"] == 1


RULED, JUDGED = (
    {"score": 1.0, "status": "OK", "decided_by": "rule"},
    {"score": 0.5, "status": "OK", "decided_by": "judge"},
)
FAILED, EMPTY = {"score": None, "status": "UNAVAILABLE"}, {"score": None, "status": "EMPTY_PREDICTION"}
NOBODY = {"score": None, "status": "UNPARSABLE", "decided_by": "nobody"}
CHEAP = {"score": 0.9, "status": "OK", "decided_by": "correctness"}


@pytest.mark.parametrize(
    ("results", "mean", "empty_as_wrong"),
    [
        ([RULED, FAILED], None, None),
        ([RULED, EMPTY, FAILED], None, None),
        ([EMPTY, FAILED], None, None),
        ([CHEAP, NOBODY], None, None),
        ([RULED, EMPTY], 1.0, 0.5),
        ([RULED, {"score": None, "status": "INVALID_INPUT"}], 1.0, 1.0),
        ([RULED, JUDGED, FAILED], 0.75, 0.75),
        ([CHEAP, JUDGED, NOBODY], 0.7, 0.7),
        ([CHEAP, CHEAP], 0.9, 0.9),
        ([{"score": 0.2, "status": "OK"}, FAILED], 0.2, 0.2),
        ([EMPTY], None, 0.0),
        ([FAILED], None, None),
    ],
)
def test_without_its_judge_a_metric_has_no_mean(
    results: list[dict[str, Any]], mean: float | None, empty_as_wrong: float | None
) -> None:
    tally = MetricTally()
    for result in results:
        tally.add("lave", result, identifier="1")
    found = [None if math.isnan(value) else value for value in (tally.mean, tally.mean_empty_as_wrong)]
    assert found == [pytest.approx(mean), pytest.approx(empty_as_wrong)]
    assert tally.interval() is None or mean is not None
