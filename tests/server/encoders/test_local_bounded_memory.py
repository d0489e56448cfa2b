"""Memory stays bounded over many texts of many lengths: caches, ONNX Runtime's arena, whatever a call leaves behind."""

import asyncio
import random
from pathlib import Path

from prometheus_client import CollectorRegistry
from tests.support.models.tiny_models import make_package

from gradewire_models.build.install import build_model
from gradewire_server.backends import Backends
from gradewire_server.domain.needs import Tier
from gradewire_server.settings.engine import CacheConfig, EngineConfig

_WORDS = [f"{chr(97 + number % 26)}{number}" for number in range(500)]


def anonymous_bytes() -> int:
    """Memory of our own; file pages of maps are the kernel's to take back."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


async def feed(engine: Backends, chance: random.Random, texts: int) -> None:
    done = 0
    while done < texts:
        calls = []
        for _ in range(8):
            longest = chance.choice([1, 2, 3, 12, 40])
            batch = [
                " ".join(chance.choices(_WORDS, k=chance.randint(1, longest))) for _ in range(chance.choice([1, 60]))
            ]
            batch = list(dict.fromkeys(f"{text} {chance.random()}" for text in batch))
            tiers = chance.choices(list(Tier), k=len(batch))
            calls.append(
                (engine.ports.embeddings.embed_tokens if chance.random() < 0.1 else engine.ports.embeddings.embed)(
                    "", batch, tiers
                )
            )
            done += len(batch)
        await asyncio.gather(*calls)


async def test_it_does_not_creep(tmp_path: Path) -> None:
    package = make_package(tmp_path / "package", "bert")
    build_model(package.model, tmp_path / "repository", wheels=package.wheels)
    config = EngineConfig(
        tmp_path / "repository",
        default_model=package.model.name,
        preload=("",),
        cache=CacheConfig(memory_max_bytes=2 << 20),
    )
    registry = CollectorRegistry()
    engine = await Backends.open(config, registry)
    chance = random.Random(1)  # noqa: S311 - nothing secret
    await feed(engine, chance, 8000)
    before = anonymous_bytes()
    await feed(engine, chance, 8000)
    grown = anonymous_bytes() - before
    assert engine._blobs._lru.evicted_entries > 8000
    assert registry.get_sample_value("gradewire_engine_in_flight_texts") == 0
    assert grown < 2 << 20  # 8 000 texts that left 256 bytes each would show
    await engine.close()
