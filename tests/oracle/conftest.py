"""What the project and the oracle say of the same rows, each computed once."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.oracle.oracle import PRESETS, Encoder, Reference, references_of
from tests.oracle.rows import Row, oracle_rows

from gradewire_server.backends import Backends
from gradewire_server.domain.items import Item, MetricResult, ScoredResult
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.scoring import MetricRequest, Scorer
from gradewire_server.settings.engine import EngineConfig

MODEL = "all-MiniLM-L6-v2"
Grade = Callable[[Any, str], list[MetricResult]]


@pytest.fixture(scope="session")
def rows() -> list[Row]:
    return oracle_rows()


@pytest.fixture(scope="session")
def truth(minilm: Path, rows: list[Row]) -> dict[str, list[list[Reference]]]:
    """The oracle's word: preset to rows to references."""
    encoder = Encoder(minilm / MODEL)
    return {p: [references_of(encoder, row.references, row.prediction, p) for row in rows] for p in PRESETS}


@pytest.fixture(scope="session")
def grade(minilm: Path, rows: list[Row]) -> Iterator[Grade]:
    """The project's word: grades all rows with a metric and a preset, over the real engine."""
    loop = asyncio.new_event_loop()
    config = EngineConfig(model_repository=minilm)
    engine = loop.run_until_complete(Backends.open(config, CollectorRegistry()))
    items = [Item(str(index), "", row.references, row.prediction) for index, row in enumerate(rows)]

    def run(metric: Any, preset: str) -> list[MetricResult]:
        results: dict[int, MetricResult] = {}

        def emit(item: int, _metric: int, scored: ScoredResult) -> None:
            results[item] = scored.result

        request = MetricRequest(metric, metric.parameters_type(preset=preset, model=MODEL), NO_MODEL)
        loop.run_until_complete(Scorer(engine.ports).score(items, [request], emit=emit))
        return [results[index] for index in range(len(items))]

    yield run
    loop.run_until_complete(engine.close())
    loop.close()
