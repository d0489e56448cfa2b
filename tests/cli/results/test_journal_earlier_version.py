"""Files of the version before the journal are gone on with; `earlier` has them as its runs left them after breaks."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.bulk.conftest import Bulk
from tests.cli.compare.slow_judge import longer, score
from tests.cli.conftest import Command, answer, read_rows

from gradewire.testing import StubTransport
from gradewire_cli.bulk.output import check_same, input_digests, saved_run
from gradewire_cli.bulk.parts import PartId, PartStore
from gradewire_cli.results.manifest import Machine, RunCounts, RunManifest, RunTimes, Versions
from gradewire_cli.results.manifest_entries import metric_fields, reading_parameters
from gradewire_cli.results.resumable_output import read_results
from gradewire_proto.v1 import judging_pb2, scoring_pb2

EARLIER = Path(__file__).parent / "earlier"


class Counting(StubTransport):
    """Answers, and notes what it is asked about."""

    def __init__(self) -> None:
        super().__init__(self._score, compare=self._compare)
        self.scored: list[str] = []
        self.judged: list[str] = []

    def _score(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        self.scored += [item.id for item in request.items]
        return score(request)

    def _compare(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        self.judged += [pair.id for pair in request.pairs if pair.id]
        return longer(request)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of these files, as the working directory."""
    folder = tmp_path / "earlier"
    shutil.copytree(EARLIER, folder)
    monkeypatch.chdir(folder)
    return folder


def resumed(command: Command, *arguments: str) -> Counting:
    stub = Counting()
    done = command(*arguments, "--resume", "--quiet", stub=stub)
    assert done.exit_code == 0, done.output
    return stub


@pytest.mark.parametrize(("out", "scored"), [("scores.jsonl", []), ("waiting.jsonl", ["q1"]), ("scores.csv", [])])
def test_scores_are_gone_on_with(there: Path, command: Command, out: str, scored: list[str]) -> None:
    whole = (there / "scores.jsonl").read_bytes()
    assert resumed(command, "score", "base.jsonl", "--out", out).scored == scored
    assert (there / out).read_bytes() == (whole if out.endswith("l") else (EARLIER / out).read_bytes())
    assert not (there / f"{out}.resume").exists()


def test_a_table_that_broke_off_is_gone_on_with(there: Path, command: Command) -> None:
    assert resumed(command, "score", "base.jsonl", "--out", "broken.csv").scored == ["q2", "q3"]
    assert (there / "broken.csv").read_bytes() == (there / "scores.csv").read_bytes()


def test_pairs_that_wait_beside_are_not_judged_again(there: Path, command: Command) -> None:
    files = ("compare", "base.jsonl", "new.jsonl", "--by", "compare", "--resamples", "100")
    asked = resumed(command, *files, "--out", "pairs.jsonl")
    assert (asked.scored, asked.judged) == ([], ["q3"])
    assert not (there / "pairs.jsonl.resume").exists()
    command(*files, "--out", "straight.jsonl", "--quiet", stub=Counting())
    assert (there / "pairs.jsonl").read_bytes() == (there / "straight.jsonl").read_bytes()


def test_a_leaderboard_is_gone_on_with(there: Path, command: Command) -> None:
    files = ("leaderboard", "base.jsonl", "new.jsonl", "--by", "compare", "--resamples", "100")
    assert len(resumed(command, *files, "--out", "board.jsonl").judged) == 2
    assert len(read_rows((there / "board.jsonl").read_text())) == 4


@pytest.mark.usefixtures("there")
def test_parts_of_bulk_are_those_of_this_run() -> None:
    run = Bulk(PartStore("bulk.jsonl.parts"), [Path("base.jsonl")])
    before = saved_run(run.store)
    assert before is not None
    fields: dict[str, Any] = metric_fields(run.lines)
    now = RunManifest(
        command="bulk",
        versions=Versions(gradewire="0.2.0"),
        counts=RunCounts(rows=0),
        times=RunTimes(began_at="2026-11-26T15:00:00+00:00", wall_s=0.0, cpu_s=0.0),
        machine=Machine(processor="another", cores=64),
        inputs=tuple(input_digests(run.source)),
        parameters={**reading_parameters(run.source), "part_rows": 4},
        **fields,
    )
    check_same(run.store.path_or_url, before, now)
    assert run.store.parts() == {PartId(0, 0): True}
    assert run.run(StubTransport(answer)) == []


def test_a_file_of_pairs_is_no_output_of_rows(there: Path, command: Command) -> None:
    done = command("score", "base.jsonl", "--out", "board.jsonl", "--resume")
    assert (done.exit_code, "line 1 is not an output row from gradewire score" in done.stderr) == (2, True)
    assert (there / "board.jsonl").read_bytes() == (EARLIER / "board.jsonl").read_bytes()
    assert len(list(read_results(there / "scores.jsonl"))) == 4
