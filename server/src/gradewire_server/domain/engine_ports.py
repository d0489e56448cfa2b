"""The ports of an engine that stands behind all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradewire_server.domain.ports import Engine, ModelStatus, Ports
from gradewire_server.domain.result import Failure


@dataclass(frozen=True, slots=True)
class _Index:
    """A ModelIndex of two calls."""

    statuses: Callable[[], Sequence[ModelStatus]]
    status: Callable[[str], ModelStatus | Failure]


def ports_of(engine: Engine) -> Ports:
    """Each port of `engine`."""
    return Ports(
        embeddings=engine,
        encoders=_Index(engine.models, engine.model),
        judges=engine,
        judge_models=_Index(engine.judges, engine.judge),
        reference_sets=engine,
        lexicon=engine,
    )
