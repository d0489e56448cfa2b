"""Define the grader (an encoder with a linear layer) and its loss."""

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch.nn.utils.rnn import pad_sequence

from gradewire_models.catalog.entries import ADAPTER_WEIGHTS, HEAD_WEIGHTS
from gradewire_models.repository.grader_input import MAX_TOKENS, Piece, Pieces, begin_and_separator, grader_input
from gradewire_train import TrainingError
from gradewire_train.batches import Batches, ids_by_text
from gradewire_train.encoder import (
    TokenIds,
    TrainedEncoder,
    device_of,
    prepare,
    save_trained,
    set_weights,
    trained_weights,
)
from gradewire_train.recipes import GraderRecipe, GraderTraining
from gradewire_train.rows.row import GraderRow, weights
from gradewire_train.run.steps import products


class Grader(torch.nn.Module):  # type: ignore[misc]  # torch is not installed for type checks
    """An encoder with a low-rank adapter, and a head.

    Raises:
        TrainingError: The encoder does not pool by the mean, or has too few positions.
    """

    def __init__(self, encoder: TrainedEncoder, training: GraderTraining) -> None:
        super().__init__()
        if encoder.pooling != "mean":
            raise TrainingError(
                f"base: {encoder.base.name} pools by {encoder.pooling}, not by the mean. Train on all-MiniLM-L6-v2"
            )
        if encoder.model.config.max_position_embeddings < MAX_TOKENS:
            raise TrainingError(f"base: {encoder.base.name} accepts too few tokens. A grader needs {MAX_TOKENS}")
        for module in encoder.model.modules():
            # Disable the base's dropout, which takes a fifth of the time.
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        prepare(encoder, training)
        self.encoder = encoder
        self.model = encoder.model
        self._has_types = getattr(encoder.model.config, "type_vocab_size", 0) > 1
        self.head = torch.nn.Linear(encoder.model.config.hidden_size, 1)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)
        self.head.to(device_of(self.model))

    def forward(self, pieces: Sequence[Piece]) -> Any:
        """Return each piece's logit of the answer being right, float32 [pieces].

        An encoder without token types (mpnet) tells the texts apart by the separators.
        """
        device = device_of(self.head)
        lengths = torch.tensor([len(piece.ids) for piece in pieces]).to(device)
        ids = pad_sequence([torch.tensor(piece.ids) for piece in pieces], batch_first=True).to(device)
        position = torch.arange(ids.shape[1], device=device)
        mask = (position < lengths[:, None]).long()
        types = {}
        if self._has_types:
            starts = torch.tensor([piece.answer_start for piece in pieces]).to(device)
            types["token_type_ids"] = (position >= starts[:, None]).long() * mask
        rows = self.model(input_ids=ids, attention_mask=mask, **types).last_hidden_state.float()
        mean = (rows * mask.unsqueeze(-1)).sum(1) / lengths[:, None]
        return self.head(mean).squeeze(-1)

    def logits(self, pieces: Sequence[Piece], *, batch_size: int = 32) -> list[float]:
        """Return logits without gradients, in the order of `pieces`; pieces of similar length share a batch."""
        self.eval()
        order = sorted(range(len(pieces)), key=lambda index: len(pieces[index].ids))
        found = [0.0] * len(pieces)
        with torch.inference_mode():
            for start in range(0, len(order), batch_size):
                chosen = order[start : start + batch_size]
                for index, value in zip(chosen, self([pieces[each] for each in chosen]).tolist(), strict=True):
                    found[index] = value
        return found

    def start_from(self, directory: Path) -> None:
        """Load an earlier grader's weights.

        Raises:
            TrainingError: The folder contains no grader, or a grader with a different base, rank or targets.
        """
        try:
            matrices = load_file(directory / ADAPTER_WEIGHTS)
            head = load_file(directory / HEAD_WEIGHTS)
        except (OSError, SafetensorError) as error:
            raise TrainingError(f"--start: {directory} contains no grader ({error})") from error
        names = {name.removeprefix("model.").replace(".default.", "."): name for name in trained_weights(self)}
        found = {**matrices, **{f"head.{name}": each for name, each in head.items()}}
        try:
            set_weights(self, {names.get(name, name): each for name, each in found.items()})
        except TrainingError as error:
            raise TrainingError(
                f"--start: base, rank or targets of the grader in {directory} differ from the recipe's"
            ) from error

    def mix(self, earlier: Mapping[str, Any], share: float) -> None:
        """Replace the trained weights by the weighted mean of `earlier` (weight `share`) and the weights."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.requires_grad:
                    parameter.copy_(earlier[name] * share + parameter * (1 - share))

    def rounded(self) -> None:
        """Round the adapter's matrices to float16, the precision of its file."""
        with torch.no_grad():
            for parameter in self.model.parameters():
                if parameter.requires_grad:
                    parameter.copy_(parameter.half().float())

    def save(self, training: GraderTraining, directory: Path) -> None:
        """Write the adapter and the head."""
        save_trained(self.encoder, training, directory)
        head = {name: each.detach().contiguous() for name, each in self.head.state_dict().items()}
        save_file(head, directory / HEAD_WEIGHTS)
        (directory / HEAD_WEIGHTS).chmod(0o644)


class GraderTokenizer:
    """A tokenizer for a grader's texts, which treats special tokens in a text as ordinary characters.

    Raises:
        TrainingError: The tokenizer adds other tokens to a text than one before and one after it.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        try:
            self._begin, self._separator = begin_and_separator(tokenizer)
        except ValueError as error:
            raise TrainingError(f"base: {error}") from error
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def _tokenize(self, texts: Sequence[str]) -> list[TokenIds]:
        normal = [unicodedata.normalize("NFC", text) for text in texts]
        return [tuple(each.ids) for each in self._tokenizer.encode_batch_fast(normal, add_special_tokens=False)]

    def pieces(self, triples: Sequence[tuple[str, str, str]]) -> list[Pieces]:
        """Return the pieces for each (question, reference, answer)."""
        ids = ids_by_text({text for triple in triples for text in triple}, self._tokenize)
        return [
            grader_input(*(ids[text] for text in triple), begin=self._begin, separator=self._separator)
            for triple in triples
        ]


class Judgement:
    """A grader's `Task`."""

    def __init__(
        self, grader: Grader, tokenizer: GraderTokenizer, rows: Sequence[GraderRow], recipe: GraderRecipe
    ) -> None:
        self._grader, self._recipe = grader, recipe
        material, training = recipe.material, recipe.training
        kept = [row.references[: material.reference_count] for row in rows]
        self._asked = _pieces(tokenizer, rows, kept, asked=True)
        self._unasked = _pieces(tokenizer, rows, kept, asked=False)
        soft = material.smoothing
        device = device_of(grader.head)
        self._labels = torch.tensor([soft + (1 - 2 * soft) * row.label for row in rows]).to(device)
        self._weights = torch.tensor(weights(rows, drawn_share=material.drawn_share)).to(device)
        lengths = np.array([len(pieces[0].ids) for pieces in self._asked], np.int64)
        self._batches = Batches(lengths, batch_size=training.batch_size, seed=training.seed)

    @property
    def model(self) -> Any:
        """The grader."""
        return self._grader

    def rates(self) -> Sequence[tuple[float, Sequence[Any]]]:
        """Return the adapter's weights with the factor 1, and the head's weights with the recipe's `head_rate`."""
        adapter = [each for each in self._grader.model.parameters() if each.requires_grad]
        return [(1.0, adapter), (self._recipe.training.head_rate, list(self._grader.head.parameters()))]

    def terms(self, step: int) -> Mapping[str, Any]:
        """Return the mean weighted loss of the step's rows."""
        training = self._recipe.training
        chosen = self._batches[step]
        # Each epoch uses the next reference.
        epoch = step // self._batches.per_epoch
        bare = np.random.default_rng([training.seed, 2, step]).random(len(chosen)) < self._recipe.material.unasked
        sources = [self._unasked if each else self._asked for each in bare]
        pieces = [read[index][epoch % len(read[index])] for index, read in zip(chosen, sources, strict=True)]
        with products(training, self._labels.device):
            logits = self._grader(pieces)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            logits.float(), self._labels[chosen], reduction="none"
        )
        return {"cross_entropy": (self._weights[chosen] * losses).mean()}

    def evaluate(self) -> dict[str, float]:
        """Return {}, because grader training keeps the last step."""
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
    """Return the piece whose part of the answer contains the most distinct tokens of the question and the reference.

    A row has one label for the whole answer, which most probably applies to this piece.
    """
    if len(pieces.pieces) == 1:
        return pieces.pieces[0]

    def found(piece: Piece) -> int:
        front = set(piece.ids[: piece.answer_start])
        return len(front & set(piece.ids[piece.answer_start : -1]))

    return max(pieces.pieces, key=found)


def row_logits(grader: Grader, tokenizer: GraderTokenizer, rows: Sequence[GraderRow]) -> NDArray[np.float64]:
    """Return each row's logit, the highest over references and pieces, float64 [rows]."""
    triples = [(row.question, reference, row.prediction) for row in rows for reference in row.references]
    owners = [index for index, row in enumerate(rows) for _ in row.references]
    read = tokenizer.pieces(triples)
    pieces = [piece for each in read for piece in each.pieces]
    of = [owner for owner, each in zip(owners, read, strict=True) for _ in each.pieces]
    highest = np.full(len(rows), -np.inf)
    np.maximum.at(highest, of, grader.logits(pieces))
    return highest
