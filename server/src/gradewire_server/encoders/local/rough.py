"""Approximate vectors of a model, in bf16: how they are opened, and how far off they are on this machine."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.bf16 import BF16_CLASS, Bf16UnavailableError
from gradewire_models.repository.built import BuiltModel
from gradewire_server.encoders.local.session import Bf16Session, Session
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.settings.engine import ComputeConfig

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


@dataclass(frozen=True, slots=True)
class RoughSession:
    """What makes approximate vectors of a model.

    Attributes:
        session: Runs it.
        cosine_error: See `ModelMetadata.rough_cosine_error`.
    """

    session: Bf16Session
    cosine_error: float


def open_rough(
    model: BuiltModel, compute: ComputeConfig, exact: Session, tokenizer: TextTokenizer
) -> RoughSession | str | None:
    """A model in bf16 beside its own session, where the settings ask for it.

    Args:
        model: What is loaded.
        compute: Says whether windows are chosen in bf16.
        exact: The model's session.
        tokenizer: The model's.

    Returns:
        None where nobody asks, or the model has no vectors on CPUs, or bf16's already; why it cannot be had where it
        cannot.
    """
    if compute.window_choice != "bf16" or model.kind == "grader" or not model.on_cpu:
        return None
    if model.numeric_class == BF16_CLASS:
        return None
    try:
        session = Bf16Session(model, compute)
        return RoughSession(session, measured_cosine_error(exact, session, tokenizer))
    except Bf16UnavailableError as error:
        return _fp32_stays(model, str(error), error)
    except RuntimeError as error:  # of OpenVINO or ONNX Runtime; its words name files
        return _fp32_stays(model, "a first run failed, the server's log says why", error)


def _fp32_stays(model: BuiltModel, why: str, error: Exception) -> str:
    problem = f"windows of {model.name} are chosen in fp32, not in bf16: {why}"
    _log.warning("%s", problem, exc_info=error)
    return problem


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
