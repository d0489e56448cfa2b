"""`gradewire score` with metrics of all kinds: names, parameters, parts and verdicts on the way to file and summary."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

from tests.cli.conftest import Command, answer, read_rows, write_rows

from gradewire.testing import StubTransport
from gradewire.transport import Q, R, RpcMethod
from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2

ROWS = [{"references": ["a"], "prediction": "x" * length} for length in (20, 40, 90)]


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
        "bleu, rouge_l, meteor: EMPTY_PREDICTION, for example id 3: no message",
        "bleu, rouge_l, meteor: INVALID_INPUT, for example id 4: line 5 is not JSON: Expecting value at character 1",
        "rouge_l, meteor: warnings: 4 TRUNCATED",
    ]


def test_columns_of_a_table_are_as_wide_as_their_labels(command: Command, tmp_path: Path) -> None:
    metrics = "bertscore?layer=5&measure=recall,bertscore?layer=5&measure=precision,bleu"
    done = command(
        "score", write_rows(tmp_path / "a.jsonl", ROWS), "--metrics", metrics, "--format", "table", "--quiet"
    )
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["id", "bertscore?layer=5&measure=recall", "bertscore?layer=5&measure=precision", "bleu"]
    assert {len(line) for line in lines} == {len(lines[0])}
    assert lines[1].split() == ["0", "0.200", "0.200", "0.200"]


class NotingTransport(StubTransport):
    """Remembers what was to be prepared."""

    prepared: references_pb2.PrepareRequest | None = None

    async def stream(
        self, method: RpcMethod[Q, R], sent: Q | AsyncIterator[Q], *, timeout_s: float | None = None
    ) -> AsyncGenerator[R]:
        assert isinstance(sent, references_pb2.PrepareRequest)
        self.prepared = sent
        async for step in super().stream(method, sent, timeout_s=timeout_s):
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
