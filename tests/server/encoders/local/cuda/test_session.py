"""The code that runs on GPUs, over ONNX Runtime's CPU provider; a GPU's memory alone is made up."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from tests.server.encoders.local.cuda.conftest import bound_on_cpu
from tests.support.examples import example_count

from gradewire_models.repository.built import BuiltModel
from gradewire_models.runtime import onnxruntime
from gradewire_server.backends import Backends
from gradewire_server.domain.needs import Tier
from gradewire_server.domain.result import Status
from gradewire_server.encoders.local.choosing import open_session
from gradewire_server.encoders.local.cuda.bound import BoundSession, is_out_of_memory
from gradewire_server.encoders.local.cuda.buckets import Bucket, Buckets
from gradewire_server.encoders.local.cuda.device import Gpu
from gradewire_server.encoders.local.cuda.session import BucketSession, gpu_thread, open_bound
from gradewire_server.settings.cache import CacheConfig
from gradewire_server.settings.compute import ComputeConfig, GpuConfig
from gradewire_server.settings.engine import EngineConfig

VOCABULARY = 64
BUDGET = 512


class SmallGpu:
    """Holds batches of at most so many tokens; what it says is what CUDA's allocator says."""

    def __init__(self, bound: BoundSession, max_tokens: int) -> None:
        self.bound = bound
        self.max_tokens = max_tokens
        self.runs: list[Bucket] = []
        self.forgotten: list[Bucket] = []

    def run(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], token_outputs: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        self.runs.append(Bucket(*ids.shape))
        if ids.size > self.max_tokens:
            raise RuntimeError("Failed to allocate memory for requested buffer of size 33554432")
        return self.bound.run(ids, mask, token_outputs)

    def forget(self, shape: Bucket) -> None:
        self.forgotten.append(shape)
        self.bound.forget(shape)


def texts_of(lengths: Sequence[int]) -> list[NDArray[np.int32]]:
    rng = np.random.default_rng(len(lengths))
    return [rng.integers(4, VOCABULARY, length).astype(np.int32) for length in lengths]


@pytest.fixture(scope="module")
def buckets(gpu_model: BuiltModel) -> Buckets:
    return Buckets(gpu_model.max_tokens, BUDGET)


@pytest.fixture(scope="module")
def bucketed(gpu_model: BuiltModel, buckets: Buckets) -> BucketSession:
    return BucketSession(bound_on_cpu(gpu_model, buckets), gpu_model, buckets, gpu_thread(0))


@pytest.fixture(scope="module")
def plain(gpu_model: BuiltModel) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(gpu_model.onnx_path), providers=["CPUExecutionProvider"])


def alone(plain: onnxruntime.InferenceSession, model: BuiltModel, text: NDArray[np.int32]) -> list[NDArray[np.float32]]:
    ids = text[None].astype(np.int64)
    names = [model.sentence_output, *map(model.token_output, model.token_layers)]
    found: list[NDArray[np.float32]] = plain.run(names, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    return found


@settings(max_examples=example_count(15), deadline=None)
@given(lengths=st.lists(st.integers(1, 150), min_size=1, max_size=20), wants_tokens=st.booleans())
def test_texts_in_shapes_give_what_each_gives_alone(
    gpu_model: BuiltModel,
    bucketed: BucketSession,
    plain: onnxruntime.InferenceSession,
    *,
    lengths: list[int],
    wants_tokens: bool,
) -> None:
    texts = texts_of(lengths)
    layers = gpu_model.token_layers if wants_tokens else ()
    found = bucketed.run(texts, layers=layers, exclusive=False)
    assert set(found.tokens) == set(layers)
    for row, text in enumerate(texts):
        sentence, *tokens = alone(plain, gpu_model, text)
        np.testing.assert_allclose(found.sentences[row], sentence[0], atol=2e-5)
        for layer, of_layer in zip(layers, tokens, strict=False):
            np.testing.assert_allclose(found.tokens[layer][row, : len(text)], of_layer[0], atol=2e-4)


def test_a_result_is_not_overwritten_by_the_next_run(bucketed: BucketSession) -> None:
    first = bucketed.run(texts_of([3, 4]), layers=(), exclusive=False).sentences
    kept = first.copy()
    bucketed.run([np.full(4, 9, np.int32)] * 2, layers=(), exclusive=False)
    assert np.array_equal(first, kept)


def test_what_does_not_fit_runs_in_smaller_shapes_from_then_on(
    gpu_model: BuiltModel,
    buckets: Buckets,
    bucketed: BucketSession,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gpu = SmallGpu(bound_on_cpu(gpu_model, buckets), max_tokens=64)
    session = BucketSession(gpu, gpu_model, buckets, gpu_thread(0))
    texts = texts_of([13] * 20)
    found = session.run(texts, layers=(), exclusive=False)
    np.testing.assert_allclose(found.sentences, bucketed.run(texts, layers=(), exclusive=False).sentences, atol=2e-5)
    assert gpu.forgotten == [(16, 16)]
    assert "runs of 16 x 16 tokens do not fit" in caplog.text
    assert gpu.runs.count(Bucket(16, 16)) == 1
    session.run(texts, layers=(), exclusive=False)
    assert gpu.runs.count(Bucket(16, 16)) == 1


def test_a_text_that_does_not_fit_alone_fails_and_so_does_any_other_error(
    gpu_model: BuiltModel, buckets: Buckets
) -> None:
    session = BucketSession(SmallGpu(bound_on_cpu(gpu_model, buckets), max_tokens=8), gpu_model, buckets, gpu_thread(0))
    assert session.run(texts_of([8]), layers=(), exclusive=False).sentences.shape == (1, gpu_model.dims)
    with pytest.raises(RuntimeError, match="Failed to allocate"):
        session.run(texts_of([9]), layers=(), exclusive=False)

    class Broken(SmallGpu):
        def run(self, *_: object) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
            raise RuntimeError("CUDA failure 700: an illegal memory access was encountered")

    broken = BucketSession(Broken(bound_on_cpu(gpu_model, buckets), 8), gpu_model, buckets, gpu_thread(0))
    with pytest.raises(RuntimeError, match="illegal memory access"):
        broken.run(texts_of([3, 3]), layers=(), exclusive=False)


def test_models_of_a_gpu_are_loaded_and_run_on_one_thread(
    gpu_model: BuiltModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    class Told(SmallGpu):
        def run(
            self, ids: NDArray[np.int64], mask: NDArray[np.int64], token_outputs: Sequence[str]
        ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
            threads.append(threading.get_ident())
            return super().run(ids, mask, token_outputs)

    def loaded(model: BuiltModel, _config: GpuConfig, _index: int, buckets: Buckets) -> Told:
        threads.append(threading.get_ident())
        return Told(bound_on_cpu(model, buckets), max_tokens=BUDGET)

    monkeypatch.setattr("gradewire_server.encoders.local.choosing.open_bound", loaded)
    config = GpuConfig(batch_tokens=BUDGET)
    sessions = [open_session(gpu_model, ComputeConfig(), config, Gpu(0)).session for _ in range(2)]
    with ThreadPoolExecutor(2) as callers:
        list(callers.map(lambda session: session.run(texts_of([5, 9]), layers=(), exclusive=False), sessions))
    assert len(threads) >= 4
    assert set(threads) == {gpu_thread(0).submit(threading.get_ident).result()}


def test_a_graph_is_loaded_onto_its_gpu_or_not_at_all(
    gpu_model: BuiltModel, buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def opened(path: Path, options: onnxruntime.SessionOptions, **rest: Any) -> None:
        given.update(rest, path=path, options=options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", opened)
    open_bound(gpu_model, GpuConfig(memory_limit_bytes=1 << 30), 3, buckets)
    assert given["path"] == gpu_model.onnx_path
    assert given["enable_fallback"] == 0
    assert given["options"].intra_op_num_threads == 1
    (provider, options), last = given["providers"]
    assert (provider, last) == ("CUDAExecutionProvider", "CPUExecutionProvider")
    assert options["device_id"] == "3"
    assert options["gpu_mem_limit"] == str(1 << 30)
    assert options["use_tf32"] == "0", "the model is fp32"
    assert options["enable_cuda_graph"] == "1"


@pytest.mark.parametrize(
    ("message", "is_one"),
    [
        ("Failed to allocate memory for requested buffer of size 1073741824", True),
        ("CUDA failure 2: out of memory ; GPU=0", True),
        ("CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED", True),
        ("CUDA failure 700: an illegal memory access was encountered", False),
    ],
)
def test_what_tells_that_memory_was_short(message: str, *, is_one: bool) -> None:
    assert is_out_of_memory(RuntimeError(message)) is is_one


async def test_an_engine_on_a_gpu_answers_with_its_variant_and_one_without_says_why_not(
    gpu_model: BuiltModel, plain: onnxruntime.InferenceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = EngineConfig(
        gpu_model.directory.parent,
        default_model=gpu_model.name,
        gpu=GpuConfig(batch_tokens=BUDGET),
        cache=CacheConfig(),
    )
    without = await Backends.open(config, CollectorRegistry())
    failed = await without.ports.embeddings.embed("", ["w1 w2"], [Tier.WINDOW])
    assert failed.failures[0].status is Status.MODEL_UNAVAILABLE
    assert "has no CUDAExecutionProvider" in failed.failures[0].message
    await without.close()

    monkeypatch.setattr("gradewire_server.encoders.local.cuda.device.find_gpu", lambda _: Gpu(0))
    monkeypatch.setattr(
        "gradewire_server.encoders.local.choosing.open_bound",
        lambda model, _config, _index, buckets: bound_on_cpu(model, buckets),
    )
    engine = await Backends.open(config, CollectorRegistry())
    texts = [f"w{number} w{number + 1} w3" for number in range(40)]
    reply = await engine.ports.embeddings.embed("", texts, [Tier.WINDOW] * len(texts))
    assert not reply.failures
    ids = np.array([2, 5, 6, 7, 3], np.int32)  # [CLS] w1 w2 w3 [SEP]
    expected = alone(plain, gpu_model, ids)[0][0]
    assert float(reply.values[1] @ expected) > 1 - 1e-5
    await engine.close()
