"""What the emulated backend answers, on the real server."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from tests.support.servers.triton import TritonServer
from tests.triton.infer import Sent, batch, busy_stubs, in_process, tensors, wanted
from tritonclient.utils import InferenceServerException

from gradewire_models.repository.built import load_built

MODELS = ("tiny-bert", "tiny-mpnet")
SENTENCE = "sentence_embedding"
TOKENS = "token_embeddings"


@pytest.fixture
def client(tiny_triton: TritonServer) -> Iterator[tritonclient.grpc.InferenceServerClient]:
    with tritonclient.grpc.InferenceServerClient(tiny_triton.url) as client:
        yield client


def vectors(sent: Sent) -> Any:
    result, error = sent.ended()
    assert error is None, error
    return result.as_numpy(SENTENCE)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("lengths", [(1,), (3,), (2, 9, 5, 1, 40), (150, 3)])
def test_answers_are_those_of_a_session_in_this_process(
    model: str, lengths: Sequence[int], client: tritonclient.grpc.InferenceServerClient, tiny_repository: Path
) -> None:
    inputs = batch(lengths)
    outputs = (SENTENCE, TOKENS, "token_embeddings_layer_1")
    found = client.infer(model, tensors(inputs), outputs=wanted(outputs))
    sentences, *token_vectors = in_process(tiny_repository, model, inputs, outputs)
    np.testing.assert_allclose(found.as_numpy(SENTENCE), sentences, atol=1e-5)
    rows = inputs["attention_mask"].astype(bool)
    for name, expected in zip(outputs[1:], token_vectors, strict=True):
        np.testing.assert_allclose(found.as_numpy(name)[rows], expected[rows], atol=1e-5)


def test_only_what_is_asked_for_comes_back(client: tritonclient.grpc.InferenceServerClient) -> None:
    reply = client.infer("tiny-bert", tensors(batch((4, 2))), outputs=wanted([SENTENCE])).get_response()
    assert [output.name for output in reply.outputs] == [SENTENCE]


def test_the_graph_names_itself_in_every_row(
    client: tritonclient.grpc.InferenceServerClient, tiny_repository: Path
) -> None:
    for model in MODELS:
        name = "model_fingerprint"
        found = client.infer(model, tensors(batch((4, 2, 3))), outputs=wanted([name])).as_numpy(name)
        assert found.tolist() == [[load_built(tiny_repository, model).fingerprint]] * 3


def test_requests_that_wait_together_are_executed_together(
    tiny_triton: TritonServer, client: tritonclient.grpc.InferenceServerClient, tiny_repository: Path
) -> None:
    batches = [batch((*range(1, rows), 9), seed=rows) for rows in range(1, 9) for _ in range(5)]
    before = tiny_triton.statistics("tiny-bert")
    with busy_stubs(tiny_triton):
        sent = [Sent(client, "tiny-bert", inputs, [SENTENCE]) for inputs in batches]
    for inputs, one in zip(batches, sent, strict=True):
        (expected,) = in_process(tiny_repository, "tiny-bert", inputs, [SENTENCE])
        np.testing.assert_allclose(vectors(one), expected, atol=1e-5)
    rows = sum(len(inputs["input_ids"]) for inputs in batches)
    tiny_triton.wait_for_inference_count("tiny-bert", int(before["inference_count"]) + rows)
    after = tiny_triton.statistics("tiny-bert")
    assert after["execution_count"] - before["execution_count"] < len(batches) / 2


def test_a_bad_request_fails_alone_in_its_batch(
    tiny_triton: TritonServer, client: tritonclient.grpc.InferenceServerClient, tiny_repository: Path
) -> None:
    bad = batch((7, 7))
    bad["input_ids"][0, 3] = 1 << 40  # no such word
    good = [batch((7, number), seed=number) for number in range(1, 7)]
    with busy_stubs(tiny_triton):
        sent = [Sent(client, "tiny-bert", inputs, [SENTENCE]) for inputs in (*good[:3], bad, *good[3:])]
    _, error = sent.pop(3).ended()
    assert isinstance(error, InferenceServerException)
    for inputs, one in zip(good, sent, strict=True):
        (expected,) = in_process(tiny_repository, "tiny-bert", inputs, [SENTENCE])
        np.testing.assert_allclose(vectors(one), expected, atol=1e-5)


def test_inputs_of_different_lengths_are_refused(client: tritonclient.grpc.InferenceServerClient) -> None:
    inputs = batch((5,)) | {"attention_mask": np.ones((1, 7), np.int64)}
    with pytest.raises(InferenceServerException):
        client.infer("tiny-bert", tensors(inputs))
    assert client.infer("tiny-bert", tensors(batch((5,)))).as_numpy(SENTENCE).shape == (1, 24)


def test_what_its_client_has_cancelled_is_not_waited_for(
    tiny_triton: TritonServer, client: tritonclient.grpc.InferenceServerClient
) -> None:
    with busy_stubs(tiny_triton):
        sent = [Sent(client, "tiny-bert", batch((6, 6), seed=number), [SENTENCE]) for number in range(6)]
        sent[2].call.cancel()
    _, error = sent.pop(2).ended()
    assert isinstance(error, InferenceServerException)
    assert error.status() == "StatusCode.CANCELLED"
    for one in sent:
        assert vectors(one).shape == (2, 24)
