"""A training loop hands steps over: the server is away, slow or refuses; the loop is killed; files are damaged."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.client.integrations.conftest import ScorerMaker
from tests.client.small_server import Fault, Script, SmallServer, run_small_server

from gradewire import InvalidRequest
from gradewire.integrations import SpoolLimits, StepScores, StepState


def states(results: list[StepScores]) -> dict[int, StepState]:
    return {scores.step: scores.state for scores in results}


def test_steps_of_a_dead_server_are_marked_and_scored_when_it_is_back(
    free_port: int, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    ended = threading.Event()
    scorer = make_scorer(f"127.0.0.1:{free_port}", callback=lambda _: ended.set(), deadline_s=0.3)
    for step in (10, 20, 30):
        assert scorer.submit(step, rows) is StepState.NOT_SCORED
    assert not scorer.wait(1.0)
    assert states(scorer.results()) == dict.fromkeys((10, 20, 30), StepState.NOT_SCORED)
    assert "127.0.0.1" in " ".join(scores.problem for scores in scorer.results())
    assert not ended.is_set()
    with run_small_server(free_port):
        assert scorer.wait(60)
    assert states(scorer.results()) == dict.fromkeys((10, 20, 30), StepState.SCORED)
    assert all(not scores.problem for scores in scorer.results())


def test_a_slow_server_holds_up_nobody(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    small_server.script.hold.clear()
    scorer = make_scorer(small_server.address, deadline_s=0.2)
    scorer.submit(1, rows)
    assert not scorer.wait(0.6)
    assert states(scorer.results()) == {1: StepState.NOT_SCORED}
    small_server.script.hold.set()
    assert scorer.wait(30)
    assert states(scorer.results()) == {1: StepState.SCORED}


def test_a_step_that_is_answered_in_part_is_scored_again(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    small_server.script.faults.append(Fault(grpc.StatusCode.DEADLINE_EXCEEDED, "not this time"))
    scorer = make_scorer(small_server.address)
    scorer.submit(1, rows * 100)
    assert scorer.wait(30)
    metric = scorer.results()[0].metrics["exact_match"]
    assert metric.counts == {"OK": 300}
    assert "of 300 scores are missing (TIMEOUT: " in caplog.text


def test_a_refused_step_lets_the_others_go_first(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    small_server.script.faults.append(Fault(grpc.StatusCode.INVALID_ARGUMENT, "metrics[0]: unknown here"))
    scorer = make_scorer(small_server.address)
    scorer.submit(1, rows)
    scorer.submit(2, rows)
    assert not scorer.wait(1.0)
    assert states(scorer.results()) == {1: StepState.NOT_SCORED, 2: StepState.SCORED}
    assert "unknown here" in scorer.results()[0].problem


def test_the_latest_submission_counts_also_where_an_earlier_one_is_scored_after_it(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    small_server.script.faults.append(Fault(grpc.StatusCode.INVALID_ARGUMENT, "not now"))
    scorer = make_scorer(small_server.address)
    scorer.submit(1, rows)
    scorer.submit(1, rows[:2])
    assert not scorer.wait(0.5)
    assert [(scores.state, scores.items) for scores in scorer.results()] == [(StepState.SCORED, 2)]
    assert scorer.counts() == {StepState.SCORED: 1, StepState.NOT_SCORED: 1}


_LOOP = textwrap.dedent("""
    import os, signal, sys
    from gradewire.integrations import ValidationScorer
    scorer = ValidationScorer(sys.argv[1], "exact_match,rouge_l", directory=sys.argv[2], deadline_s=0.2)
    for step in range(5):
        scorer.submit(step, [{"references": ["cat"], "prediction": "cat" if step % 2 else "dog"}])
    os.kill(os.getpid(), signal.SIGKILL)
""")


def test_steps_of_a_killed_loop_are_scored_by_the_next_process_by_their_own_metrics(
    free_port: int, make_scorer: ScorerMaker, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", _LOOP, f"127.0.0.1:{free_port}", str(tmp_path / "spool")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    scorer = make_scorer(f"127.0.0.1:{free_port}", "bleu", deadline_s=0.3)
    assert states(scorer.results()) == dict.fromkeys(range(5), StepState.NOT_SCORED)
    with run_small_server(free_port):
        assert scorer.wait(60)
    results = scorer.results()
    assert states(results) == dict.fromkeys(range(5), StepState.SCORED)
    assert [list(scores.metrics) for scores in results] == [["exact_match", "rouge_l"]] * 5
    assert [scores.metrics["exact_match"].mean for scores in results] == [0.0, 1.0, 0.0, 1.0, 0.0]


def test_results_of_processes_before_are_there(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    scorer = make_scorer(small_server.address)
    scorer.submit(1, rows)
    assert scorer.wait(30)
    before = scorer.results()
    scorer.close()
    scorer = make_scorer(small_server.address)
    assert scorer.results() == before
    scorer.submit(2, rows)
    assert scorer.wait(30)
    assert states(scorer.results()) == {2: StepState.SCORED}, "of another run"
    assert scorer.results(before[0].run) == before
    assert scorer.runs() == [before[0].run, scorer.run]
    assert scorer.results("unknown") == []


def test_a_run_that_goes_on_under_its_name_keeps_its_steps(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    for step in (1, 2):
        scorer = make_scorer(small_server.address, run="first try")
        scorer.submit(step, rows)
        assert scorer.wait(30)
        scorer.close()
    scorer = make_scorer(small_server.address)
    assert states(scorer.results()) == {1: StepState.SCORED, 2: StepState.SCORED}
    assert scorer.runs() == ["first try"]
    assert {json.loads(line)["run"] for line in (tmp_path / "spool/scores.jsonl").read_text().splitlines()} == {
        "first try"
    }


def test_names_of_runs_differ_and_tell_their_time(make_scorer: ScorerMaker, tmp_path: Path) -> None:
    names = {make_scorer("127.0.0.1:1", directory=tmp_path / str(number)).run for number in range(20)}
    assert len(names) == 20
    assert all(re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{6}", name) for name in names)
    with pytest.raises(InvalidRequest, match="run=' ': give the run's name"):
        make_scorer("127.0.0.1:1", run=" ")


def test_damaged_steps_are_set_aside_and_named(
    free_port: int, make_scorer: ScorerMaker, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    scorer = make_scorer(f"127.0.0.1:{free_port}", deadline_s=0.2)
    for step in (1, 2):
        scorer.submit(step, rows)
    scorer.close(0)
    path = tmp_path / "spool/steps.sqlite"
    path.write_bytes(path.read_bytes().replace(b"carp", b"harp", 1))
    told: list[StepScores] = []
    with run_small_server(free_port):
        scorer = make_scorer(f"127.0.0.1:{free_port}", callback=told.append)
        assert scorer.wait(60)
        scorer.close()
    assert sorted(scores.state for scores in told) == [StepState.CORRUPT, StepState.SCORED]
    (aside,) = (tmp_path / "spool/corrupt").iterdir()
    assert str(aside) in next(scores.problem for scores in told if scores.state is StepState.CORRUPT)
    assert b"harp" in aside.read_bytes()
    assert scorer.counts() == {StepState.CORRUPT: 1, StepState.SCORED: 1}


@pytest.mark.parametrize(
    ("when_full", "kept", "answers"),
    [("drop_oldest", (3, 4), ["not_scored"] * 5), ("drop_newest", (0, 1), ["not_scored"] * 2 + ["dropped"] * 3)],
)
def test_what_does_not_fit_is_dropped_and_counted(
    free_port: int, make_scorer: ScorerMaker, rows: list[dict[str, Any]], when_full: Any, kept: tuple[int], answers: Any
) -> None:
    limits = SpoolLimits(max_steps=2, when_full=when_full)
    scorer = make_scorer(f"127.0.0.1:{free_port}", limits=limits, deadline_s=0.2)
    assert [scorer.submit(step, rows) for step in range(5)] == answers
    waiting = [step for step, state in states(scorer.results()).items() if state is StepState.NOT_SCORED]
    assert tuple(waiting) == kept
    assert scorer.counts() == {StepState.NOT_SCORED: 2, StepState.DROPPED: 3}
    assert all("max_steps=2" in scores.problem for scores in scorer.results() if scores.state is StepState.DROPPED)


def test_an_endless_step_is_dropped(free_port: int, make_scorer: ScorerMaker) -> None:
    scorer = make_scorer(f"127.0.0.1:{free_port}", limits=SpoolLimits(max_bytes=20_000), deadline_s=0.2)
    endless = iter(lambda: {"references": ["cat"], "prediction": "y" * 100}, None)
    assert scorer.submit(99, endless) is StepState.DROPPED
    assert "max_bytes" in scorer.results()[0].problem


def test_a_disk_that_takes_no_more_drops_the_step_and_says_so(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]]
) -> None:
    scorer = make_scorer(small_server.address)
    database = scorer._steps._database._connection
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count={pages}")
    assert scorer.submit(1, [{**row, "prediction": "x" * 20_000} for row in rows]) is StepState.DROPPED
    database.execute("PRAGMA max_page_count=1000000")
    assert scorer.submit(2, rows) is StepState.NOT_SCORED
    assert scorer.wait(30)
    assert states(scorer.results()) == {1: StepState.DROPPED, 2: StepState.SCORED}
    assert "full" in scorer.results()[0].problem


def test_closing_does_not_wait_for_a_dead_server(
    free_port: int, make_scorer: ScorerMaker, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    scorer = make_scorer(f"127.0.0.1:{free_port}")
    scorer.submit(1, rows)
    assert not scorer.close(0.3)
    with closing(sqlite3.connect(tmp_path / "spool/steps.sqlite")) as database:
        ((step, kept),) = database.execute("SELECT step, rows FROM steps").fetchall()
    assert step == 1
    assert [json.loads(line)["prediction"] for line in kept.splitlines()] == ["cat", "dog", "cat"]


def test_the_end_of_the_program_scores_what_waits(small_server: SmallServer, tmp_path: Path) -> None:
    program = _LOOP.replace("os.kill(os.getpid(), signal.SIGKILL)", "")
    subprocess.run([sys.executable, "-c", program, small_server.address, str(tmp_path)], check=True)
    with closing(sqlite3.connect(tmp_path / "steps.sqlite")) as database:
        assert database.execute("SELECT * FROM steps").fetchall() == []
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 5


def test_the_package_is_light(tmp_path: Path) -> None:
    program = "import sys, gradewire.integrations; print(sorted(m.partition('.')[0] for m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert not {"torch", "lightning", "transformers", "torchmetrics", "numpy", "wandb"} & set(
        loaded.stdout.replace("'", "").strip("[]\n").split(", ")
    )
    program = "import sys, gradewire; sys.exit('gradewire.integrations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, env=os.environ).returncode == 0


def test_pictures_wait_with_their_bytes(make_scorer: ScorerMaker, free_port: int, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG")
    scorer = make_scorer(f"127.0.0.1:{free_port}", "judge_verdict?image=true", deadline_s=0.3)
    scorer.submit(1, [{"question": "?", "references": ["a"], "prediction": "b", "images": [b"\x00\xff", picture]}])
    seen: list[Any] = []
    with run_small_server(free_port, Script(score=lambda item: (seen.append(item), 1.0)[1])):
        assert scorer.wait(60)
    assert [image.data for image in seen[0].images] == [b"\x00\xff", b"\x89PNG"]
