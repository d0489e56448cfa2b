"""A corpus made of the file that is scored."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.client.cli.conftest import Command, answer, write_rows
from tests.client.cli.judged import rows_of

from gradewire import AsyncClient
from gradewire.cli.file_corpus import with_file_corpus
from gradewire.cli.files import InputFile
from gradewire.cli.pipeline import ScorePlan
from gradewire.cli.problems import InputError
from gradewire.cli.rows import RowOptions
from gradewire.testing import StubTransport
from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2


class Recorder(StubTransport):
    """Remembers what it was asked to prepare and to score."""

    def __init__(self) -> None:
        super().__init__(self._remember)
        self.prepared: list[references_pb2.PrepareRequest] = []
        self.scored: list[scoring_pb2.ScoreRequest] = []

    def _remember(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        self.scored.append(request)
        return answer(request)

    async def prepare(
        self, request: references_pb2.PrepareRequest, *, timeout_s: float
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        self.prepared.append(request)
        async for progress in super().prepare(request, timeout_s=timeout_s):
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
    assert f"are counted (reference set {request.reference_set})" in done.stderr
    for scored in stub.scored:
        for spec in scored.metrics:
            if spec.WhichOneof("metric") == "cider":
                assert spec.cider.corpus == types_pb2.CORPUS_PREPARED


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
    assert "has 65 rows and may need more than one request, of 64 rows each" in done.stderr
    assert "corpus=prepared" in done.stderr
    short = write_rows(tmp_path / "short.jsonl", rows_of(64))
    stub = Recorder()
    assert command("score", short, "--metrics", metrics, stub=stub).exit_code == 0
    assert [len(request.items) for request in stub.scored if request.items] == [64]


async def test_standard_input_cannot_be_a_corpus() -> None:
    source = InputFile("-", "jsonl", RowOptions())
    async with AsyncClient(transport=Recorder()) as client:
        with pytest.raises(InputError, match="cider: standard input cannot be read twice; give a file, or --reference"):
            await with_file_corpus(client, source, ScorePlan(metrics="rouge_l,cider"), quiet=True)
        with pytest.raises(InputError, match="standard input may need more than one request"):
            await with_file_corpus(client, source, ScorePlan(metrics="cider?corpus=request"), quiet=True)
        plain = ScorePlan(metrics="rouge_l,sbert")
        assert await with_file_corpus(client, source, plain, quiet=True) == plain
