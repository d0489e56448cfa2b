"""Reads an encoder's folder without torch: its settings, and whether it can be exported."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gradewire_models.errors import ExportError
from gradewire_models.export.modules import Pooling, read_json, read_modules
from gradewire_models.repository.digest import file_sha256

# transformers writes a number like 1e30 where a tokenizer has no limit.
_SANE_TOKENS = 1_000_000
_LICENCE_LINE = re.compile(r"^license:[ \t]*[\"']?([A-Za-z0-9.+-]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EncoderFolder:
    """An encoder as transformers or sentence-transformers saved it.

    Attributes:
        directory: Of the encoder itself: config.json, weights, tokenizer.
        model_type: The architecture's name in transformers, e.g. ``"bert"``.
        pooling: What the folder says; None where it says nothing.
        default_prompt: Text the folder wants before every input; mostly empty.
        prompts: Names of the prompts it offers, with their texts.
        counts_prompt: Whether the tokens of a prompt are pooled as well.
        max_tokens: Longest input the folder allows, special tokens included; None where it says nothing.
        lower_case: Texts are lower-cased before they are tokenized.
        licence: As the model card states it; empty where it does not.
        weight_sha256: SHA-256 of every file of weights, by file name.
    """

    directory: Path
    model_type: str
    pooling: Pooling | None
    default_prompt: str
    prompts: Mapping[str, str]
    counts_prompt: bool
    max_tokens: int | None
    lower_case: bool
    licence: str
    weight_sha256: Mapping[str, str]


def read_folder(directory: Path, *, pooling: Pooling | None = None) -> EncoderFolder:
    """Reads the folder of an encoder.

    Args:
        directory: The folder, as it was downloaded or saved.
        pooling: What to do whatever the folder says.

    Raises:
        ExportError: It is not such a folder, or holds something that is not exported: weights as a pickle, an adapter,
            an encoder-decoder, modules or a pooling that the graph cannot express.
    """
    chain = read_modules(directory, pooling_is_given=pooling is not None)
    config = read_json(chain.transformer / "config.json")
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise ExportError(f"{directory} is not a model's folder: {chain.transformer / 'config.json'} has no model_type")
    if config.get("is_encoder_decoder"):
        raise ExportError(
            f"{directory} holds an encoder-decoder ({model_type}); only encoders and decoders are exported"
        )
    settings = _sentence_settings(chain.transformer)
    task = settings.get("transformer_task", "feature-extraction")
    if task != "feature-extraction":
        raise ExportError(f"{directory} is made for the task {task!r}, which gives no token vectors")
    prompts, default_prompt = _prompts(directory)
    return EncoderFolder(
        directory=chain.transformer,
        model_type=model_type,
        pooling=pooling or chain.pooling,
        default_prompt=default_prompt,
        prompts=prompts,
        counts_prompt=chain.counts_prompt,
        max_tokens=_max_tokens(chain.transformer, settings, config),
        lower_case=bool(settings.get("do_lower_case", False)),
        licence=_licence(directory / "README.md"),
        weight_sha256=_weights(chain.transformer),
    )


def _sentence_settings(directory: Path) -> dict[str, object]:
    # sentence_bert_config.json today; earlier releases named the file after the architecture.
    for path in sorted(directory.glob("sentence_*_config.json")):
        return read_json(path)
    return {}


def _max_tokens(directory: Path, settings: Mapping[str, object], config: Mapping[str, object]) -> int | None:
    stated = (
        settings.get("max_seq_length"),
        read_json(directory / "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings"),
    )
    for value in stated:
        if isinstance(value, int) and 0 < value < _SANE_TOKENS:
            return value
    return None


def _prompts(directory: Path) -> tuple[dict[str, str], str]:
    settings = read_json(directory / "config_sentence_transformers.json")
    prompts = settings.get("prompts") or {}
    default = settings.get("default_prompt_name")
    if not isinstance(prompts, dict) or (default is not None and default not in prompts):
        raise ExportError(f"{directory / 'config_sentence_transformers.json'}: no such prompt as {default!r}")
    texts = {str(name): str(text) for name, text in prompts.items()}
    return texts, texts.get(default or "", "")


def _weights(directory: Path) -> dict[str, str]:
    if (directory / "adapter_config.json").is_file():
        raise ExportError(f"{directory} holds an adapter: merge it into its base model and save that first")
    files = sorted(directory.glob("model*.safetensors"))
    if files:
        return {path.name: file_sha256(path) for path in files}
    if list(directory.glob("*.bin")) or list(directory.glob("*.pt")):
        raise ExportError(
            f"{directory} holds weights as a pickle only, which can run any code when it is read: save them as "
            "model.safetensors where you trust them (transformers: save_pretrained)"
        )
    raise ExportError(f"{directory} holds no weights (model.safetensors)")


def _licence(card: Path) -> str:
    # The model card's front matter; SPDX identifiers know no case.
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    if not text.startswith("---"):
        return ""
    found = _LICENCE_LINE.search(text.split("\n---", 1)[0])
    return found[1] if found else ""
