"""Opens the engine that the settings ask for; the other one is not even imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from gradewire_server.encoders.local.source import EmbeddedEngine
    from gradewire_server.encoders.triton.source import TritonEngine
    from gradewire_server.encoders.vector_engine import VectorEngine
    from gradewire_server.settings.engine import EngineConfig


def engine_type(config: EngineConfig) -> type[EmbeddedEngine | TritonEngine]:
    """The engine that is asked for, imported now.

    Raises:
        ImportError: What it runs on is not installed; its `name` says what.
    """
    if config.triton is not None:
        from gradewire_server.encoders.triton.source import TritonEngine  # noqa: PLC0415 - an extra that others need not have

        return TritonEngine
    from gradewire_server.encoders.local.source import EmbeddedEngine  # noqa: PLC0415 - brings ONNX Runtime

    return EmbeddedEngine


async def open_engine(config: EngineConfig, registry: CollectorRegistry) -> VectorEngine:
    """Opens stores and preloads models; what cannot be had is shown by `VectorEngine.health`.

    Args:
        config: See `EngineConfig`.
        registry: Where the engine registers its metrics; one engine per registry.

    Raises:
        OSError: A certificate cannot be read.
        ImportError: As `engine_type`.
    """
    return await engine_type(config).open(config, registry)
