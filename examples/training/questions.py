"""Sums in words, and a small model that learns them, for the examples."""

from typing import Any, Final

import torch
from torch import nn

_TO_NINE: Final = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS: Final = ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"]
NUMBERS: Final = [*_TO_NINE, "ten", "eleven", "twelve", *_TEENS]
ROWS: Final[list[dict[str, Any]]] = [
    {"question": f"What is {NUMBERS[first]} plus {NUMBERS[second]}?", "references": [NUMBERS[first + second]]}
    for first in range(10)
    for second in range(10)
]
"""A hundred questions, each with its right answer."""


class Adder(nn.Module):  # type: ignore[misc]  # mypy runs without torch
    """A model that reads a question's two numbers as embeddings and chooses one of 19 answers."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, width)
        self.layers = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, len(NUMBERS)))

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return logits [rows, 19] for the numbers [rows, 2], 0 to 9."""
        logits: torch.Tensor = self.layers(self.embedding(numbers).sum(dim=1))
        return logits


def all_numbers() -> torch.Tensor:
    """Return the numbers in `ROWS`, [100, 2]."""
    return torch.cartesian_prod(torch.arange(10), torch.arange(10))


def answers(model: nn.Module, numbers: torch.Tensor) -> list[str]:
    """Return the model's answers in words."""
    with torch.no_grad():
        return [NUMBERS[index] for index in model(numbers).argmax(dim=1).tolist()]
