"""The grader: an encoder over question, reference and answer, the mean of its tokens, one linear layer."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch.nn.utils.rnn import pad_sequence

from gradewire_models.catalog.adapters import ADAPTER_WEIGHTS
from gradewire_models.repository.grader_input import MAX_TOKENS, Piece, Pieces, grader_input
from gradewire_train.adapter import prepare, save_trained, trained_weights
from gradewire_train.encoder import TrainedEncoder
from gradewire_train.errors import TrainingError
from gradewire_train.recipes.grader_recipe import GraderTraining

HEAD_FILE: Final = "head.safetensors"
_TOKENIZE_AT_ONCE: Final = 4096


class Grader(torch.nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """An encoder with a low-rank adapter, and a head.

    Raises:
        TrainingError: The encoder has no token types, its tokens are not averaged, or it reads too few of them.
    """

    def __init__(self, encoder: TrainedEncoder, training: GraderTraining) -> None:
        super().__init__()
        if encoder.pooling != "mean" or getattr(encoder.model.config, "type_vocab_size", 0) < 2:
            raise TrainingError(
                f"base: {encoder.base.name} has no token types or is not pooled by the mean; train on all-MiniLM-L6-v2"
            )
        if encoder.model.config.max_position_embeddings < MAX_TOKENS:
            raise TrainingError(f"base: {encoder.base.name} reads fewer than the {MAX_TOKENS} tokens of a grader")
        for module in encoder.model.modules():
            # The base's own dropout costs a fifth of the time, and each row is read once or twice.
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        prepare(encoder, training)
        self.encoder = encoder
        self.model = encoder.model
        self.head = torch.nn.Linear(encoder.model.config.hidden_size, 1)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, pieces: Sequence[Piece]) -> Any:
        """Logits of "right", float32 [pieces]."""
        lengths = torch.tensor([len(piece.ids) for piece in pieces])
        ids = pad_sequence([torch.tensor(piece.ids) for piece in pieces], batch_first=True)
        position = torch.arange(ids.shape[1])
        mask = (position < lengths[:, None]).long()
        types = (position >= torch.tensor([piece.answer_start for piece in pieces])[:, None]).long() * mask
        rows = self.model(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state.float()
        mean = (rows * mask.unsqueeze(-1)).sum(1) / lengths[:, None]
        return self.head(mean).squeeze(-1)

    def logits(self, pieces: Sequence[Piece], *, batch_size: int = 32) -> list[float]:
        """Logits without gradients, in the order of `pieces`; those of like length go through the encoder together."""
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
        """Takes the weights of a grader that was trained before.

        Raises:
            TrainingError: The folder holds none, or one of another base, rank or targets.
        """
        try:
            matrices = load_file(directory / ADAPTER_WEIGHTS)
            head = load_file(directory / HEAD_FILE)
        except (OSError, SafetensorError) as error:
            raise TrainingError(f"--start: {directory} holds no grader ({error})") from error
        own = {name.replace(".default.", "."): each for name, each in trained_weights(self.model).items()}
        wanted = {**own, **{f"head.{name}": each for name, each in self.head.state_dict().items()}}
        found = {**matrices, **{f"head.{name}": each for name, each in head.items()}}
        if {name: each.shape for name, each in wanted.items()} != {name: each.shape for name, each in found.items()}:
            raise TrainingError(
                f"--start: {directory} holds a grader of another base, rank or targets than the recipe's"
            )
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if parameter.requires_grad:
                    parameter.copy_(matrices[name.replace(".default.", ".")].float())
            self.head.load_state_dict(head)

    def rounded(self) -> None:
        """Rounds the adapter's matrices to what its file holds, float16."""
        with torch.no_grad():
            for parameter in self.model.parameters():
                if parameter.requires_grad:
                    parameter.copy_(parameter.half().float())

    def save(self, training: GraderTraining, directory: Path) -> None:
        """Writes adapter and head."""
        save_trained(self.encoder, training, directory)
        head = {name: each.detach().contiguous() for name, each in self.head.state_dict().items()}
        save_file(head, directory / HEAD_FILE)
        (directory / HEAD_FILE).chmod(0o644)


class GraderTokenizer:
    """Texts as a grader reads them; special tokens that stand in a text are ordinary characters.

    Raises:
        TrainingError: The tokenizer has no tokens that begin a sequence and part texts.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        around = tokenizer.encode("").ids
        if len(around) != 2:
            raise TrainingError("base: its tokenizer puts no single token before and behind a text")
        self._begin, self._separator = around
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def pieces(self, triples: Sequence[tuple[str, str, str]]) -> list[Pieces]:
        """What is read of each (question, reference, answer)."""
        distinct = sorted({text for triple in triples for text in triple})
        ids: dict[str, Sequence[int]] = {}
        for start in range(0, len(distinct), _TOKENIZE_AT_ONCE):
            some = distinct[start : start + _TOKENIZE_AT_ONCE]
            texts = [unicodedata.normalize("NFC", text) for text in some]
            encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
            ids.update(zip(some, (tuple(each.ids) for each in encodings), strict=True))
        return [
            grader_input(*(ids[text] for text in triple), begin=self._begin, separator=self._separator)
            for triple in triples
        ]
