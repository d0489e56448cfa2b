"""A grader through the real Triton and in the process: the same logits, one cache for both, over a real socket."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.models.grader_adapter import build_tiny_grader
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.triton import TritonServer

from gradewire import Client, GraderParts, Scorer, ScoreReport, ScoreWarning, Status

MODEL, GRADER = "all-MiniLM-L6-v2", "tiny-grader"
METRICS = {"grader": f"grader?model={GRADER}", "features": f"correctness?features_only=true&grader={GRADER}"}
TOLERANCE = 2e-4
ROWS = [
    *(
        {"question": f"w{n} w{n + 1}", "references": [f"w{n + 2}", f"w{n + 3} w1"], "prediction": f"w{n + 4} " * n}
        for n in range(1, 40)
    ),
    {"question": "", "references": ["w1"], "prediction": "w1 w2"},
    {"question": "w1 [SEP] w2", "references": ["w1"], "prediction": "[SEP] [CLS] w1 [SEP]"},
    {"question": "w1", "references": ["w2"], "prediction": "w3 w4 w5 " * 100},
    {"question": "w9 " * 90, "references": ["w2 " * 90], "prediction": "w3 w4 w5 " * 900},
    {"question": "w1", "references": ["w2"], "prediction": ""},
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Path:
    """The default encoder and a tiny grader."""
    repository = build_tiny_grader(tmp_path_factory.mktemp("grader"))
    shutil.copytree(minilm / MODEL, repository / MODEL, copy_function=os.link)
    return repository


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[TritonServer]:
    with TritonServer(tmp_path_factory.mktemp("triton"), repository, models=(MODEL, GRADER)) as server:
        yield server


@pytest.fixture(scope="module")
def through_triton(
    tmp_path_factory: pytest.TempPathFactory, repository: Path, triton: TritonServer
) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("through")
    with ServerProcess(directory, model_repository=repository, backend="triton", triton_url=triton.url) as server:
        yield server


def logits(report: ScoreReport) -> list[float]:
    parts = [item.scores["grader"].parts for item in report if item.scores["grader"].status is Status.OK]
    return [part.logit for part in parts if isinstance(part, GraderParts)]


def test_embedded_and_triton_give_the_same(
    through_triton: ServerProcess, repository: Path, tmp_path: Path, triton: TritonServer
) -> None:
    with Client(through_triton.address, deadline_s=60) as client:
        before = triton.inference_count(GRADER)
        there = client.score(ROWS, METRICS)
        assert triton.inference_count(GRADER) > before
        again = client.score(ROWS, METRICS)
        models = {model.name: model for model in client.models().models}
    with Scorer.embedded(model_repository=repository, disk_directory=tmp_path / "store") as scorer:
        here = scorer.score(ROWS, METRICS)
    with Scorer.embedded(model_repository=repository, disk_directory=tmp_path / "store") as scorer:
        stored = scorer.score(ROWS, METRICS)
    assert len(set(logits(there))) == len(ROWS) - 1
    assert logits(there) == pytest.approx(logits(here), abs=TOLERANCE)
    assert logits(again) == logits(there)
    assert logits(stored) == logits(here)
    assert there.provenance == here.provenance
    assert models[GRADER].kind == "grader"
    for one, other in zip(there, here, strict=True):
        for label in METRICS:
            a, b = one.scores[label], other.scores[label]
            assert (a.status, a.warnings, a.matched_reference) == (b.status, b.warnings, b.matched_reference)
    assert there[-1].scores["grader"].status is Status.EMPTY_PREDICTION
    long = there[-2].scores["grader"]
    assert isinstance(long.parts, GraderParts)
    assert (long.parts.pieces, long.parts.truncated, ScoreWarning.TRUNCATED in long.warnings) == (8, True, True)
    # Of both metrics each answer beside a reference is read once.
    texts = [item.scores["features"].cache_hits for item in there]
    assert sum(hits.computed for hits in texts) > 0


def test_the_line_of_a_result_asks_for_the_same_weights(through_triton: ServerProcess) -> None:
    with Client(through_triton.address, deadline_s=60) as client:
        report = client.score(ROWS[:3], METRICS)
        grader, features = report.provenance["grader"], report.provenance["features"]
        assert grader.model == GRADER
        assert grader.line == f"grader/1?model={GRADER}@{grader.model_digest[:12]}"
        assert (features.grader_model, features.grader_digest) == (GRADER, grader.model_digest)
        assert f"grader={GRADER}@{grader.model_digest[:12]}" in features.line
        same = client.score(ROWS[:3], {"grader": grader.line, "features": features.line})
        other = client.score(
            ROWS[:1], {"a": f"grader?model={GRADER}@00000000", "b": f"smile?model={GRADER}", "c": "exact_match"}
        )
    assert logits(same) == logits(report)
    refused = other[0].scores
    assert (refused["a"].status, refused["b"].status) == (Status.MODEL_UNAVAILABLE, Status.MODEL_UNAVAILABLE)
    assert "has the digest" in refused["a"].message
    assert "is a grader" in refused["b"].message
