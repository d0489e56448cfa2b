"""Which results show that a judge cannot be used, and what a run does then."""

from pathlib import Path

import pytest
from tests.cli.conftest import Command, read_rows, write_rows
from tests.cli.score.judging_server import ROWS, JudgingStub, judged

from gradewire.results import MetricScore, Status
from gradewire_cli.problems import UnreachableError
from gradewire_cli.scoring.judge_watch import JudgeWatch, judge_status
from gradewire_proto.parts import AutoParts, JudgeParts
from gradewire_proto.v1 import scoring_pb2, types_pb2

OK, EMPTY = MetricScore(1.0, Status.OK), MetricScore(None, Status.EMPTY_PREDICTION)
RULED = MetricScore(1.0, Status.OK, parts=JudgeParts(decided_by="rule"))
REFUSED = MetricScore(None, Status.MODEL_UNAVAILABLE, "the key is refused")
AWAY = MetricScore(None, Status.UNAVAILABLE, "nobody answers")


def auto(decided_by: str, judge: str) -> AutoParts:
    return AutoParts(decided_by=decided_by, reason="", judge_status=judge)


@pytest.mark.parametrize(
    ("score", "status"),
    [
        (OK, Status.OK),
        (RULED, None),
        (EMPTY, None),
        (MetricScore(None, Status.INVALID_INPUT), None),
        (MetricScore(None, Status.TIMEOUT), None),
        (MetricScore(None, Status.UNPARSABLE), Status.UNPARSABLE),
        (REFUSED, Status.MODEL_UNAVAILABLE),
        (MetricScore(0.9, Status.OK, parts=auto("correctness", "")), None),
        (MetricScore(0.9, Status.OK, parts=auto("correctness", "UNAVAILABLE")), Status.UNAVAILABLE),
        (MetricScore(None, Status.UNAVAILABLE, parts=auto("nobody", "UNAVAILABLE")), Status.UNAVAILABLE),
        (MetricScore(0.9, Status.OK, parts=auto("judge", "OK")), Status.OK),
    ],
)
def test_what_a_result_says_about_its_judge(score: MetricScore, status: Status | None) -> None:
    assert judge_status(score) is status


def watch(*labels: str, others: bool = False) -> JudgeWatch:
    return JudgeWatch(frozenset(labels), needs_judge=not others)


def test_rows_wait_until_the_judge_has_shown_itself() -> None:
    seen = watch("lave")
    seen.check([{"lave": RULED}, {"lave": EMPTY}, {}])
    assert seen.holds_rows
    seen.check([{"lave": RULED}, {"lave": OK}])
    assert not seen.holds_rows
    assert not watch("lave", others=True).holds_rows


@pytest.mark.parametrize("failed", [REFUSED, AWAY])
def test_a_run_of_judges_alone_stops_when_all_of_them_are_down(failed: MetricScore) -> None:
    seen = watch("lave", "judge_grade")
    seen.check([{"lave": failed, "judge_grade": RULED}])
    with pytest.raises(UnreachableError, match=f"^judge_grade, lave: {failed.message}$"):
        seen.check([{"lave": failed, "judge_grade": failed}])


def test_a_judge_that_has_answered_may_be_away_but_not_refused() -> None:
    seen = watch("lave")
    seen.check([{"lave": OK}])
    seen.check([{"lave": AWAY}])
    assert (seen.down, seen.is_hopeless) == ({}, False)
    rows = [{"lave": OK}, {"lave": REFUSED}, {"lave": OK}]
    with pytest.raises(UnreachableError, match="the key is refused"):
        seen.check(rows)
    assert [seen.is_judged(row) for row in rows] == [True, False, True]


def test_a_judge_that_comes_back_is_up_again(capsys: pytest.CaptureFixture[str]) -> None:
    seen = watch("lave", "judge_grade", others=True)
    for _ in range(3):
        seen.check([{"lave": AWAY, "judge_grade": AWAY, "smile": OK}])
    assert seen.is_hopeless
    assert capsys.readouterr().err == (
        "judge_grade, lave: nobody answers. Rows that need this judge get no score; other metrics are scored\n"
    )
    seen.check([{"lave": OK, "judge_grade": OK, "smile": OK}])
    assert (seen.down, seen.is_hopeless) == ({}, False)


class Down(JudgingStub):
    """A server whose judge refuses every row from the one with this number on; "rule" is ruled."""

    def __init__(self, first: int) -> None:
        super().__init__(self._answer)
        self.first = first

    def _answer(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = judged(request)
        for item, answered in zip(request.items, reply.items, strict=True):
            if int(item.id[1:]) >= self.first and not item.prediction.startswith("rule"):
                lave = answered.results[-1]
                lave.Clear()
                lave.metric_index, lave.status = len(request.metrics) - 1, types_pb2.STATUS_MODEL_UNAVAILABLE
                lave.message = "the key is refused"
        return reply


def test_a_dead_judge_writes_no_row_and_no_file(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "prediction": "rule"} if place < 20 else row for place, row in enumerate(ROWS)]
    file, out = write_rows(tmp_path / "a.jsonl", rows), tmp_path / "out.jsonl"
    done = command("score", file, "--metrics", "lave", "--out", out, "--quiet", stub=Down(0))
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == "Error: lave: the key is refused"
    assert not out.exists()
    printed = command("score", file, "--metrics", "lave", "--quiet", stub=Down(0))
    assert (printed.exit_code, printed.stdout) == (3, "")


def test_rows_of_a_rule_alone_are_all_written(command: Command, tmp_path: Path) -> None:
    rows = [{"id": f"r{place}", "references": ["a"], "prediction": "rule"} for place in range(600)]
    done = command("score", write_rows(tmp_path / "a.jsonl", rows), "--metrics", "lave", stub=Down(0))
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in read_rows(done.stdout)] == [row["id"] for row in rows]


def test_what_was_judged_before_stays_and_the_rest_is_resumed(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    done = command("score", file, "--metrics", "lave", "--out", out, "--quiet", stub=Down(13))
    assert done.exit_code == 3, done.output
    assert done.stderr.splitlines()[-1] == (
        f"Error: lave: the key is refused; 13 rows are in {out}. Continue with --resume"
    )
    assert command("score", file, "--metrics", "lave", "--out", out, "--resume", stub=JudgingStub()).exit_code == 0
    assert [row["scores"]["lave"]["status"] for row in read_rows(out.read_text())] == ["OK"] * len(ROWS)


def test_few_scored_rows_stand_in_front_of_their_mean(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    done = command("score", file, "--metrics", "smile,lave", stub=Down(12))
    assert "12 of 30 rows: 0.0" in done.stderr
    assert done.stderr.count("the key is refused") == 1
    many = command("score", file, "--metrics", "smile,lave", stub=Down(15))
    assert "of 30 rows: " not in many.stderr
