"""`gradewire score` with metrics of all kinds: names, parameters, parts and verdicts on the way to file and summary."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.client.cli.conftest import Command, answer, read_rows, write_rows
from tests.client.cli.judged import rows_of

from gradewire.cli.output.summary import MetricTally, verdict
from gradewire.metric_types import METRIC_TYPES
from gradewire.metric_types.wire import wire_parameters
from gradewire.testing import StubTransport
from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2, types_pb2

ROWS = [{"references": ["a"], "prediction": "x" * length} for length in (20, 40, 90)]


def listing(*available: str, missing: tuple[str, ...] = ()) -> StubTransport:
    """A server that lists metrics."""
    metrics = [models_pb2.Metric(name=name, available=True) for name in available]
    metrics += [models_pb2.Metric(name=name, available=False) for name in missing]
    return StubTransport(answer, models=models_pb2.ListModelsResponse(metrics=metrics, server_version="stub"))


def labels_of(command: Command, file: Path, metrics: str, stub: StubTransport) -> list[str]:
    done = command("score", file, "--metrics", metrics, "--quiet", stub=stub)
    assert done.exit_code == 0, done.stderr
    return list(read_rows(done.stdout)[0]["scores"])


def test_all_is_what_the_server_can_compute_and_smile(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    # A metric of a later server is not one that this client can ask for.
    server = listing("bleu", "exact_match", "of_tomorrow", missing=("sbert", "smile"))
    assert labels_of(command, file, "all", server) == ["smile", "exact_match", "bleu"]
    with_more = labels_of(command, file, "bleu?max_ngram=2,all", server)
    assert with_more == ["bleu?max_ngram=2", "smile", "exact_match", "bleu"]
    without_judge = [name for name, kind in METRIC_TYPES.items() if not kind.needs_judge]
    assert labels_of(command, file, "all", listing(*METRIC_TYPES)) == without_judge


def test_all_leaves_out_what_the_encoder_cannot_compute(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    server = StubTransport(
        answer,
        models=models_pb2.ListModelsResponse(
            metrics=[models_pb2.Metric(name=name, available=True) for name in ("smile", "sbert", "calibrated")],
            models=[
                models_pb2.Model(name="judge", kind="judge", is_default=True),
                models_pb2.Model(name="fitted", kind="encoder", is_default=True),
                models_pb2.Model(name="bare", kind="encoder", without_metrics={"calibrated": "it has no fit"}),
            ],
        ),
    )
    assert labels_of(command, file, "all", server) == ["smile", "sbert", "calibrated"]
    for model in ("bare", "bare@" + "1" * 12):
        done = command("score", file, "--metrics", "all", "--model", model, stub=server)
        assert (done.exit_code, list(read_rows(done.stdout)[0]["scores"])) == (0, ["smile", "sbert"])
        assert "left out of all: calibrated (it has no fit)" in done.stderr
    # Who asks for it by name is told by the server what is missing.
    assert "calibrated" in labels_of(command, file, "calibrated,all", server)


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ("all,bleu", ["smile", "exact_match", "cider", "bleu"]),
        ("bleu,all", ["bleu", "smile", "exact_match", "cider"]),
        ("all,bleu/1,all", ["smile", "exact_match", "cider", "bleu"]),
        ("all,smile:v1", ["exact_match", "bleu", "cider", "smile"]),
        ("all,smile:fast", ["smile:v1", "exact_match", "bleu", "cider", "smile:fast"]),
        ("all,cider?corpus=prepared", ["smile", "exact_match", "bleu", "cider"]),
        ("all,bleu?max_ngram=2", ["smile", "exact_match", "bleu", "cider", "bleu?max_ngram=2"]),
    ],
)
def test_all_leaves_out_what_is_written_beside_it(
    command: Command, tmp_path: Path, metrics: str, expected: list[str]
) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    assert labels_of(command, file, metrics, listing("exact_match", "bleu", "cider")) == expected


def test_a_metric_that_is_written_twice_is_refused_beside_all_too(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    done = command("score", file, "--metrics", "all,bleu,bleu", stub=listing("bleu"))
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "Error: metrics asks for bleu twice: leave one")


@pytest.mark.parametrize(
    "verb", [("score",), ("agree", "--resamples", "100"), ("bench", "accuracy", "--resamples", "100")]
)
@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_all_says_what_it_leaves_out_and_why(
    command: Command, tmp_path: Path, verb: tuple[str, ...], quiet: tuple[str, ...]
) -> None:
    file = write_rows(tmp_path / "a.jsonl", rows_of(8))
    there = set(METRIC_TYPES) - {"meteor", "sbert", "bertscore", "cider"}
    server = StubTransport(
        answer,
        models=models_pb2.ListModelsResponse(
            metrics=[
                *(models_pb2.Metric(name=name, available=name != "smile", missing="no encoder") for name in there),
                models_pb2.Metric(name="sbert", missing="no encoder"),
                models_pb2.Metric(name="bertscore", missing="no encoder"),
                models_pb2.Metric(name="meteor", missing="WordNet's files are not there"),
            ]
        ),
    )
    done = command(*verb, file, "--metrics", "all", *quiet, stub=server)
    assert done.exit_code == 0, done.output
    assert [line for line in done.stderr.splitlines() if line.startswith("left out")] == [
        "left out of all: sbert, bertscore (no encoder)",
        "left out of all: meteor (WordNet's files are not there)",
        "left out of all: cider (the server does not have it)",
    ]
    prepared = command("prepare", file, "--metrics", "all", *quiet, stub=server)
    assert ("left out of all: meteor" in prepared.stderr) is not bool(quiet), "--quiet prints the name and nothing else"


@pytest.mark.parametrize(
    ("metrics", "there"),
    [
        (("all",), False),
        (("all", "--reference-set", "mine"), True),
        (("all,bertscore?idf=prepared&reference_set=mine",), True),
    ],
)
def test_all_on_standard_input_leaves_out_cider_unless_a_set_is_named(
    command: Command, tmp_path: Path, metrics: tuple[str, ...], *, there: bool
) -> None:
    with write_rows(tmp_path / "a.jsonl", ROWS).open("rb") as rows:
        done = command("score", "-", "--metrics", *metrics, stub=listing("bleu", "cider"), stdin=rows)
    assert done.exit_code == 0, done.output
    assert ("cider" in read_rows(done.stdout)[0]["scores"]) is there
    said = "left out of all: cider (it counts the references of the file first, and standard input cannot be read twice"
    assert (said in done.stderr) is not there


def test_the_help_says_all_there_is_to_write(command: Command) -> None:
    shown = " ".join(command("score", "--help").stdout.split())
    for name in METRIC_TYPES:
        assert f" {name} " in shown
        for parameter in wire_parameters(name).values():
            values = "|".join(parameter.choices)
            assert f":{values}" in shown if parameter.name == "preset" else f"{parameter.name}={values}" in shown


def test_the_help_offers_nothing_that_is_always_refused(command: Command) -> None:
    shown = " ".join(command("score", "--help").stdout.split())
    assert "cider corpus=request|prepared " in shown
    assert "idf=none|request|prepared" in shown


def with_warnings(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    reply = answer(request)
    for item in reply.items:
        for result in item.results[1:]:
            result.warnings.append(types_pb2.WARNING_TRUNCATED)
    return reply


def test_what_holds_of_several_metrics_is_said_once(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", [*ROWS, {"references": ["a"], "prediction": " "}])
    file.write_text(file.read_text() + "no row\n")
    done = command("score", file, "--metrics", "bleu,rouge_l,meteor", stub=StubTransport(with_warnings))
    said = [
        line for line in done.stderr.splitlines() if ": " in line and line.startswith(("bleu", "rouge_l", "meteor"))
    ]
    assert said == [
        "bleu, rouge_l, meteor: EMPTY_PREDICTION, for instance 3: no message",
        "bleu, rouge_l, meteor: INVALID_INPUT, for instance 4: line 5 is not JSON: Expecting value at character 1",
        "rouge_l, meteor: warnings: 4 TRUNCATED",
    ]


def test_columns_of_a_table_are_as_wide_as_their_labels(command: Command, tmp_path: Path) -> None:
    metrics = "bertscore?layer=5&measure=recall,bertscore?layer=5&measure=precision,bleu"
    done = command(
        "score", write_rows(tmp_path / "a.jsonl", ROWS), "--metrics", metrics, "--format", "table", "--quiet"
    )
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["id", "bertscore?measure=recall", "bertscore?measure=precision", "bleu"]
    assert {len(line) for line in lines} == {len(lines[0])}
    assert lines[1].split() == ["0", "0.200", "0.200", "0.200"]


class NotingTransport(StubTransport):
    """Remembers what was to be prepared."""

    prepared: references_pb2.PrepareRequest | None = None

    async def prepare(
        self, request: references_pb2.PrepareRequest, *, timeout_s: float
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        self.prepared = request
        async for step in super().prepare(request, timeout_s=timeout_s):
            yield step


def test_prepare_counts_the_file_for_metrics_that_weigh_words(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    server = NotingTransport(answer)
    done = command("prepare", file, "--metrics", "cider,bertscore?idf=prepared,bleu", "--quiet", stub=server)
    assert done.exit_code == 0
    assert server.prepared is not None
    cider, bertscore, bleu = server.prepared.metrics
    assert cider.cider.corpus == bertscore.bertscore.idf == types_pb2.CORPUS_PREPARED
    assert bleu.WhichOneof("metric") == "bleu"
    assert done.stdout.strip() == server.prepared.reference_set


def with_parts(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    reply = answer(request)
    for item in reply.items:
        bleu, vqa = item.results
        bleu.bleu.CopyFrom(
            types_pb2.BleuParts(precisions=[0.5, 0.25], brevity_penalty=1, prediction_words=3, reference_words=2)
        )
        vqa.vqa.CopyFrom(types_pb2.VqaParts(agreeing=2, annotators=10, compared_prediction="two"))
        vqa.correct = vqa.score > 0.3
    return reply


def test_parts_and_verdicts_reach_rows_and_summary(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    done = command("score", file, "--metrics", "bleu,vqa_accuracy", "--out", out, stub=StubTransport(with_parts))
    assert done.exit_code == 0
    first = read_rows(out.read_text())[0]["scores"]
    assert first["bleu"] == {
        "score": 0.2,
        "status": "OK",
        "precisions": [0.5, 0.25],
        "brevity_penalty": 1.0,
        "prediction_words": 3,
        "reference_words": 2,
        "line": "bleu/1",
    }
    assert first["vqa_accuracy"] == {
        "score": 0.2,
        "status": "OK",
        "agreeing": 2,
        "annotators": 10,
        "compared_prediction": "two",
        "correct": False,
        "line": "vqa_accuracy/1",
    }
    rows = {words[0]: words for line in done.stderr.splitlines() if (words := line.split())}
    # Two of the three are over 0.3; bleu gives no verdict.
    assert "0.667" in rows["vqa_accuracy"]
    assert "0.667" not in rows["bleu"]


def test_files_from_before_the_verdict_are_read(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS[:1]), tmp_path / "out.jsonl"
    command("score", file, "--out", out, "--metrics", "exact_match,smile", "--quiet")
    row = json.loads(out.read_text())
    row["scores"]["exact_match"]["score"] = 1.0
    row["scores"]["smile"] |= {"sentence": 0.5, "bin": 4, "correct": True}
    out.write_text(json.dumps(row) + "\n")
    done = command("score", file, "--out", out, "--metrics", "exact_match,smile", "--resume")
    assert done.exit_code == 0
    assert read_rows(out.read_text()) == [row]
    assert done.stderr.count("1.000") >= 3, "the score of exact_match, its verdict and that of smile"


@pytest.mark.parametrize(
    ("label", "result", "expected"),
    [
        ("bertscore", {"score": 0.9, "correct": True}, True),
        ("bertscore", {"score": 0.9, "correct": False}, False),
        ("bertscore", {"score": 1.0}, None),
        ("exact_match", {"score": 0.0, "correct": True}, True),
        ("exact_match", {"score": 0.0}, False),
        ("mine", {"score": 1.0, "line": "easy_match/1"}, True),
        ("exact_match", {"score": None, "status": "TIMEOUT"}, None),
    ],
)
def test_a_verdict_is_what_the_result_says(label: str, result: dict[str, object], expected: bool | None) -> None:  # noqa: FBT001 - a table of cases
    assert verdict(label, result) is expected


def test_accuracy_leaves_out_failures_and_results_without_a_verdict() -> None:
    tally = MetricTally()
    for index in range(100):
        failed = {"score": None, "status": "TIMEOUT"}
        scored = {"score": 0.5, "status": "OK"} | ({"correct": index % 4 == 0} if index % 2 == 0 else {})
        tally.add("bertscore", failed if index % 10 < 3 else scored, identifier=str(index))
    kept = [index for index in range(100) if index % 10 >= 3]
    judged = [index % 4 == 0 for index in kept if index % 2 == 0]
    assert (tally.accuracy, tally.mean) == (sum(judged) / len(judged), 0.5)
    assert tally.failures == {"TIMEOUT": 30}
