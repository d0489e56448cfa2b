"""What programs of metrics share: several needs in one round, usual needs, and whether texts were cut."""

from collections.abc import Generator
from typing import Any

from gradewire_server.domain.needs import Embed, Need, Preparation, Tier, Vectors, ask
from gradewire_server.domain.result import Failure


def ask_together(*needs: Need) -> Generator[tuple[Need, ...], Any, Any]:
    """Yields all needs as one round.

    Returns:
        Their answers in the same order (Any: a tuple of what `ask` returns for each), or the first Failure among them.
    """
    answers = yield needs
    return next((answer for answer in answers if isinstance(answer, Failure)), answers)


def sentence_needs(model: str, prediction: str, references: tuple[str, ...]) -> tuple[Embed, Embed]:
    """Needs for the vector of a prediction and for those of the references that it is compared with."""
    return Embed(model, (prediction,), Tier.PREDICTION), Embed(model, references, Tier.REFERENCE)


def embed_references(model: str, texts: tuple[str, ...]) -> Preparation:
    """Asks for the vectors of references that are prepared."""
    vectors = yield from ask(Embed(model, texts, Tier.REFERENCE))
    return vectors if isinstance(vectors, Failure) else None


def is_cut(*answers: Vectors) -> bool:
    """Whether the encoder read a text only in part."""
    return any(bool(answer.truncated.any()) for answer in answers)
