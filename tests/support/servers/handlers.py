"""The handlers of requests over the hash engine, without a transport."""

from typing import Any

from tests.support.engines.hash_engine import HashEngine

from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.handlers import Handlers
from gradewire_server.requests.plan import Planner
from gradewire_server.scoring import Scorer


def context_over(engine: HashEngine | None = None, **parts: Any) -> RequestContext:
    """What handlers share; `parts` are fields of it that have a default, or other ports, or another scorer."""
    engine = engine or HashEngine()
    ports = parts.pop("ports", engine.ports)
    scorer = parts.pop("scorer", None) or Scorer(ports)
    return RequestContext(scorer, ports, **parts)


def handlers_over(engine: HashEngine | None = None, **parts: Any) -> Handlers:
    """Handlers; arguments as `context_over`."""
    return Handlers(context_over(engine, **parts))


def planner_over(engine: HashEngine, metrics: Any = REGISTRY, prompts: Any = PACKAGE_PROMPTS) -> Planner:
    """A planner of the engine's models."""
    return Planner(engine.ports, metrics, prompts)
