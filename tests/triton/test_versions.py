"""A model that `models build` replaces, under a running server."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import tritonclient.grpc
from tests.support.models.tiny_models import Package
from tests.support.servers.triton import TritonServer
from tests.triton.infer import batch, in_process, tensors, wanted

from gradewire_models.build.install import build_model
from gradewire_models.repository.built import BuiltModel

OUTPUTS = ["sentence_embedding", "model_fingerprint"]
INPUTS = batch([3, 7, 5])


@pytest.fixture
def repository(tmp_path: Path, bert: Package) -> Path:
    build_model(bert.model, tmp_path / "repository", wheels=bert.wheels)
    return tmp_path / "repository"


@pytest.fixture
def server(tmp_path: Path, repository: Path) -> Iterator[TritonServer]:
    with TritonServer(tmp_path / "server", repository) as triton:
        yield triton


def test_a_replaced_model_is_a_new_version_and_no_answer_is_lost_or_mixed(
    server: TritonServer, repository: Path, bert: Package, tmp_path: Path
) -> None:
    replaced = Event()

    def ask() -> list[tuple[int, np.ndarray]]:
        answers = []
        with tritonclient.grpc.InferenceServerClient(server.url) as client:
            while True:
                last = replaced.is_set()
                found = client.infer(bert.model.name, tensors(INPUTS), outputs=wanted(OUTPUTS))
                (fingerprint,) = set(found.as_numpy("model_fingerprint").ravel().tolist())
                answers.append((fingerprint, found.as_numpy("sentence_embedding")))
                if last:
                    return answers

    old = build_model(bert.model, repository, wheels=bert.wheels).model
    expected = {old.fingerprint: in_process(repository, bert.model.name, INPUTS, OUTPUTS[:1])[0]}
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask) for _ in range(2)]
        new = replace_model(repository, bert, tmp_path)
        server.load(bert.model.name)
        replaced.set()
        answers = [answer for future in asked for answer in future.result()]
    expected[new.fingerprint] = in_process(repository, bert.model.name, INPUTS, OUTPUTS[:1])[0]
    assert {fingerprint for fingerprint, _ in answers} == expected.keys()
    for fingerprint, vectors in answers:
        np.testing.assert_allclose(vectors, expected[fingerprint], atol=1e-6)
    assert server.statistics(bert.model.name)["version"] == str(new.version) == "2"


def replace_model(repository: Path, bert: Package, tmp_path: Path) -> BuiltModel:
    """Builds the tiny model for shorter texts, which is another graph, in its place."""
    shorter = replace(bert.model, max_tokens=100)
    digest = build_model(shorter, tmp_path / "other", wheels=bert.wheels).model.digest
    return build_model(replace(shorter, digest=digest), repository, wheels=bert.wheels).model
