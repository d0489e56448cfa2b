"""What is scored where nobody says by which metric."""

from collections.abc import Mapping
from typing import Final

from gradewire.metric_types import Correctness, Smile
from gradewire.model_list import ModelList

USUAL_METRICS: Final = f"{Smile.name},{Correctness.name}"
"""Both cost about what the first one does; `correctness` needs an encoder that has a fit."""


def without_metrics(listed: ModelList, model: str | None) -> Mapping[str, str]:
    """Metrics that an encoder as it is built cannot compute, and why; none where the encoder is not known.

    Args:
        listed: What the server has.
        model: NAME or NAME@DIGEST; None: its default encoder.
    """
    name = (model or "").partition("@")[0]
    for encoder in listed.models:
        if encoder.kind == "encoder" and (encoder.name == name if name else encoder.is_default):
            return encoder.without_metrics
    return {}


def usual_metrics(listed: ModelList, model: str | None) -> tuple[str, str]:
    """The usual metrics that a server can compute with an encoder, and what its caller should know of it.

    Where the encoder itself is missing both say so, and nothing is left out.

    Args:
        listed: What the server has.
        model: NAME or NAME@DIGEST; None: its default encoder.

    Returns:
        The metrics, as they are written; and the remark that goes with smile alone, empty where both are there, or
        where a server does not say what it has.
    """
    if not listed.metrics:
        return Smile.name, ""
    why = without_metrics(listed, model).get(Correctness.name, "")
    if all(metric.name != Correctness.name for metric in listed.metrics):
        why = "the server does not have it"
    return (
        (Smile.name, f"{Correctness.name} is left out, {Smile.name} is scored alone: {why}")
        if why
        else (USUAL_METRICS, "")
    )
