"""No GPU is here: what a server without one says, and what it makes of what ONNX Runtime tells it."""

import logging
from typing import Any

import onnx
import pytest
from prometheus_client import CollectorRegistry

from gradewire_models.runtime import onnxruntime
from gradewire_server.encoders.local.cuda.device import CUDA_PROVIDER, DeviceError, Gpu, find_gpu
from gradewire_server.encoders.local.cuda.provider_options import provider_options
from gradewire_server.encoders.opening import open_encoders
from gradewire_server.settings.compute import GpuConfig
from gradewire_server.settings.engine import EngineConfig
from gradewire_server.settings.server import Settings
from gradewire_server.settings.surface import SettingsError


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
    monkeypatch.setattr("gradewire_server.encoders.local.cuda.device.find_gpu", lambda _: Gpu(0))
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
    with pytest.raises(SettingsError, match="device is for encoders of this process"):
        Settings.load(device="cuda", backend="triton", triton_url="host:1")


def test_settings_reach_the_provider() -> None:
    config = Settings.load(device="cuda:2", gpu_memory_limit="2GiB", cuda_graphs=False, gpu_batch_tokens=512).engine.gpu
    assert (config.index, config.asked, config.batch_tokens) == (2, True, 512)
    assert provider_options(config, 2, precision="fp32") == {
        "device_id": "2",
        "arena_extend_strategy": "kSameAsRequested",
        "do_copy_in_default_stream": "1",
        "use_tf32": "0",
        "enable_cuda_graph": "0",
        "gpu_mem_limit": str(2 << 30),
    }
    half = provider_options(GpuConfig(), 0, precision="fp16")
    assert (half["use_tf32"], half["enable_cuda_graph"]) == ("1", "1")
    assert "gpu_mem_limit" not in half
