"""What NVIDIA's cards can do at most, by their data sheets; nothing of it was measured."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Card:
    """The two limits of the roofline.

    Attributes:
        flops: Dense float16 products on tensor cores, operations a second (some data sheets print twice that, with
            sparsity).
        memory_bytes_per_s: Bandwidth of the card's memory.
    """

    flops: float
    memory_bytes_per_s: float


CARDS: Final = {
    "H200 NVL": Card(835e12, 4.8e12),
    "H200": Card(989e12, 4.8e12),
    "H100 PCIe": Card(756e12, 2.0e12),
    "H100 NVL": Card(835e12, 3.9e12),
    "H100": Card(989e12, 3.35e12),
    "A100-SXM4-80GB": Card(312e12, 2.039e12),
    "A100 80GB": Card(312e12, 1.935e12),
    "A100": Card(312e12, 1.555e12),
    "L40S": Card(362e12, 864e9),
    "L40": Card(181e12, 864e9),
    "L4": Card(121e12, 300e9),
    "A10": Card(125e12, 600e9),
    "T4": Card(65e12, 320e9),
}
"""By a word of the name that nvidia-smi gives; the first that fits. Of NVIDIA's data sheet for each card (nvidia.com)
and, for the A100 with 40 GB and the T4's memory, NVIDIA's white paper on Ampere and product brief of the T4."""


def card_named(name: str) -> Card | None:
    """The card of a name, whole words only (an A10G is no A10); None where it is not known."""
    fits = (card for word, card in CARDS.items() if re.search(rf"(?<![A-Za-z0-9]){word}(?![A-Za-z0-9])", name))
    return next(fits, None)
