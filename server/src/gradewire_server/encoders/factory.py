"""A factory for the encoder service. The factory imports only the chosen backend."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from gradewire_models.catalog.loading import default_model
from gradewire_server.encoders.cached_encoder import CachedEncoder
from gradewire_server.encoders.library import ModelLibrary
from gradewire_server.encoders.pending import PendingTexts
from gradewire_server.encoders.prometheus import EncoderTelemetry
from gradewire_server.encoders.service import EncoderService

_GPU_CLASS: Final = "fp16-cuda"

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from gradewire_server.encoders.cached_encoder import BlobCache
    from gradewire_server.encoders.library import ModelSource
    from gradewire_server.settings.engine import EngineConfig


def check_installed(config: EngineConfig) -> None:
    """Import the libraries that the encoders need.

    Raises:
        ImportError: A library is not installed; `name` is the library's name.
    """
    import_module(f"gradewire_server.encoders.{'local' if config.triton is None else 'triton_source'}")


def open_encoders(config: EngineConfig, blobs: BlobCache, registry: CollectorRegistry) -> EncoderService:
    """Return the service, without loading a model. This takes about a second if there is a GPU.

    Raises:
        OSError: A certificate cannot be read, or the requested GPU cannot be used.
        ImportError: A library is not installed.
    """
    telemetry = EncoderTelemetry(registry)
    pending = PendingTexts()
    telemetry.expose(in_flight=lambda: len(pending))

    def library_of(source: ModelSource) -> ModelLibrary:
        return ModelLibrary(
            source,
            default=default_encoder_of(config),
            namespace=config.cache.namespace,
            wrap=lambda encoder: CachedEncoder(encoder, blobs, pending, telemetry),
        )

    if config.triton is None:
        from gradewire_server.encoders.cuda import find_gpu  # noqa: PLC0415 - brings ONNX Runtime
        from gradewire_server.encoders.gpu_watch import gpu_thread  # noqa: PLC0415 - only for a GPU
        from gradewire_server.encoders.local import SessionSource  # noqa: PLC0415 - brings ONNX Runtime
        from gradewire_server.encoders.window_graphs import FOLDER  # noqa: PLC0415 - as above

        gpu = find_gpu(config.gpu)
        if gpu.index is not None:
            # Start the GPU's thread here, because threads that load models have a low priority.
            thread = gpu_thread(gpu.index)
            telemetry.expose_gpu(busy_s=lambda: thread.busy_s)
        disk = config.cache.disk
        local = SessionSource(
            config.model_repository,
            config.compute,
            telemetry,
            gpu_config=config.gpu,
            gpu=gpu,
            window_graphs=None if disk is None else disk.directory / FOLDER,
        )
        return EncoderService(local, library_of(local), telemetry, preload=config.preload)
    from gradewire_server.encoders.prometheus import TritonTelemetry  # noqa: PLC0415 - as above
    from gradewire_server.encoders.triton_source import TritonSource  # noqa: PLC0415 - an optional extra
    from gradewire_server.encoders.triton_supervisor import TritonSupervisor  # noqa: PLC0415 - as above

    counters = TritonTelemetry(registry)
    remote = TritonSource(config.model_repository, config.compute, config.triton, telemetry, counters)
    library = library_of(remote)
    supervisor = TritonSupervisor(library, remote, config.triton, counters)
    remote.supervise(supervisor)
    return EncoderService(remote, library, telemetry, preload=config.preload, stop_supervision=supervisor.close)


def default_encoder_of(config: EngineConfig) -> str:
    """Return the name of the encoder for requests without one: the setting's, or the catalog's default.

    If the settings require a GPU, it is the catalog's variant for a GPU.
    """
    is_on_gpu = config.triton is None and config.gpu.required
    return config.default_model or f"{default_model().name}{f'-{_GPU_CLASS}' if is_on_gpu else ''}"
