"""BERTScore equals the package bert-score, with the same weights and layer, whose values tests_export made."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from gradewire_models.repository.built import default_repository, list_built
from gradewire_proto.choices import Measure
from gradewire_proto.parts import BertscoreParts
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Item, ScoredResult
from gradewire_server.domain.metric import ModelMetadata
from gradewire_server.metrics.encoder.bertscore import Bertscore, BertscoreParameters
from gradewire_server.scoring import MetricRequest, Scorer
from gradewire_server.settings.engine import EngineConfig

TOLERANCE = 1e-4
GOLDEN = json.loads(Path(__file__).with_name("bertscore_golden.json").read_text(encoding="utf-8"))
ITEMS = [Item(str(i), "", tuple(references), prediction) for i, (prediction, references) in enumerate(GOLDEN["pairs"])]
QUESTIONS = GOLDEN["questions"]
SETTINGS: dict[str, dict[str, Any]] = {"plain": {}, "idf": {"idf": "request"}, "rescaled": {"rescale": True}}
BUILT = {model.name for model in list_built(default_repository())} & set(GOLDEN["models"])


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def engine(minilm: Path, runner: asyncio.Runner) -> Iterator[Backends]:
    engine = runner.run(Backends.open(EngineConfig(minilm), CollectorRegistry()))
    yield engine
    runner.run(engine.close())


def metadata_of(engine: Backends, model: str) -> ModelMetadata:
    """The model's own, with the baseline that the package was given."""
    status = engine.ports.encoders.status(model)
    assert not isinstance(status, Failure)
    layers = (replace(layer, baseline=tuple(GOLDEN["baseline"])) for layer in status.metadata.token_layers)
    return replace(status.metadata, token_layers=tuple(layers))


def measured(
    engine: Backends,
    runner: asyncio.Runner,
    model: str,
    layer: int,
    items: list[Item],
    setting: dict[str, Any],
) -> dict[tuple[int, int], float]:
    """Precision, recall and F1 by item and place."""
    metadata = metadata_of(engine, model)
    requests = []
    for measure in (Measure.PRECISION, Measure.RECALL, Measure.F1):
        given = BertscoreParameters(model=model, layer=layer, measure=measure, **setting)
        requests.append(MetricRequest(Bertscore(), given.resolved(metadata), metadata))
    found: dict[tuple[int, int], float] = {}

    def emit(item: int, metric: int, scored: ScoredResult) -> None:
        assert scored.result.score is not None, (items[item].prediction, scored.result.message)
        assert isinstance(scored.result.parts, BertscoreParts)
        found[item, metric] = scored.result.score

    runner.run(Scorer(engine.ports).score(items, requests, emit=emit))
    return found


def test_there_are_fifty_pairs_of_all_kinds() -> None:
    assert len(ITEMS) == 50
    assert "all-MiniLM-L6-v2" in BUILT
    assert GOLDEN["made_by"]["bert-score"] == "0.3.13"


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("model", "layer"), [(model, layer) for model in sorted(BUILT) for layer in GOLDEN["models"][model]]
)
def test_equal_to_the_package(engine: Backends, runner: asyncio.Runner, model: str, layer: str, setting: str) -> None:
    found = measured(engine, runner, model, int(layer), ITEMS, SETTINGS[setting])
    expected = GOLDEN["models"][model][layer][setting]
    assert len(found) == 150
    worst = max(abs(value - expected[item][metric]) for (item, metric), value in found.items())
    assert worst < TOLERANCE


@pytest.mark.parametrize(
    ("model", "layer"), [(model, layer) for model, layers in QUESTIONS["models"].items() for layer in layers]
)
def test_behind_questions_weights_are_those_of_the_texts_that_are_compared(
    engine: Backends, runner: asyncio.Runner, model: str, layer: str
) -> None:
    # All questions but for one word are the same. Counted over bare references they would weigh most: a red bus said to
    # be blue had 0.8916 where the package says 0.7015, and 0.8839 without weights.
    items = [Item(str(i), q, tuple(references), y) for i, (q, y, references) in enumerate(QUESTIONS["items"])]
    found = measured(engine, runner, model, int(layer), items, {"idf": "request", "with_question": True})
    expected = QUESTIONS["models"][model][layer]
    assert len(found) == 12
    assert max(abs(value - expected[item][metric]) for (item, metric), value in found.items()) < TOLERANCE
