"""What a step of a grader's training reads, and its loss: weighted binary cross-entropy with soft labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradewire_models.repository.grader_input import Piece, Pieces
from gradewire_train.batches import LengthBatches
from gradewire_train.grader.model import Grader, GraderTokenizer
from gradewire_train.grader.rows import GraderRow, weights
from gradewire_train.recipes.grader_recipe import GraderRecipe


class Judgement:
    """The `Task` of a grader."""

    def __init__(
        self, grader: Grader, tokenizer: GraderTokenizer, rows: Sequence[GraderRow], recipe: GraderRecipe
    ) -> None:
        self._grader, self._recipe = grader, recipe
        material, training = recipe.material, recipe.training
        kept = [row.references[: material.reference_count] for row in rows]
        self._asked = _pieces(tokenizer, rows, kept, asked=True)
        self._unasked = _pieces(tokenizer, rows, kept, asked=False)
        soft = material.smoothing
        self._labels = torch.tensor([soft + (1 - 2 * soft) * row.label for row in rows])
        self._weights = torch.tensor(weights(rows, drawn_share=material.drawn_share))
        lengths = np.array([len(pieces[0].ids) for pieces in self._asked], np.int64)
        self._batches = LengthBatches(lengths, batch_size=training.batch_size, seed=training.seed)

    @property
    def model(self) -> Any:
        """The grader."""
        return self._grader

    def rates(self) -> Sequence[tuple[float, Sequence[Any]]]:
        """The adapter at the recipe's rate, the head at its multiple."""
        adapter = [each for each in self._grader.model.parameters() if each.requires_grad]
        return [(1.0, adapter), (self._recipe.training.head_rate, list(self._grader.head.parameters()))]

    def terms(self, step: int) -> Mapping[str, Any]:
        """The mean of the rows' weighted losses."""
        training = self._recipe.training
        chosen = self._batches[step]
        # Another reference in every epoch.
        epoch = step // self._batches.per_epoch
        bare = np.random.default_rng([training.seed, 2, step]).random(len(chosen)) < self._recipe.material.unasked
        sources = [self._unasked if each else self._asked for each in bare]
        pieces = [read[index][epoch % len(read[index])] for index, read in zip(chosen, sources, strict=True)]
        with torch.autocast("cpu", torch.bfloat16, enabled=training.precision == "bfloat16"):
            logits = self._grader(pieces)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            logits.float(), self._labels[chosen], reduction="none"
        )
        return {"cross_entropy": (self._weights[chosen] * losses).mean()}

    def evaluate(self) -> dict[str, float]:
        """Nothing: the last step is kept."""
        return {}


def _pieces(
    tokenizer: GraderTokenizer, rows: Sequence[GraderRow], references: Sequence[tuple[str, ...]], *, asked: bool
) -> list[tuple[Piece, ...]]:
    triples = [
        (row.question if asked else "", reference, row.prediction)
        for row, kept in zip(rows, references, strict=True) for reference in kept
    ]  # fmt: skip
    found = iter(tokenizer.pieces(triples))
    return [tuple(_fullest(next(found)) for _ in kept) for kept in references]


def _fullest(pieces: Pieces) -> Piece:
    """Of a long answer the piece with most of the reference's tokens, where the reason for its label stands."""
    if len(pieces.pieces) == 1:
        return pieces.pieces[0]

    def found(piece: Piece) -> int:
        front = set(piece.ids[: piece.answer_start])
        return len(front & set(piece.ids[piece.answer_start : -1]))

    return max(pieces.pieces, key=found)


def row_logits(grader: Grader, tokenizer: GraderTokenizer, rows: Sequence[GraderRow]) -> NDArray[np.float64]:
    """The logit of each row: the highest over its references and the pieces of its answer; float64 [rows]."""
    triples = [(row.question, reference, row.prediction) for row in rows for reference in row.references]
    owners = [index for index, row in enumerate(rows) for _ in row.references]
    read = tokenizer.pieces(triples)
    pieces = [piece for each in read for piece in each.pieces]
    of = [owner for owner, each in zip(owners, read, strict=True) for _ in each.pieces]
    highest = np.full(len(rows), -np.inf)
    np.maximum.at(highest, of, grader.logits(pieces))
    return highest
