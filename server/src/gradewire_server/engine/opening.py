"""Opens the engine that the settings ask for; the other one is not even imported."""

from prometheus_client import CollectorRegistry

from gradewire_server.engine.config import EngineConfig
from gradewire_server.engine.vector_engine import VectorEngine


async def open_engine(config: EngineConfig, registry: CollectorRegistry) -> VectorEngine:
    """Opens stores and preloads models; what cannot be had is shown by `VectorEngine.health`.

    Args:
        config: See `EngineConfig`.
        registry: Where the engine registers its metrics; one engine per registry.

    Raises:
        OSError: A certificate cannot be read.
    """
    if config.triton is not None:
        from gradewire_server.engine.triton import TritonEngine  # noqa: PLC0415 - an extra that others need not have

        return await TritonEngine.open(config, registry)
    from gradewire_server.engine.embedded import EmbeddedEngine  # noqa: PLC0415 - brings ONNX Runtime

    return await EmbeddedEngine.open(config, registry)
