"""Verdicts that are not to be trusted: counted by score, agree and the report, and told apart in accuracy."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command, answer, write_rows

from gradewire import Client, CorrectnessParts, ScoreWarning
from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2, types_pb2

# Twenty rows; every fourth verdict is uncertain, and wrong; all certain ones are right.
ROWS = [
    {
        "id": f"row {index}",
        "question": f"question {index}",
        "references": "a",
        "prediction": ("unsure " if index % 4 == 0 else "sure ") + ("right" if index % 2 else "wrong"),
        "label": index % 2 if index % 4 else 1 - index % 2,
    }
    for index in range(20)
]


def correctness(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    reply = answer(request)
    for item, answered in zip(request.items, reply.items, strict=True):
        for spec, result in zip(request.metrics, answered.results, strict=True):
            if spec.WhichOneof("metric") == "correctness" and result.status == types_pb2.STATUS_OK:
                uncertain = item.prediction.startswith("unsure")
                result.correct = "right" in item.prediction
                result.correctness.CopyFrom(
                    types_pb2.CorrectnessParts(features={"b": 2.0, "a": 1.0}, uncertain=uncertain, fit="0" * 12)
                )
                if uncertain:
                    result.warnings.append(types_pb2.WARNING_UNCERTAIN)
    return reply


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "a.jsonl", ROWS)


def test_score_tells_how_many_are_uncertain(command: Command, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = command("score", file, "--metrics", "correctness,smile", "--out", out, stub=StubTransport(correctness))
    assert done.exit_code == 0
    assert "correctness: 5 of 20 verdicts are uncertain (25.0%)" in done.stderr
    # 10 of 15 certain verdicts say right.
    assert "The share of right answers among the other verdicts is 0.667" in done.stderr
    assert "smile: " not in done.stderr.partition("verdicts are uncertain")[0].splitlines()[-1]
    first = json.loads(out.read_text().splitlines()[0])["scores"]["correctness"]
    assert (first["warnings"], first["uncertain"], first["features"]) == (["UNCERTAIN"], True, {"a": 1.0, "b": 2.0})
    resumed = command("score", file, "--metrics", "correctness,smile", "--out", out, "--resume")
    assert "correctness: 5 of 20 verdicts are uncertain" in resumed.stderr


def test_where_many_are_uncertain_a_level_is_recommended(command: Command, file: Path, tmp_path: Path) -> None:
    hint = "label about 50 and run: gradewire calibrate FILE --metric correctness --level"
    few = command("score", file, "--metrics", "correctness", stub=StubTransport(correctness)).stderr
    assert hint not in few
    unsure = [{**row, "prediction": str(row["prediction"]).replace("sure", "unsure")} for row in ROWS[: len(ROWS) // 2]]
    many = write_rows(tmp_path / "many.jsonl", [*unsure, *ROWS[len(ROWS) // 2 :]])
    for name, options in {"score": (), "agree": ("--resamples", "100")}.items():
        done = command(name, many, "--metrics", "correctness,exact_match", *options, stub=StubTransport(correctness))
        assert (done.stdout + done.stderr).count(hint) == 1


def test_agree_tells_what_the_others_are_worth(command: Command, file: Path, tmp_path: Path) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "page.html"
    options = ("--resamples", "100", "--json", figures, "--html", page)
    done = command("agree", file, "--metrics", "correctness,exact_match", *options, stub=StubTransport(correctness))
    assert done.exit_code == 0
    told = "correctness: 5 of 20 verdicts are uncertain (25.0%); accuracy: 1.000 without them, 0.750 with them"
    assert told in done.stdout
    assert "exact_match: 0 of" not in done.stdout
    metrics = json.loads(figures.read_text())["metrics"]
    expected = {"judged": 20, "uncertain": 5, "accuracy": 0.75, "accuracy_certain": 1.0}
    assert metrics["correctness"]["abstention"] == expected
    assert metrics["exact_match"]["abstention"] is None
    assert told[1:] in page.read_text()


def test_the_summary_in_python() -> None:
    with Client(transport=StubTransport(correctness)) as client:
        report = client.score([{"references": ["a"], "prediction": row["prediction"]} for row in ROWS], "correctness")
    summary = report.summary()["correctness"]
    assert (summary.uncertain, summary.share_right, summary.share_right_certain) == (5, 0.5, pytest.approx(2 / 3))
    assert report[0].scores["correctness"].warnings == (ScoreWarning.UNCERTAIN,)
    parts = report[0].scores["correctness"].parts
    assert isinstance(parts, CorrectnessParts)
    assert list(parts.features) == ["a", "b"]
    assert (parts.uncertain, parts.band_lower, parts.fit) == (True, None, "0" * 12)


def test_records_and_tables_hold_the_features() -> None:
    with Client(transport=StubTransport(correctness)) as client:
        report = client.score(
            [{"references": ["a"], "prediction": "sure"}, {"references": ["a"], "prediction": " "}], "correctness"
        )
    assert report.to_records()[0]["features"] == {"a": 1.0, "b": 2.0}
    table = report.to_arrow()
    assert [None if cell is None else dict(cell) for cell in table.column("features").to_pylist()] == [
        {"a": 1.0, "b": 2.0},
        None,
    ]
    assert table.column("uncertain").to_pylist() == [False, None]
