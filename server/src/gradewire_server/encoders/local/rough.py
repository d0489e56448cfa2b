"""Approximate vectors of a model, in bf16: how they are opened, and how far off they are on this machine."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_server.encoders.local.bf16_session import Bf16Session, Bf16UnavailableError
from gradewire_server.encoders.local.choosing import Session
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.settings.compute import ComputeConfig

_log = logging.getLogger(__name__)

_MARGIN: Final = 1.5
"""Of the largest error that is measured: texts to come may have a larger one (docs/research/encoders.md)."""
_LONGEST_WINDOW: Final = 4
_TEXTS_A_RUN: Final = 32
_SENTENCES: Final = (
    "The capital of Australia is Canberra, although many people believe that it is Sydney",
    "In 1969 Neil Armstrong became the first person to walk on the moon",
    "Two brown dogs and a striped kitten are asleep on the old red sofa",
    "William Shakespeare wrote Hamlet, Macbeth and King Lear around 1600",
    "Water boils at 100 degrees Celsius, that is 212 degrees Fahrenheit, at sea level",
    "The mitochondria produce most of the chemical energy of a eukaryotic cell",
    "No, the photograph shows a woman with an umbrella waiting for the tram",
    "Dmitri Mendeleev arranged sixty three elements by their atomic weight",
    "The Treaty of Versailles was signed by Germany and the Allied Powers in June",
    "Zinedine Zidane scored twice against Brazil and France won three goals to nil",
    "Johann Sebastian Bach composed the Brandenburg Concertos for the margrave Christian Ludwig",
    "It depends on the interest rate, the term of the loan and the monthly payment",
)
"""Ordinary answers; their windows are what errors are measured on. To change one changes the bound."""


def open_bf16(model: BuiltModel, compute: ComputeConfig) -> Bf16Session | None:
    """A model in bf16 where the settings ask for it; None, with a warning, where it cannot be had."""
    if compute.window_choice != "bf16" or model.kind == "grader" or not model.on_cpu:
        return None
    try:
        return Bf16Session(model, compute)
    except Bf16UnavailableError as error:
        _log.warning("windows of %s are chosen in fp32, not in bf16: %s", model.name, error)
        return None


def described_in_bf16(model: BuiltModel) -> BuiltModel:
    """The same model under a digest of its own: names of entries in caches follow from it."""
    digest = hashlib.sha256(f"bf16 to choose windows\n{model.digest}".encode()).hexdigest()
    return replace(model, digest=digest, numeric_class="bf16-cpu")


def measured_cosine_error(exact: Session, rough: Session, tokenizer: TextTokenizer) -> float:
    """Largest error of a cosine of an approximate vector and an exact one, over all pairs of a fixed set of texts.

    Returns:
        With a margin for texts that are not among them.
    """
    texts = [
        " ".join(words[begin : begin + length])
        for words in (sentence.lower().replace(",", "").split() for sentence in _SENTENCES)
        for length in range(1, _LONGEST_WINDOW + 1)
        for begin in range(len(words) - length + 1)
    ]
    ids = sorted((text.ids for text in tokenizer.encode([*_SENTENCES, *texts])), key=len)
    vectors = _vectors(exact, ids)
    return _MARGIN * float(np.abs((_vectors(rough, ids) - vectors) @ vectors.T).max())


def _vectors(session: Session, ids: Sequence[NDArray[np.int32]]) -> NDArray[np.float32]:
    parts = (ids[start : start + _TEXTS_A_RUN] for start in range(0, len(ids), _TEXTS_A_RUN))
    return np.concatenate([session.run(part, layers=(), exclusive=False).sentences for part in parts])
