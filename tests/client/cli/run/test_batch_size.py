"""How many rows go into a request of a judge."""

from pathlib import Path

from tests.client.cli.conftest import Command, write_rows
from tests.client.cli.score.judging_server import ROWS, JudgingStub

from gradewire._calls.chunks import JUDGE_CHUNK_ITEMS
from gradewire.cli.run.batch_size import BATCH_ROWS, FIRST_JUDGED_ROWS, AdaptiveBatchSize


def test_requests_of_a_judge_begin_small_and_grow_while_they_are_quick(command: Command, tmp_path: Path) -> None:
    rows = [{"references": ["a"], "prediction": "x"}] * 1000
    file, stub = write_rows(tmp_path / "a.jsonl", rows), JudgingStub()
    done = command("score", file, "--metrics", "lave", "--quiet", stub=stub)
    assert (done.exit_code, sum(stub.sizes)) == (0, 1000)
    assert stub.sizes[0] == FIRST_JUDGED_ROWS
    assert max(stub.sizes) == JUDGE_CHUNK_ITEMS, "calls of more rows are cut into such requests"
    plain = JudgingStub()
    command("score", file, "--metrics", "smile", "--quiet", stub=plain)
    assert plain.sizes[0] == BATCH_ROWS


def test_what_counts_over_a_request_has_its_rows_together_beside_a_judge_too(command: Command, tmp_path: Path) -> None:
    file, stub = write_rows(tmp_path / "a.jsonl", ROWS), JudgingStub()
    assert command("score", file, "--metrics", "cider?corpus=request,lave", "--quiet", stub=stub).exit_code == 0
    assert stub.sizes == [len(ROWS)]


def test_the_size_follows_the_judge() -> None:
    pace = AdaptiveBatchSize(judged=True, deadline_s=600)
    pace.took(1, rows=4, computed=4)
    assert pace.rows == 8
    pace.took(1, rows=4, computed=4)
    assert pace.rows == 8, "a request from before the last change says nothing"
    pace.took(1, rows=8, computed=3)
    assert pace.rows == 8, "remembered answers say nothing"
    pace.took(30, rows=8, computed=8)
    assert pace.rows == 8
    for _ in range(9):
        pace.took(100, rows=8, computed=8)
    assert pace.rows == 1
    hurried = AdaptiveBatchSize(judged=True, deadline_s=20)
    hurried.took(6, rows=4, computed=4)
    assert hurried.rows == 2, "what is in flight is done within the deadline"
