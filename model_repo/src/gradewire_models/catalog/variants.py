"""Variants of a model: the same weights in another arithmetic, under a name and a digest of their own.

Light: standard library only, as `catalog`, which reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Setting: TypeAlias = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a variant is made of its base.

    Attributes:
        method: Key of `gradewire_models.build.recipes.RECIPES`, e.g. ``"gpu"``.
        settings: All that decides the outcome, by name; which there are and what they mean is the method's affair.
    """

    method: str
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Limits:
    """What `verify` asks of a model's vectors, against those of the reference in float64.

    Attributes:
        min_cosine: Least cosine of a sentence vector to the reference's, in [-1, 1].
        max_token_error: Largest error of a component of a token vector; in units of the layer's root mean square where
            that is above 1.
        max_batch_effect: Largest change of a component of a sentence vector when a text runs in a batch, not alone.
    """

    min_cosine: float = 0.99999
    max_token_error: float = 1e-3
    max_batch_effect: float = 1e-5


FP16_LIMITS: Final = Limits(min_cosine=0.9999, max_token_error=0.05, max_batch_effect=5e-4)
"""Of a model in fp16 that no catalog lists."""


def usual_limits(numeric_class: str) -> Limits:
    """What a model of this arithmetic is held to where no catalog says otherwise."""
    return FP16_LIMITS if numeric_class.startswith("fp16-") else Limits()
