"""How many rows go into a request of a judge."""

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest
from tests.cli.conftest import Command, answer, write_rows
from tests.cli.judged import rows_of
from tests.cli.score.judging_server import ROWS, JudgingStub

from gradewire import AsyncClient
from gradewire._calls.score import JUDGE_CHUNK_ITEMS
from gradewire.errors import DeadlineExceeded
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire.testing import ScoreFunction, StubTransport
from gradewire.transport import Q, R, RpcMethod
from gradewire_cli.problems import InputError
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.input_file import InputFile
from gradewire_cli.scoring.corpus import BATCH_ROWS, with_file_corpus
from gradewire_cli.scoring.row_scorer import FIRST_JUDGED_ROWS, AdaptiveBatchSize
from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2


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


class Recorder(StubTransport):
    """Remembers what it was asked to prepare and to score."""

    def __init__(self) -> None:
        super().__init__(self._remember)
        self.prepared: list[references_pb2.PrepareRequest] = []
        self.scored: list[scoring_pb2.ScoreRequest] = []

    def _remember(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        self.scored.append(request)
        return answer(request)

    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        assert isinstance(sent, references_pb2.PrepareRequest)
        self.prepared.append(sent)
        async for progress in super().stream(method, sent, timeout_s=timeout_s):
            yield progress


@pytest.mark.parametrize("verb", ["agree", "score"])
@pytest.mark.parametrize(
    ("metrics", "weighted"),
    [
        ("rouge_l,cider", ["cider"]),
        ("cider?corpus=prepared", ["cider"]),
        ("sbert,bertscore?idf=prepared", ["bertscore"]),
    ],
)
def test_the_references_of_the_file_are_prepared_first(
    command: Command, tmp_path: Path, verb: str, metrics: str, weighted: list[str]
) -> None:
    rows = [{**row, "references": [f"reference {index % 7}"]} for index, row in enumerate(rows_of(70))]
    stub = Recorder()
    options = ("--resamples", "100") if verb == "agree" else ()
    done = command(verb, write_rows(tmp_path / "rows.jsonl", rows), "--metrics", metrics, *options, stub=stub)
    assert done.exit_code == 0, done.output
    (request,) = stub.prepared
    assert [spec.WhichOneof("metric") for spec in request.metrics] == weighted
    entries = {(entry.question, tuple(entry.references)) for entry in request.entries}
    assert entries == {(row["question"], tuple(row["references"])) for row in rows}
    assert {scored.reference_set for scored in stub.scored} == {request.reference_set}
    assert f"(reference set {request.reference_set})" in done.stderr
    for scored in stub.scored:
        for spec in scored.metrics:
            if spec.WhichOneof("metric") == "cider":
                assert spec.cider.corpus == types_pb2.CORPUS_PREPARED


def test_questions_without_an_answer_are_not_counted(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "references": [f"reference {index}"]} for index, row in enumerate(rows_of(6))]
    rows[1] |= {"references": [], "answerable": False}
    stub = Recorder()
    done = command("score", write_rows(tmp_path / "rows.jsonl", rows), "--metrics", "bertscore?idf=prepared", stub=stub)
    assert done.exit_code == 0, done.output
    assert [len(request.entries) for request in stub.prepared] == [5]
    assert sum(len(request.items) for request in stub.scored) == 6


def test_a_set_that_is_named_is_not_made_again(command: Command, tmp_path: Path) -> None:
    stub = Recorder()
    file = write_rows(tmp_path / "rows.jsonl", rows_of(10))
    done = command("score", file, "--metrics", "cider?corpus=prepared", "--reference-set", "mine", stub=stub)
    assert done.exit_code == 0, done.output
    assert stub.prepared == []
    assert {scored.reference_set for scored in stub.scored} == {"mine"}


def test_metrics_without_a_corpus_prepare_nothing(command: Command, tmp_path: Path) -> None:
    stub = Recorder()
    file = write_rows(tmp_path / "rows.jsonl", rows_of(10))
    assert command("score", file, "--metrics", "bertscore,sbert", stub=stub).exit_code == 0
    assert stub.prepared == []


@pytest.mark.parametrize("metrics", ["cider?corpus=request", "bertscore?idf=request"])
def test_the_corpus_of_a_request_is_for_files_that_fit_one(command: Command, tmp_path: Path, metrics: str) -> None:
    long = write_rows(tmp_path / "long.jsonl", rows_of(65))
    done = command("score", long, "--metrics", metrics)
    assert done.exit_code == 2
    assert "has 65 rows and may need several requests of 64 rows" in done.stderr
    assert "corpus=prepared" in done.stderr
    short = write_rows(tmp_path / "short.jsonl", rows_of(64))
    stub = Recorder()
    assert command("score", short, "--metrics", metrics, stub=stub).exit_code == 0
    assert [len(request.items) for request in stub.scored if request.items] == [64]


WEIGHTED = ["cider?corpus=request", "smile,bertscore?idf=request"]


def timed_out(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    reply = answer(request)
    for item in reply.items[4:5]:
        for result in item.results:
            result.CopyFrom(types_pb2.MetricResult(metric_index=result.metric_index, status=types_pb2.STATUS_TIMEOUT))
    return reply


def no_time(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    if request.items:
        raise DeadlineExceeded("too late")
    return answer(request)


@pytest.mark.parametrize("metrics", WEIGHTED)
@pytest.mark.parametrize("why", ["broken off", "one timed out", "one changed", "one added", "one waits aside"])
def test_the_rest_of_a_request_is_not_scored_over_another_corpus(
    command: Command, tmp_path: Path, metrics: str, why: str
) -> None:
    rows, out = rows_of(6), tmp_path / "out.jsonl"
    file = write_rows(tmp_path / "rows.jsonl", rows)
    first = StubTransport(timed_out) if why == "one timed out" else None
    command("score", file, "--metrics", metrics, "--out", out, stub=first)
    lines = out.read_text().splitlines(keepends=True)
    assert len(lines) == 6
    if why == "broken off":
        out.write_text("".join(lines[:3]))
    elif why == "one waits aside":
        out.write_text("")
        (tmp_path / "out.jsonl.resume").write_text(lines[5])
    elif why == "one changed":
        write_rows(file, [*rows[:3], {**rows[3], "references": ["another"]}, *rows[4:]])
    elif why == "one added":
        write_rows(file, rows_of(7))
    before = out.read_text()
    stub = Recorder()
    done = command("score", file, "--metrics", metrics, "--out", out, "--resume", stub=stub)
    assert done.exit_code == 2
    assert "corpus=request counts the rows of one request" in done.stderr
    assert "--overwrite" in done.stderr
    assert out.read_text() == before
    assert not any(request.items for request in stub.scored)


@pytest.mark.parametrize("metrics", WEIGHTED)
@pytest.mark.parametrize("first", [None, no_time])
def test_a_request_is_gone_on_with_where_all_of_it_is_done_or_none(
    command: Command, tmp_path: Path, metrics: str, first: ScoreFunction | None
) -> None:
    # A row that cannot be read is in no request: it counts on neither side.
    file, out = write_rows(tmp_path / "rows.jsonl", rows_of(6)), tmp_path / "out.jsonl"
    file.write_text("no row\n" + file.read_text())
    begun = command("score", file, "--metrics", metrics, "--out", out, stub=StubTransport(first) if first else None)
    assert begun.exit_code == 1
    stub = Recorder()
    done = command("score", file, "--metrics", metrics, "--out", out, "--resume", stub=stub)
    assert done.exit_code == 1, done.output
    assert [len(request.items) for request in stub.scored if request.items] == ([6] if first else [])
    straight = tmp_path / "straight.jsonl"
    command("score", file, "--metrics", metrics, "--out", straight)
    assert out.read_text() == straight.read_text()


def test_an_output_that_cannot_be_read_is_named(command: Command, tmp_path: Path) -> None:
    file, aside = write_rows(tmp_path / "rows.jsonl", rows_of(6)), tmp_path / "out.jsonl.resume"
    aside.mkdir()
    done = command("score", file, "--metrics", WEIGHTED[0], "--out", tmp_path / "out.jsonl", "--resume")
    assert (done.exit_code, done.stderr) == (2, f"Error: {aside}: Is a directory\n")


async def test_standard_input_cannot_be_a_corpus() -> None:
    source = InputFile(("-",), RowOptions())
    async with AsyncClient(transport=Recorder()) as client:
        with pytest.raises(
            InputError, match=r"cider would read standard input twice\. Name a file, or use --reference"
        ):
            await with_file_corpus(client, source, choose_metrics("rouge_l,cider", MetricDefaults()), quiet=True)
        with pytest.raises(InputError, match="standard input may need several requests"):
            await with_file_corpus(client, source, choose_metrics("cider?corpus=request", MetricDefaults()), quiet=True)
        plain = choose_metrics("rouge_l,sbert", MetricDefaults())
        assert await with_file_corpus(client, source, plain, quiet=True) == plain
