"""A training loop hands steps over: the server answers."""

import json
import logging
import os
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.client.integrations.conftest import ScorerMaker
from tests.client.small_server import Fault, SmallServer

from gradewire import Client, InvalidRequest
from gradewire.integrations import StepScores, StepState, ValidationScorer


def test_the_scores_of_a_step_are_those_of_a_client(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    rows.append({"references": ["sun"], "prediction": ""})
    small_server.script.score = lambda item: float(item.prediction in item.references) if item.prediction else None
    with Client(small_server.address) as client:
        report = client.score(rows, "exact_match,rouge_l")
    scorer = make_scorer(small_server.address, "exact_match,rouge_l")
    assert scorer.submit(7, rows) is StepState.NOT_SCORED
    assert scorer.wait(30)
    (scores,) = scorer.results()
    assert (scores.step, scores.name, scores.items, scores.state) == (7, "validation", 4, StepState.SCORED)
    assert scores.submitted_unix_s <= (scores.ended_unix_s or 0)
    assert list(scores.metrics) == list(report.labels)
    for label, summary in report.summary().items():
        metric = scores.metrics[label]
        assert (metric.mean, metric.scored, metric.share_right) == (summary.mean, summary.scored, summary.share_right)
        assert metric.counts == {"OK": 3, "EMPTY_PREDICTION": 1}
        assert metric.not_scored_share == 0.25
        assert metric.message == "EMPTY_PREDICTION"
        assert metric.line == report.provenance[label].line
    assert scores.scalars()["validation/exact_match/mean"] == pytest.approx(2 / 3)
    assert scores.scalars()["validation/exact_match/mean_empty_as_wrong"] == 0.5
    assert scores.scalars()["validation/exact_match/not_scored"] == 0.25


def test_an_item_that_cannot_be_sent_leaves_its_neighbours_their_scores(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    odd: list[Any] = [*rows, {"references": ["a"], "prediction": object()}, "no mapping", {"prediction": "\ud800"}]
    scorer = make_scorer(small_server.address)
    assert scorer.submit(1, odd) is StepState.NOT_SCORED
    assert scorer.wait(30)
    metric = scorer.results()[0].metrics["exact_match"]
    assert metric.counts == {"OK": 3, "INVALID_INPUT": 3}
    assert metric.mean == pytest.approx(2 / 3)
    assert metric.message.startswith("items[3].prediction")


def test_callbacks_run_on_another_thread_and_their_errors_end_nothing(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[StepScores, threading.Thread]] = []

    def tell(scores: StepScores) -> None:
        told.append((scores, threading.current_thread()))
        if scores.step == 1:
            raise RuntimeError("of the caller")

    scorer = make_scorer(small_server.address, callback=tell)
    for step in (1, 2):
        scorer.submit(step, rows, name="held out")
    assert scorer.wait(30)
    assert [scores.step for scores, _ in told] == [1, 2]
    assert all(thread is not threading.current_thread() for _, thread in told)
    assert [scores.state for scores in scorer.results()] == [StepState.SCORED] * 2
    assert "the callback failed on step 1 of held out" in caplog.text


def test_what_the_caller_changes_later_is_not_scored(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    small_server.script.hold.clear()
    scorer = make_scorer(small_server.address)
    scorer.submit(1, rows)
    rows[0]["prediction"] = "changed"
    rows.clear()
    small_server.script.hold.set()
    assert scorer.wait(30)
    assert scorer.results()[0].metrics["exact_match"].mean == pytest.approx(2 / 3)


def _broken() -> Any:
    yield {"references": ["a"], "prediction": "a"}
    raise RuntimeError("the generator of the loop")


@pytest.mark.parametrize(
    ("step", "items"),
    [
        ("ten", []),
        (1.5, []),
        (None, []),
        (1, "a text"),
        (1, None),
        (1, _broken()),
    ],
)
def test_submit_raises_nothing_into_the_loop(
    small_server: SmallServer, make_scorer: ScorerMaker, step: Any, items: Any, rows: list[dict[str, Any]]
) -> None:
    scorer = make_scorer(small_server.address)
    assert scorer.submit(step, items) is StepState.DROPPED
    assert scorer.submit(2, rows) is StepState.NOT_SCORED
    assert scorer.wait(30)
    assert [scores.step for scores in scorer.results() if scores.state is StepState.SCORED] == [2]
    dropped = [scores.problem for scores in scorer.results() if scores.state is StepState.DROPPED]
    assert all(dropped)
    assert len(dropped) == (step == 1)


def test_a_text_in_place_of_items_is_one_line_in_the_log(
    small_server: SmallServer, make_scorer: ScorerMaker, caplog: pytest.LogCaptureFixture
) -> None:
    scorer = make_scorer(small_server.address)
    items: Any = "a text"
    assert scorer.submit(1, items) is StepState.DROPPED
    (record,) = caplog.records
    assert record.getMessage().startswith("step 1 of validation was dropped: items is one str: give a list")
    assert record.exc_info is None


def test_a_step_without_items_has_no_mean(small_server: SmallServer, make_scorer: ScorerMaker) -> None:
    scorer = make_scorer(small_server.address)
    scorer.submit(1, [])
    assert scorer.wait(30)
    metric = scorer.results()[0].metrics["exact_match"]
    assert (metric.mean, metric.scored, metric.not_scored_share) == (None, 0, 0.0)
    assert scorer.results()[0].scalars() == {"validation/exact_match/not_scored": 0.0}


def test_many_threads_submit(small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]) -> None:
    scorer = make_scorer(small_server.address)
    with ThreadPoolExecutor(8) as pool:
        states = list(pool.map(lambda step: scorer.submit(step, rows), range(64)))
    assert set(states) == {StepState.NOT_SCORED}
    assert scorer.wait(30)
    assert [scores.step for scores in scorer.results()] == list(range(64))
    assert scorer.counts() == {StepState.SCORED: 64}


def test_a_step_that_is_submitted_again_shows_its_latest_scores(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    scorer = make_scorer(small_server.address)
    scorer.submit(1, rows)
    assert scorer.wait(30)
    scorer.submit(1, rows[:2])
    scorer.submit(1, rows[2:], name="other")
    assert scorer.wait(30)
    means = {scores.name: scores.metrics["exact_match"].mean for scores in scorer.results()}
    assert means == {"validation": 1.0, "other": 0.0}


def test_a_client_of_the_callers_is_used_and_left_open(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    with Client(small_server.address, token="abc") as client:  # noqa: S106 - of a test
        scorer = make_scorer(client)
        scorer.submit(1, rows)
        assert scorer.wait(30)
        assert scorer.close()
        assert client.models().server_version == "small"
    assert small_server.script.metadata[0]["authorization"] == "Bearer abc"


def test_steps_give_way_to_the_requests_of_others_unless_told(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    scorer = make_scorer(small_server.address)
    scorer.submit(1, rows)
    assert scorer.wait(30)
    scorer.close()
    scorer = make_scorer(small_server.address, priority="normal")
    scorer.submit(2, rows)
    assert scorer.wait(30)
    first, second = small_server.script.requests
    assert first.priority != second.priority


def test_after_close_steps_are_refused_and_the_directory_is_free(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    scorer = make_scorer(small_server.address)
    with pytest.raises(InvalidRequest, match=f"in use by process {os.getpid()}"):
        make_scorer(small_server.address)
    assert scorer.close()
    assert scorer.close()
    assert scorer.submit(1, rows) is StepState.DROPPED
    assert make_scorer(small_server.address).submit(1, rows) is StepState.NOT_SCORED


@pytest.mark.parametrize(
    ("metrics", "settings", "named"),
    [
        ("no_such_metric", {}, "no_such_metric"),
        ("exact_match", {"priority": "soon"}, "priority"),
        ("exact_match", {"model": 3}, "model"),
    ],
)
def test_wrong_arguments_are_named_before_the_training_starts(
    make_scorer: ScorerMaker, metrics: str, settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidRequest, match=named):
        make_scorer("127.0.0.1:1", metrics, **settings)
    assert make_scorer("127.0.0.1:1").results() == []


def test_a_fork_cannot_submit_to_its_parents_scorer(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    scorer = make_scorer(small_server.address)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which is what is tested
        child = os.fork()
    if not child:
        logging.disable()
        refused = scorer.submit(1, rows) is StepState.DROPPED and not scorer.close()
        os._exit(0 if refused else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    scorer.submit(2, rows)
    assert scorer.wait(30)
    assert [scores.step for scores in scorer.results()] == [2]
    scorer.close()
    assert ValidationScorer(small_server.address, directory=tmp_path / "spool").close()


def test_a_scorer_is_not_pickled(make_scorer: ScorerMaker) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(make_scorer("127.0.0.1:1"))


def test_one_step_can_be_waited_for_while_others_fail(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    scorer = make_scorer(small_server.address)
    small_server.script.hold.clear()
    scorer.submit(1, rows)
    scorer.submit(1, rows[:1], name="other")
    assert scorer.wait_for(1, timeout_s=0.05) is None
    small_server.script.hold.set()
    scores = scorer.wait_for(1, timeout_s=30)
    assert scores is not None
    assert (scores.name, scores.items, scores.state) == ("validation", 3, StepState.SCORED)
    assert scorer.wait_for(2, timeout_s=0) is None, "no such step"
    scores = scorer.wait_for(1, "other", 30)
    assert scores is not None
    assert scores.items == 1


def test_each_step_s_rows_are_kept_under_its_name(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    bad = {"references": ["a"], "prediction": object(), "id": "bad"}
    scorer = make_scorer(small_server.address, "exact_match,rouge_l", rows_directory=tmp_path / "rows", run="a:1")
    for name in ("validation", "a/b", ".."):
        scorer.submit(7, [bad, *rows], name=name)
    assert scorer.wait(30)
    files = sorted(str(path.relative_to(tmp_path / "rows")) for path in (tmp_path / "rows").rglob("*.*"))
    assert files == [f"a%3A1/{name}/step_7.jsonl" for name in ("%2E%2E", "a%2Fb", "validation")]
    kept = [json.loads(line) for line in (tmp_path / "rows/a%3A1/validation/step_7.jsonl").read_text().splitlines()]
    assert [row["id"] for row in kept] == ["bad", "1", "2", "3"]
    assert [row["scores"]["exact_match"]["score"] for row in kept] == [None, 1.0, 1.0, 0.0]
    assert [row.get("input") for row in kept][1:] == rows
    assert len({row["digest"] for row in kept}) == 4
    first, *others = [row["scores"] for row in kept]
    assert [first[label]["line"] for label in first] == [
        scorer.results()[0].metrics[label].line for label in ("exact_match", "rouge_l")
    ]
    assert not any("line" in result for scores in others for result in scores.values())


def test_a_folder_that_cannot_be_written_loses_no_scores(
    small_server: SmallServer,
    make_scorer: ScorerMaker,
    rows: list[dict[str, Any]],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "rows").write_text("a file")
    scorer = make_scorer(small_server.address, rows_directory=tmp_path / "rows", run="a")
    scorer.submit(7, rows)
    assert scorer.wait(30)
    assert scorer.results()[0].state is StepState.SCORED
    assert f"step 7 of validation is scored, but {tmp_path / 'rows/a/validation/step_7.jsonl'} cannot be" in caplog.text


def test_a_step_that_fails_as_a_whole_is_warned_of_once_with_the_names_that_are_read(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    wrong = [{"question": row["question"], "right": row["references"], "said": row["prediction"]} for row in rows]
    scorer = make_scorer(small_server.address, "exact_match,rouge_l")
    for step in range(7):
        scorer.submit(step, wrong)
        scorer.submit(step, rows, "right")
    assert scorer.wait(30)
    scorer.close()
    failed, right = (next(each for each in scorer.results() if each.name == name) for name in ("validation", "right"))
    assert failed.problem.startswith("exact_match: INVALID_INPUT: items[0].references is ")
    assert right.problem == ""
    warnings_ = [record.getMessage() for record in caplog.records if "failed for" in record.getMessage()]
    assert len(warnings_) == 1
    assert warnings_[0].startswith(
        "all 3 answers of step 0 (validation) failed for exact_match, rouge_l: INVALID_INPUT: items[0].references is "
    )
    assert "has the fields question, right, said; gradewire reads prediction (or pred" in warnings_[0]


def test_many_answers_without_a_score_are_warned_of_once(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    small_server.script.score = lambda item: 1.0 if item.prediction else None
    scorer = make_scorer(small_server.address)
    scorer.submit(1, rows * 4)
    for step in (2, 3):
        scorer.submit(step, [*rows, {"references": ["sun"], "prediction": ""}])
    assert scorer.wait(30)
    scorer.close()
    (said,) = [record.getMessage() for record in caplog.records if "without a score" in record.getMessage()]
    assert said.startswith(
        "step 2 of validation has many answers without a score, which means leave out: exact_match: 25% (EMPTY_"
    )


def test_closing_does_not_wait_for_a_step_that_the_server_refuses(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.PERMISSION_DENIED, "no scope")] * 1000
    scorer = make_scorer(small_server.address)
    scorer.submit(1, rows)
    with ThreadPoolExecutor() as pool:
        assert pool.submit(scorer.close, 3600.0).result(60) is False
