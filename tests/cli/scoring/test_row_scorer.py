"""Rows that a judge could not take are sent again, a bounded number of times."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, read_rows, write_rows
from tests.cli.score.judging_server import ROWS, JudgingStub, judged

from gradewire import ServerUnreachable
from gradewire.results import MetricScore, Status
from gradewire_cli.scoring.judge_watch import JudgeWatch
from gradewire_cli.scoring.row_scorer import RowRetries
from gradewire_proto.v1 import scoring_pb2, types_pb2


class Busy(JudgingStub):
    """Cannot take the odd rows in the first `times` requests with items; then as it should."""

    def __init__(self, times: int, *, retry_after_s: float | None = 0.01) -> None:
        super().__init__(self._answer)
        self.times = times
        self._retry_after_s = retry_after_s

    def _answer(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = judged(request)
        if request.items:
            self.times -= 1
        for item in reply.items:
            if self.times >= 0 and int(item.id[1:]) % 2:
                lave = item.results[-1]
                lave.Clear()
                lave.metric_index, lave.status = len(request.metrics) - 1, types_pb2.STATUS_UNAVAILABLE
                lave.message = "the judge's queue is full"
                if self._retry_after_s is not None:
                    lave.retry_after_s = self._retry_after_s
        return reply


def test_rows_that_the_judge_could_not_take_are_sent_again(command: Command, tmp_path: Path) -> None:
    file, stub = write_rows(tmp_path / "a.jsonl", ROWS[:4]), Busy(2)
    done = command("score", file, "--metrics", "smile,lave", stub=stub)
    assert done.exit_code == 0, done.output
    assert stub.sizes == [4, 2, 2], "only the rows that were left"
    assert "lave is UNAVAILABLE (the judge's queue is full): retrying 2 rows in 0.01 s" in done.stderr
    assert "retried 2 rows, and 2 of them now have an answer" in done.stderr
    straight = command("score", file, "--metrics", "smile,lave", stub=JudgingStub())
    assert read_rows(done.stdout) == read_rows(straight.stdout)


@pytest.mark.parametrize(
    ("stub", "arguments", "sizes"),
    [
        (Busy(9), (), [4, 2, 2]),
        (Busy(9), ("--retries", "0"), [4]),
        (Busy(9), ("--retries", "3"), [4, 2, 2, 2]),
        # Nobody said that trying again would help.
        (Busy(9, retry_after_s=None), (), [4]),
    ],
)
def test_retries_are_bounded(
    command: Command, tmp_path: Path, stub: Busy, arguments: tuple[str, ...], sizes: list[int]
) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS[:4]), tmp_path / "out.jsonl"
    done = command("score", file, "--metrics", "smile,lave", "--out", out, *arguments, stub=stub)
    assert (done.exit_code, stub.sizes) == (1, sizes)
    assert ("retried " in done.stderr) == (len(sizes) > 1), done.stderr
    statuses = [[result["status"] for result in row["scores"].values()] for row in read_rows(out.read_text())]
    assert statuses == [["OK", "OK"], ["OK", "UNAVAILABLE"]] * 2
    # And --resume tries them again.
    assert command("score", file, "--metrics", "smile,lave", "--out", out, "--resume").exit_code == 0
    assert all(row["scores"]["lave"]["status"] == "OK" for row in read_rows(out.read_text()))


def test_a_server_that_goes_away_while_rows_are_sent_again_takes_no_result_with_it(
    command: Command, tmp_path: Path
) -> None:
    class Leaving(Busy):
        def _answer(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
            if len(self.sizes) == 2:
                raise ServerUnreachable("it went away")
            return super()._answer(request)

    file = write_rows(tmp_path / "a.jsonl", ROWS[:4])
    done = command("score", file, "--metrics", "smile,lave", stub=Leaving(9))
    assert done.exit_code == 1, done.output
    assert [row["scores"]["lave"]["status"] for row in read_rows(done.stdout)] == ["OK", "UNAVAILABLE"] * 2


def test_a_wait_beyond_the_deadline_is_not_waited_for_and_told_once(command: Command, tmp_path: Path) -> None:
    file, stub = write_rows(tmp_path / "a.jsonl", ROWS[:12]), Busy(9, retry_after_s=900)
    done = command("score", file, "--metrics", "smile,lave", "--deadline-s", "60", stub=stub)
    assert done.exit_code == 1, done.output
    assert sum(stub.sizes) == 12, "each row once"
    assert (
        "lave is UNAVAILABLE (the judge's queue is full): not retried, because the server asks to wait 900 s, longer "
        "than --deadline-s 60. Use --resume later" in done.stderr
    )
    assert done.stderr.count("longer than --deadline-s") == 1
    assert "sent again" not in done.stderr


async def test_the_wait_that_is_asked_for_is_waited_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(pause_s: float) -> None:
        waited.append(pause_s)

    async def score(items: list[Mapping[str, Any]]) -> list[Mapping[str, MetricScore]]:
        return [{"lave": MetricScore(score=1.0, status=Status.OK)} for _ in items]

    monkeypatch.setattr(asyncio, "sleep", sleep)
    away = MetricScore(score=None, status=Status.UNAVAILABLE, retry_after_s=300.0)
    retries = RowRetries(2, longest_pause_s=600.0, judges=JudgeWatch(frozenset({"lave"}), needs_judge=True))
    (answer,) = await retries.finish([{}], [{"lave": away}], score)
    assert (answer["lave"].score, waited, retries.rows, retries.scored) == (1.0, [300.0], 1, 1)
