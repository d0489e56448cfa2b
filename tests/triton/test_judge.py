"""A tiny judge in the real tritonserver, asked by its tensors."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from numpy.typing import NDArray
from tests.models.judges.build.conftest import judge_repository, qwen2, tiny_judges
from tests.support.servers.triton import TritonServer
from tests.triton.infer import Sent, busy_stubs, tensors, wanted
from tritonclient.utils import InferenceServerException

from gradewire_models.judges.cores import wire
from gradewire_models.judges.cores.batches import BatchedCore, BatchLimits
from gradewire_models.judges.cores.int8 import Int8Core
from gradewire_models.judges.cores.rows import RowResult
from gradewire_models.judges.cores.wire import Question
from gradewire_models.judges.repository import load_judge

__all__ = ["judge_repository", "qwen2", "tiny_judges"]  # fixtures

MODEL = "tiny-qwen2"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, judge_repository: Path) -> Iterator[TritonServer]:
    directory = tmp_path_factory.mktemp("triton")
    (directory / "models").mkdir()
    with TritonServer(directory / "state", directory / "models", models=(MODEL,), judges=judge_repository) as running:
        yield running


@pytest.fixture
def client(server: TritonServer) -> Iterator[tritonclient.grpc.InferenceServerClient]:
    with tritonclient.grpc.InferenceServerClient(server.url) as client:
        yield client


def expected(repository: Path, questions: list[Question]) -> list[RowResult]:
    core = BatchedCore(Int8Core(load_judge(repository, MODEL).path("int8"), threads=1), BatchLimits())
    answers = core.answer(questions)
    assert all(isinstance(answer, RowResult) for answer in answers)
    return answers  # type: ignore[return-value]


def test_questions_of_different_lengths_share_a_batch_and_get_their_own_answers(
    server: TritonServer, client: tritonclient.grpc.InferenceServerClient, judge_repository: Path
) -> None:
    prefixes = ((), (5, 6, 7, 8))
    questions = [Question(prefixes[n % 2], tuple(range(1, 2 + n)), (10, 20, 30)[: 2 + n % 2]) for n in range(12)]
    before = server.statistics(MODEL)
    with busy_stubs(server):
        sent = [Sent(client, MODEL, wire.to_tensors(question), wire.CHOICE_OUTPUTS) for question in questions]
    for one, answer in zip(sent, expected(judge_repository, questions), strict=True):
        result, error = one.ended()
        assert error is None, error
        np.testing.assert_allclose(result.as_numpy(wire.PROBABILITIES), [answer.probabilities], atol=1e-12)
        np.testing.assert_allclose(result.as_numpy(wire.MASS), [[answer.mass]], atol=1e-12)
    server.wait_for_inference_count(MODEL, int(before["inference_count"]) + len(questions))
    # Eight at a time, and the first ones perhaps before the others arrived.
    assert int(server.statistics(MODEL)["execution_count"]) - int(before["execution_count"]) <= 4


def test_every_answer_names_the_judge(client: tritonclient.grpc.InferenceServerClient, judge_repository: Path) -> None:
    question = tensors(wire.to_tensors(Question((), (1, 2))))
    reply = client.infer(MODEL, question, outputs=wanted(wire.TOKEN_OUTPUTS))
    digest = load_judge(judge_repository, MODEL).digests["int8"]
    assert reply.as_numpy(wire.FINGERPRINT).tolist() == [[wire.fingerprint_of(digest)]]
    assert {output.name for output in reply.get_response().outputs} == set(wire.TOKEN_OUTPUTS)


def test_it_hands_out_its_tokenizer(client: tritonclient.grpc.InferenceServerClient, judge_repository: Path) -> None:
    question = tensors(wire.to_tensors(Question((), (0,))))
    reply = client.infer(MODEL, question, outputs=wanted(wire.TOKENIZER_OUTPUTS))
    content = reply.as_numpy(wire.TOKENIZER).item()
    assert content == load_judge(judge_repository, MODEL).tokenizer_path.read_bytes()


def test_a_client_that_names_no_outputs_gets_an_answer_without_the_tokenizer(
    client: tritonclient.grpc.InferenceServerClient, judge_repository: Path
) -> None:
    question = Question((), (1, 2), (10, 20))
    reply = client.infer(MODEL, tensors(wire.to_tensors(question)))
    (answer,) = expected(judge_repository, [question])
    np.testing.assert_allclose(reply.as_numpy(wire.PROBABILITIES), [answer.probabilities], atol=1e-12)
    names = {output.name for output in reply.get_response().outputs}
    assert names == {wire.PROBABILITIES, wire.MASS, wire.NEXT_ID, wire.FINGERPRINT}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (wire.to_tensors(Question((), (10_000_000,))), "not in the vocabulary"),
        (wire.to_tensors(Question((), ())), "must have 1 to 512 tokens"),
        (wire.to_tensors(Question((1,) * 512, (1,))), "not 513"),
        ({wire.TOKENS: np.array([[1, 2]]), wire.LENGTHS: np.array([[0, 1, 0, 0]])}, "does not match the 2 tokens"),
    ],
)
def test_bad_questions_are_refused_with_their_reason(
    client: tritonclient.grpc.InferenceServerClient, question: dict[str, NDArray[Any]], said: str
) -> None:
    with pytest.raises(InferenceServerException, match=said) as caught:
        client.infer(MODEL, tensors(question), outputs=wanted(wire.TOKEN_OUTPUTS))
    assert caught.value.status() == "StatusCode.INVALID_ARGUMENT"


def test_a_changed_graph_is_not_loaded(tmp_path: Path, judge_repository: Path) -> None:
    shutil.copytree(judge_repository / MODEL, tmp_path / "judges" / MODEL)
    graph = tmp_path / "judges" / MODEL / "int8" / "model.onnx"
    graph.write_bytes(graph.read_bytes() + b"\0")
    (tmp_path / "models").mkdir()
    broken = TritonServer(tmp_path / "state", tmp_path / "models", models=(MODEL,), judges=tmp_path / "judges")
    with pytest.raises(Exception, match="was changed after the build"), broken:
        pass


def test_a_judge_without_files_for_triton_says_how_to_get_them(tmp_path: Path, judge_repository: Path) -> None:
    shutil.copytree(judge_repository / MODEL, tmp_path / "judges" / MODEL)
    (tmp_path / "judges" / MODEL / "config.pbtxt").unlink()
    (tmp_path / "models").mkdir()
    old = TritonServer(tmp_path / "state", tmp_path / "models", models=(MODEL,), judges=tmp_path / "judges")
    with pytest.raises(Exception, match=f"Run: gradewire models build {MODEL}"):
        old.start()


def test_the_command_serves_a_named_judge_and_says_how_to_use_it(tmp_path: Path, judge_repository: Path) -> None:
    (tmp_path / "models").mkdir()
    state = f"--state={tmp_path / 'state'}"
    ports = [f"--{name}-port=0" for name in ("grpc", "http", "metrics")]
    where = [f"--model-repository={tmp_path / 'models'}", f"--judge-repository={judge_repository}"]
    command = [sys.executable, "-m", "gradewire_triton"]
    started = [*command, "up", MODEL, "--detach", state, *where, *ports]
    up = subprocess.run(started, capture_output=True, text=True, check=False)
    down = subprocess.run([*command, "down", state], capture_output=True, text=True, check=False)
    assert up.returncode == 0, up.stderr
    assert "--judge-backend triton --judge-url 127.0.0.1:" in up.stdout
    assert f"--judge-remote-model {MODEL}" in up.stdout
    assert down.returncode == 0, down.stderr
