"""`gradewire calibrate --model M --scores FILE`: whose scores are fitted where FILE has several encoders' ones."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command, length_score, write_rows
from tests.cli.judged import rows_of

from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2

# Scores of the second encoder are half of the first's, and so is a threshold fitted on them.
SCALES = {"one@11111111": 1.0, "two@22222222": 0.5}


def scores_by_model(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    reply = echo_scores(request, score=length_score)
    for item in reply.items:
        for result in item.results:
            result.score *= SCALES[request.metrics[result.metric_index].smile.model]
    return reply


@pytest.fixture
def files(command: Command, tmp_path: Path) -> tuple[Path, Path]:
    """Labelled rows, and their scores by both encoders."""
    rows, scores = write_rows(tmp_path / "rows.jsonl", rows_of(80)), tmp_path / "scores.jsonl"
    options = ("--metrics", ",".join(f"smile?model={model}" for model in SCALES), "--out", scores, "--quiet")
    assert command("score", rows, *options, stub=StubTransport(scores_by_model)).exit_code == 0
    return rows, scores


def test_the_model_chooses_among_scores_of_several(command: Command, files: tuple[Path, Path], tmp_path: Path) -> None:
    rows, scores = files
    fitted = {}
    for name, options in {
        "one": ("--model", "one"),
        "two": ("--model", "two"),
        # What the metric says itself counts before, as it does where answers are scored.
        "said": ("--metric", "smile?model=two", "--model", "one"),
    }.items():
        out = tmp_path / f"{name}.json"
        run = ("--scores", scores, "--json", out, "--dry-run", "--quiet", "--resamples", "100", *options)
        done = command("calibrate", rows, *run)
        assert done.exit_code == 0, done.stderr
        assert f"nothing was stored for {'one' if name == 'one' else 'two'}@" in done.stdout
        fitted[name] = json.loads(out.read_text())["threshold"]
    assert fitted["two"] == fitted["said"] == pytest.approx(fitted["one"] / 2, abs=0.001)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "--metric smile matches 2 of the scored metrics"),
        (("--model", "three"), "--metric smile of model three matches none of the scored metrics"),
        (("--model", "one@ffffffff"), "--metric smile of model one@ffffffff matches none"),
    ],
)
def test_what_the_file_has_is_said_where_the_model_leaves_none_or_several(
    command: Command, files: tuple[Path, Path], options: tuple[str, ...], says: str
) -> None:
    rows, scores = files
    done = command("calibrate", rows, "--scores", scores, "--dry-run", "--quiet", *options)
    told = " ".join(done.stderr.split())
    assert (done.exit_code, says in told) == (2, True), told
    columns = [f"smile?model={model} (smile/1?model={model}&synthetic=none)" for model in SCALES]
    assert told.endswith(f". Available scores: {', '.join(columns)}")
