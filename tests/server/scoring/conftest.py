"""Requests and items that the tests of the scorer share."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.engines.hash_engine import HashEngine

from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.scoring import MetricRequest


@pytest.fixture
def engine() -> HashEngine:
    return HashEngine(models=("hash", "other"))


@pytest.fixture
def request_for() -> Callable[..., MetricRequest]:
    """Makes a request: `request_for("smile", preset="fast")`; the model is "hash" unless named."""

    def make(name: str, **parameters: Any) -> MetricRequest:
        metric = REGISTRY[name]
        if metric.info.needs_model:
            parameters = {"model": "hash", **parameters}
        return MetricRequest(metric, metric.parameters_type(**parameters), NO_MODEL)

    return make
