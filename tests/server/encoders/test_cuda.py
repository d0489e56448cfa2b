import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from tests.server.encoders.conftest import bound_on_cpu
from tests.support.examples import example_count

from gradewire_models.repository.built import BuiltModel
from gradewire_models.runtime import onnxruntime
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Status
from gradewire_server.domain.needs import Tier
from gradewire_server.encoders import gpu_watch
from gradewire_server.encoders.cuda import (
    CUDA_PROVIDER,
    BoundSession,
    BucketSession,
    DeviceError,
    Gpu,
    find_gpu,
    is_out_of_memory,
    open_bound,
    provider_options,
)
from gradewire_server.encoders.factory import open_encoders
from gradewire_server.encoders.gpu_shapes import Bucket, Buckets
from gradewire_server.encoders.gpu_watch import GpuLostError, GpuThread, gpu_thread, lost_gpu
from gradewire_server.encoders.local import open_session
from gradewire_server.settings.engine import CacheConfig, ComputeConfig, EngineConfig, GpuConfig
from gradewire_server.settings.server import Settings
from gradewire_server.settings.setting import SettingsError


def pretend(monkeypatch: pytest.MonkeyPatch, *, loads: bool = True, raises: str = "") -> list[Any]:
    """ONNX Runtime as it is where the package for GPUs is installed."""
    asked: list[Any] = []

    class Session:
        def __init__(self, graph: bytes, *, providers: list[Any], enable_fallback: int) -> None:
            onnx.checker.check_model(onnx.load_from_string(graph))
            assert enable_fallback == 0
            asked.extend(providers)
            if raises:
                raise RuntimeError(raises)

        def get_providers(self) -> list[str]:
            return [CUDA_PROVIDER, "CPUExecutionProvider"] if loads else ["CPUExecutionProvider"]

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA_PROVIDER, "CPUExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    return asked


def test_auto_without_a_gpu_is_the_cpu_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        found = find_gpu(GpuConfig())
    assert found.index is None
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert "has no CUDAExecutionProvider" in line.getMessage()
    assert "pip install 'gradewire[gpu]'" in line.getMessage()


def test_cpu_looks_for_none(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    asked = pretend(monkeypatch)
    assert find_gpu(GpuConfig(device="cpu")) == Gpu(None, "device is cpu")
    assert (asked, caplog.records) == ([], [])


@pytest.mark.parametrize(("device", "index"), [("auto", 0), ("cuda", 0), ("cuda:3", 3)])
def test_the_gpu_that_was_asked_for_is_tried(monkeypatch: pytest.MonkeyPatch, device: str, index: int) -> None:
    asked = pretend(monkeypatch)
    assert find_gpu(GpuConfig(device=device)) == Gpu(index)
    assert asked == [(CUDA_PROVIDER, {"device_id": str(index)})]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"loads": False}, "driver, CUDA or cuDNN is missing"),
        ({"raises": "CUDA failure 101: invalid device ordinal"}, "does not start on GPU 1: CUDA failure 101"),
    ],
)
def test_a_gpu_that_was_asked_for_and_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, state: dict[str, Any], says: str
) -> None:
    pretend(monkeypatch, **state)
    with pytest.raises(DeviceError, match=rf"device cuda:1 cannot be used: .*{says}"):
        find_gpu(GpuConfig(device="cuda:1"))
    assert find_gpu(GpuConfig()).index is None


async def test_a_server_that_shall_have_a_gpu_does_not_start_without(tmp_path: Any) -> None:
    config = EngineConfig(tmp_path, gpu=GpuConfig(device="cuda"))
    with pytest.raises(DeviceError, match=r"pip install 'gradewire\[gpu\]'"):
        open_encoders(config, None, CollectorRegistry())  # type: ignore[arg-type]  # it does not come to the cache


async def test_who_asks_for_a_gpu_gets_the_default_encoder_on_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("gradewire_server.encoders.cuda.find_gpu", lambda _: Gpu(0))
    for device, name in (("cuda", "all-MiniLM-L6-v2-fp16-cuda"), ("auto", "all-MiniLM-L6-v2")):
        config = EngineConfig(tmp_path, gpu=GpuConfig(device=device))
        service = open_encoders(config, None, CollectorRegistry())  # type: ignore[arg-type]  # as above
        assert service.library.default == name
        await service.close()


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cuda:1000", "CUDA", ""])
def test_other_devices_are_refused(device: str) -> None:
    with pytest.raises(SettingsError, match="device"):
        Settings.load(device=device)


def test_triton_has_its_own_word_on_devices() -> None:
    with pytest.raises(SettingsError, match="device needs backend embedded"):
        Settings.load(device="cuda", backend="triton", triton_url="host:1")


def test_settings_reach_the_provider() -> None:
    config = Settings.load(device="cuda:2", gpu_memory_limit="2GiB").engine.gpu
    assert (config.index, config.required, config.batch_tokens) == (2, True, 0)
    assert Settings.load(gpu_batch_tokens=4096).engine.gpu.batch_tokens == 4096
    assert provider_options(config, 2, precision="fp32") == {
        "device_id": "2",
        "arena_extend_strategy": "kSameAsRequested",
        "do_copy_in_default_stream": "1",
        "use_tf32": "0",
        "enable_cuda_graph": "1",
        "gpu_mem_limit": str(2 << 30),
    }
    half = provider_options(GpuConfig(), 0, precision="fp16")
    assert (half["use_tf32"], half["enable_cuda_graph"]) == ("1", "1")
    assert "gpu_mem_limit" not in half


VOCABULARY = 64
BUDGET_SESSION = 512


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
    return Buckets(gpu_model.max_tokens, BUDGET_SESSION)


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


def test_a_graph_is_recorded_again_once_its_buffers_were_freed(gpu_model: BuiltModel) -> None:
    graphs: list[str] = []
    session = onnxruntime.InferenceSession(gpu_model.onnx_path, providers=["CPUExecutionProvider"])

    class Recorder:
        io_binding = session.io_binding

        def run_with_iobinding(self, binding: Any, options: onnxruntime.RunOptions) -> None:
            graphs.append(options.get_run_config_entry("gpu_graph_id"))
            session.run_with_iobinding(binding)

    bound = BoundSession(Recorder(), gpu_model, [Bucket(1, 8), Bucket(4, 8)], device=("cpu", 0), graphs=True)  # type: ignore[arg-type]

    def run(rows: int, tokens: int, *outputs: str) -> str:
        ones = np.ones((rows, tokens), np.int64)
        bound.run(ones, ones, outputs)
        return graphs[-1]

    first, second = run(1, 8), run(4, 8)
    assert len({first, second, "-1"}) == 3
    assert (run(1, 8), run(4, 8)) == (first, second)
    assert run(2, 8) == "-1", "not one of the shapes"
    assert run(4, 8, gpu_model.token_output(gpu_model.token_layers[-1])) == "-1"
    # A graph reads and writes the buffers with which it was recorded.
    bound.forget(Bucket(1, 8))
    assert run(1, 8) not in {first, second, "-1"}
    assert run(4, 8) == second


@pytest.fixture
def thread() -> GpuThread:
    """A thread of its own, because a GPU that is lost stays lost."""
    return GpuThread("GPU 7", hangs_s=0.2)


def test_what_does_not_fit_runs_in_smaller_shapes_for_a_while(
    gpu_model: BuiltModel,
    buckets: Buckets,
    bucketed: BucketSession,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("gradewire_server.encoders.cuda.time.monotonic", lambda: now_s)
    gpu = SmallGpu(bound_on_cpu(gpu_model, buckets), max_tokens=64)
    session = BucketSession(gpu, gpu_model, buckets, gpu_thread(0))
    texts = texts_of([13] * 20)
    found = session.run(texts, layers=(), exclusive=False)
    np.testing.assert_allclose(found.sentences, bucketed.run(texts, layers=(), exclusive=False).sentences, atol=2e-5)
    large = gpu.runs[0]
    assert large.size > 64
    assert large in gpu.forgotten
    assert f"a run of {large.rows} x {large.tokens} tokens did not fit" in caplog.text
    assert gpu.runs.count(large) == 1
    session.run(texts, layers=(), exclusive=False)
    assert gpu.runs.count(large) == 1
    # Another program may have freed memory in the meantime.
    now_s += 61
    gpu.max_tokens = BUDGET_SESSION
    session.run(texts, layers=(), exclusive=False)
    assert gpu.runs.count(large) == 2
    assert not gpu_thread(0).lost


def test_a_text_that_does_not_fit_alone_fails_and_its_neighbours_do_not(
    gpu_model: BuiltModel, buckets: Buckets, bucketed: BucketSession
) -> None:
    session = BucketSession(SmallGpu(bound_on_cpu(gpu_model, buckets), max_tokens=8), gpu_model, buckets, gpu_thread(0))
    texts = texts_of([8, 9, 3])
    output = session.run_in_turn(texts, layers=())
    assert {row: failure.status for row, failure in output.failures.items()} == {1: Status.INVALID_INPUT}
    expected = bucketed.run(texts, layers=(), exclusive=False).sentences
    np.testing.assert_allclose(output.vectors.sentences[[0, 2]], expected[[0, 2]], atol=2e-5)
    assert np.isnan(output.vectors.sentences[1]).all()
    with pytest.raises(RuntimeError, match="too long for the free memory"):
        session.run(texts, layers=(), exclusive=False)
    assert not gpu_thread(0).lost


def test_if_not_even_the_smallest_run_fits_no_text_is_to_blame(gpu_model: BuiltModel, buckets: Buckets) -> None:
    session = BucketSession(SmallGpu(bound_on_cpu(gpu_model, buckets), max_tokens=4), gpu_model, buckets, gpu_thread(0))
    output = session.run_in_turn(texts_of([8, 3]), layers=())
    assert [failure.status for failure in output.failures.values()] == [Status.UNAVAILABLE] * 2
    assert not gpu_thread(0).lost


def test_a_text_that_has_fitted_before_may_be_sent_again(gpu_model: BuiltModel, buckets: Buckets) -> None:
    gpu = SmallGpu(bound_on_cpu(gpu_model, buckets), max_tokens=16)
    session = BucketSession(gpu, gpu_model, buckets, gpu_thread(0))
    assert not session.run_in_turn(texts_of([9]), layers=()).failures
    gpu.max_tokens = 8  # another program takes memory
    (failure,) = session.run_in_turn(texts_of([9]), layers=()).failures.values()
    assert failure.status is Status.UNAVAILABLE
    assert "Try again later" in failure.message


def test_a_gpu_without_memory_for_the_smallest_run_is_named(
    gpu_model: BuiltModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gradewire_server.encoders.cuda.open_bound",
        lambda model, _config, _index, buckets: SmallGpu(bound_on_cpu(model, buckets), max_tokens=4),
    )
    with pytest.raises(RuntimeError, match=f"GPU 0 has no memory for a run of {gpu_model.name}"):
        open_session(gpu_model, ComputeConfig(), GpuConfig(), Gpu(0))


class Broken(SmallGpu):
    """Fails runs of the given shapes as CUDA does if a kernel fails."""

    def __init__(self, bound: BoundSession, shapes: Sequence[Bucket]) -> None:
        super().__init__(bound, BUDGET_SESSION)
        self.shapes = shapes

    def run(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], token_outputs: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        if Bucket(*ids.shape) in self.shapes:
            raise RuntimeError("CUDA failure 700: an illegal memory access was encountered")
        return super().run(ids, mask, token_outputs)


@pytest.mark.parametrize("starts", [True, False])
def test_a_model_that_cannot_run_at_load_loses_the_gpu_only_if_nothing_else_starts(
    gpu_model: BuiltModel, monkeypatch: pytest.MonkeyPatch, *, starts: bool
) -> None:
    monkeypatch.setattr(gpu_watch, "_threads", {})
    pretend(monkeypatch, raises="" if starts else "CUDA failure 700")
    monkeypatch.setattr(
        "gradewire_server.encoders.cuda.open_bound",
        lambda _model, _config, _index, buckets: Broken(None, buckets.shapes),  # type: ignore[arg-type]  # no run succeeds
    )
    with pytest.raises(RuntimeError if starts else GpuLostError):
        open_session(gpu_model, ComputeConfig(), GpuConfig(), Gpu(0))
    assert ("illegal memory access" in lost_gpu()) is not starts


def test_an_error_of_one_run_is_that_runs_error(gpu_model: BuiltModel, buckets: Buckets, thread: GpuThread) -> None:
    gpu = Broken(bound_on_cpu(gpu_model, buckets), [Bucket(1, 16)])
    session = BucketSession(gpu, gpu_model, buckets, thread)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        session.run(texts_of([13]), layers=(), exclusive=False)
    assert not thread.lost
    assert session.run(texts_of([3]), layers=(), exclusive=False).sentences.shape == (1, gpu_model.dims)


def test_if_a_known_run_fails_as_well_the_gpu_is_lost(
    gpu_model: BuiltModel, buckets: Buckets, thread: GpuThread, caplog: pytest.LogCaptureFixture
) -> None:
    session = BucketSession(Broken(bound_on_cpu(gpu_model, buckets), buckets.shapes), gpu_model, buckets, thread)
    for _ in range(2):
        with pytest.raises(GpuLostError, match="GPU was lost"):
            session.run(texts_of([13]), layers=(), exclusive=False)
    assert "illegal memory access" in thread.lost
    assert "GPU 7 is lost to this process, which must be replaced" in caplog.text


def test_a_run_that_never_ends_loses_the_gpu(gpu_model: BuiltModel, buckets: Buckets, thread: GpuThread) -> None:
    hanging = threading.Event()

    class Hung(SmallGpu):
        def run(
            self, ids: NDArray[np.int64], mask: NDArray[np.int64], token_outputs: Sequence[str]
        ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
            hanging.wait(60)
            return super().run(ids, mask, token_outputs)

    session = BucketSession(Hung(bound_on_cpu(gpu_model, buckets), BUDGET_SESSION), gpu_model, buckets, thread)
    with pytest.raises(GpuLostError):
        session.run(texts_of([13]), layers=(), exclusive=False)
    assert "has not ended for" in thread.lost
    hanging.set()


def test_shapes_are_measured_at_load_and_a_setting_wins(gpu_model: BuiltModel, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[SmallGpu] = []

    def loaded(model: BuiltModel, _config: GpuConfig, _index: int, buckets: Buckets) -> SmallGpu:
        opened.append(SmallGpu(bound_on_cpu(model, buckets), max_tokens=2048))
        return opened[-1]

    monkeypatch.setattr("gradewire_server.encoders.cuda.open_bound", loaded)
    measured = open_session(gpu_model, ComputeConfig(), GpuConfig(), Gpu(0))
    assert isinstance(measured.session, BucketSession)
    most = measured.session.buckets.max_run_tokens
    assert 0 < most <= 2048, "larger runs do not fit"
    assert measured.compute.max_batch_tokens == most
    assert {shape.size for shape in opened[0].runs} >= {8, 16_384}
    given = open_session(gpu_model, ComputeConfig(), GpuConfig(batch_tokens=100), Gpu(0))
    assert given.compute.max_batch_tokens == 100
    assert all(shape.rows == 1 or shape.size <= 100 for shape in opened[1].runs)


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
        return Told(bound_on_cpu(model, buckets), max_tokens=BUDGET_SESSION)

    monkeypatch.setattr("gradewire_server.encoders.cuda.open_bound", loaded)
    config = GpuConfig(batch_tokens=BUDGET_SESSION)
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
        gpu=GpuConfig(batch_tokens=BUDGET_SESSION),
        cache=CacheConfig(),
    )
    without = await Backends.open(config, CollectorRegistry())
    failed = await without.ports.embeddings.embed("", ["w1 w2"], [Tier.WINDOW])
    assert failed.failures[0].status is Status.MODEL_UNAVAILABLE
    assert "has no CUDAExecutionProvider" in failed.failures[0].message
    await without.close()

    monkeypatch.setattr("gradewire_server.encoders.cuda.find_gpu", lambda _: Gpu(0))
    monkeypatch.setattr(
        "gradewire_server.encoders.cuda.open_bound",
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


async def test_a_text_that_does_not_fit_fails_alone_and_equal_texts_run_once(
    gpu_model: BuiltModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[SmallGpu] = []

    def loaded(model: BuiltModel, _config: GpuConfig, _index: int, buckets: Buckets) -> SmallGpu:
        opened.append(SmallGpu(bound_on_cpu(model, buckets), max_tokens=64))
        return opened[-1]

    monkeypatch.setattr("gradewire_server.encoders.cuda.find_gpu", lambda _: Gpu(0))
    monkeypatch.setattr("gradewire_server.encoders.cuda.open_bound", loaded)
    repository = gpu_model.directory.parent
    registry = CollectorRegistry()
    engine = await Backends.open(EngineConfig(repository, default_model=gpu_model.name, cache=CacheConfig()), registry)
    short = [f"w{number} w{number + 1} w3" for number in range(40)]
    texts = [*short[:20], " ".join(["w5"] * 100), *short[20:]]
    tiers = [Tier.WINDOW] * len(texts)
    embeddings = engine.ports.embeddings
    both = await asyncio.gather(embeddings.embed("", texts, tiers), embeddings.embed("", texts, tiers))
    for reply in both:
        assert {position: failure.status for position, failure in reply.failures.items()} == {20: Status.INVALID_INPUT}
        assert np.isfinite(reply.values).all()
    computed = registry.get_sample_value("gradewire_engine_batch_texts_sum", {"model": gpu_model.name})
    assert computed == len(texts), "each text is in one run only"
    await engine.close()
