"""Read an encoder's folder or download it, and reject models that cannot be exported."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradewire_models.catalog.entries import ADAPTER_METADATA
from gradewire_models.errors import DownloadError, ExportError
from gradewire_models.repository.digest import file_sha256

Pooling = Literal["mean", "cls", "last", "pooler"]
"""The method that turns token vectors into a sentence vector.

``mean`` averages the text's tokens. ``cls`` takes the first token's vector. ``last``, for decoders, takes the last
token's vector. ``pooler`` applies the model's pooler from transformers, a dense layer and tanh, to the first token.
"""

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

_MODULES_FILE = "modules.json"
# After normalisation, a sum divided by the square root of the number of tokens equals the mean.
_MODES: dict[str, Pooling] = {"mean": "mean", "mean_sqrt_len_tokens": "mean", "cls": "cls", "lasttoken": "last"}
_OLD_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

# transformers writes a value like 1e30 for a tokenizer without a limit.
_SANE_TOKENS = 1_000_000
_HEADER_LENGTH_BYTES = 8
_LONGEST_HEADER_BYTES = 100_000_000  # the format's own limit
_LICENCE_LINE = re.compile(r"^license:[ \t]*[\"']?([A-Za-z0-9.+-]+)", re.MULTILINE)

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")

# Files that an export reads. It reads neither pickles nor code nor other frameworks' weights.
_WANTED = ["*.json", "*.safetensors", "*.model", "*.txt", "README.md"]
_UNWANTED = ["onnx/*", "openvino/*", "coreml/*", "*.onnx*"]


@dataclass(frozen=True, slots=True)
class ModuleChain:
    """The encoder's directory in a sentence-transformers folder, and the pooling.

    `pooling` is None without a pooling module. `counts_prompt` is True if pooling includes a prompt's tokens.
    """

    transformer: Path
    pooling: Pooling | None
    counts_prompt: bool


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; return {} if the file is missing.

    Raises:
        ExportError: The file is not readable or not a JSON object.
    """
    if not path.is_file():
        return {}
    found = _parse(path)
    if not isinstance(found, dict):
        raise ExportError(f"{path} must contain a JSON object")
    return found


def read_modules(directory: Path, *, pooling_is_given: bool) -> ModuleChain:
    """Read modules.json and the pooling module's settings.

    If `pooling_is_given` is True, ignore the folder's pooling, even if it cannot be exported.

    Raises:
        ExportError: The graph cannot express a module or the pooling.
    """
    path = directory / _MODULES_FILE
    if not path.is_file():
        return ModuleChain(directory, None, counts_prompt=True)
    transformer: Path | None = None
    pooling: Pooling | None = None
    counts_prompt = True
    for kind, where in _list_modules(path):
        if kind == "Transformer" and transformer is None:
            transformer = directory / where
        elif kind == "Pooling" and transformer is not None:
            settings = read_json(directory / where / "config.json")
            pooling = None if pooling_is_given else _read_pooling(directory / where, settings)
            counts_prompt = bool(settings.get("include_prompt", True))
        elif kind != "Normalize" or transformer is None:
            raise ExportError(
                f"{path} has a module {kind!r} at {where or '.'!r}, which cannot be exported. A graph has one "
                "Transformer, one Pooling and one normalisation"
            )
    if transformer is None:
        raise ExportError(f"{path} has no Transformer module")
    return ModuleChain(transformer, pooling, counts_prompt=counts_prompt)


def _list_modules(path: Path) -> list[tuple[str, str]]:
    entries = _parse(path)
    try:
        modules = [(entry["type"].rpartition(".")[2], entry["path"]) for entry in entries]
        leaving = [where for _, where in modules if Path(where).is_absolute() or ".." in Path(where).parts]
    except (AttributeError, KeyError, TypeError) as error:
        raise ExportError(f"{path} is not a list of modules with type and path") from error
    if leaving:
        raise ExportError(f"{path} has a module at {leaving[0]!r}, outside the model's folder")
    return modules


def _read_pooling(directory: Path, settings: dict[str, Any]) -> Pooling:
    mode = settings.get("pooling_mode")
    named = [mode] if isinstance(mode, str) else list(mode or [])
    if not named:
        named = [name for key, name in _OLD_KEYS.items() if settings.get(key) is True]
    if len(named) != 1 or named[0] not in _MODES:
        raise ExportError(
            f"{directory / 'config.json'} pools by {' and '.join(map(str, named)) or 'nothing'}, which cannot be "
            f"exported. Use one of {', '.join(_MODES)}, or override the folder with --pooling"
        )
    return _MODES[named[0]]


def _parse(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ExportError(f"cannot read {path}: {error}") from error


@dataclass(frozen=True, slots=True)
class EncoderFolder:
    """An encoder from transformers or sentence-transformers. Unknown fields are None or empty.

    Attributes:
        counts_prompt: True if pooling includes a prompt's tokens.
        max_tokens: The folder's maximum input length in tokens, including special tokens.
        suffix: Text after every input, from gradewire.json.
        weight_numbers: Number of values in the files of weights.
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
    suffix: str = ""
    weight_numbers: int = 0


def read_folder(directory: Path, *, pooling: Pooling | None = None) -> EncoderFolder:
    """Read an encoder's folder; `pooling` overrides the folder's pooling.

    Raises:
        ExportError: The folder contains no model, or a model that cannot be exported: its weights are a pickle, it is
            an adapter or an encoder-decoder, or the graph cannot express its modules or pooling.
    """
    chain = read_modules(directory, pooling_is_given=pooling is not None)
    config = read_json(chain.transformer / "config.json")
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise ExportError(f"{directory} is not a model folder: {chain.transformer / 'config.json'} has no model_type")
    if config.get("is_encoder_decoder"):
        raise ExportError(
            f"{directory} contains an encoder-decoder ({model_type}), but only encoders and decoders can be exported"
        )
    settings = _sentence_settings(chain.transformer)
    task = settings.get("transformer_task", "feature-extraction")
    if task != "feature-extraction":
        raise ExportError(f"{directory} contains a model for the task {task!r}, which returns no token vectors")
    prompts, default_prompt = _prompts(directory)
    own = _own_settings(directory)
    return EncoderFolder(
        directory=chain.transformer,
        model_type=model_type,
        pooling=pooling or own.pooling or chain.pooling,
        default_prompt=default_prompt if own.prefix is None else own.prefix,
        prompts=prompts,
        counts_prompt=chain.counts_prompt,
        max_tokens=own.max_tokens or _max_tokens(chain.transformer, settings, config),
        lower_case=bool(settings.get("do_lower_case", False)),
        licence=own.licence or _licence(directory / "README.md"),
        weight_sha256=_weights(chain.transformer),
        suffix=own.suffix,
        weight_numbers=sum(map(_numbers_in, chain.transformer.glob("model*.safetensors"))),
    )


class _OwnSettings(BaseModel):
    """The settings of an encoder in gradewire.json, which take precedence over the folder's other files."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    pooling: Pooling | None = None
    prefix: str | None = None
    suffix: str = ""
    max_tokens: int | None = Field(default=None, ge=1)
    licence: str = ""


def _own_settings(directory: Path) -> _OwnSettings:
    try:
        return _OwnSettings.model_validate(read_json(directory / ADAPTER_METADATA))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise ExportError(f"{directory / ADAPTER_METADATA}: {name}: {first['msg']}") from error


def _sentence_settings(directory: Path) -> dict[str, object]:
    # Newer releases write sentence_bert_config.json; earlier releases name the file after the architecture.
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
        raise ExportError(
            f"{directory / 'config_sentence_transformers.json'}: default_prompt_name {default!r} is not a prompt"
        )
    texts = {str(name): str(text) for name, text in prompts.items()}
    return texts, texts.get(default or "", "")


def _weights(directory: Path) -> dict[str, str]:
    if (directory / "adapter_config.json").is_file():
        raise ExportError(
            f"{directory} contains an adapter. Merge the adapter into its base model, and export the merged model"
        )
    files = sorted(directory.glob("model*.safetensors"))
    if files:
        return {path.name: file_sha256(path) for path in files}
    if list(directory.glob("*.bin")) or list(directory.glob("*.pt")):
        raise ExportError(
            f"{directory} contains weights only as a pickle, which can run any code when loaded. If you trust the "
            "file, save the weights as model.safetensors (transformers: save_pretrained)"
        )
    raise ExportError(f"{directory} contains no weights (model.safetensors)")


def _numbers_in(path: Path) -> int:
    """Return the number of values in a safetensors file, from its header; 0 if the header is unreadable.

    Loading the file later reports what is wrong with it.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_HEADER_LENGTH_BYTES), "little")
        header = file.read(min(length, _LONGEST_HEADER_BYTES))
    try:
        return sum(math.prod(entry["shape"]) for name, entry in json.loads(header).items() if name != "__metadata__")
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0


def _licence(card: Path) -> str:
    # Read the model card's front matter; SPDX identifiers ignore case.
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    if not text.startswith("---"):
        return ""
    found = _LICENCE_LINE.search(text.split("\n---", 1)[0])
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """A folder and its origin: a hub ID and a commit, or a local folder's name (never its path) and ""."""

    directory: Path
    origin: str
    commit: str


def find_source(wanted: str, *, revision: str = "") -> SourceFolder:
    """Return the folder `wanted`; if there is no such folder and `wanted` is a hub ID, download the model.

    Raises:
        ExportError: `wanted` is neither a directory nor a hub ID, or `revision` is given for a directory.
        DownloadError: The hub is not available, has no such model or revision, or denies access.
    """
    directory = Path(wanted).expanduser()
    if wanted and directory.is_dir():
        if revision:
            raise ExportError(f"{wanted} is a directory and has no revisions. Leave out --revision")
        return SourceFolder(directory, directory.resolve().name, commit="")
    if not _HUB_ID.fullmatch(wanted):
        raise ExportError(f"{wanted!r} is neither a directory nor a hub ID (organisation/model)")
    return _download(wanted, revision)


def _download(hub_id: str, revision: str) -> SourceFolder:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - local directories do not need it
    from huggingface_hub.errors import (  # noqa: PLC0415 - as above
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        path = snapshot_download(
            hub_id, revision=revision or None, allow_patterns=_WANTED, ignore_patterns=_UNWANTED, max_workers=2
        )
    except GatedRepoError as error:
        raise DownloadError(
            f"access to {hub_id} is restricted. Log in to the hub with an account that has access"
        ) from error
    except RepositoryNotFoundError as error:
        raise DownloadError(f"the hub has no model {hub_id!r}, or your account has no access to it") from error
    except RevisionNotFoundError as error:
        raise DownloadError(f"{hub_id} has no revision {revision!r}") from error
    except LocalEntryNotFoundError as error:
        raise DownloadError(
            f"the hub is not available, and {hub_id} is not in the download cache. With a network, run "
            f"`hf download {hub_id} --local-dir FOLDER`, then export FOLDER"
        ) from error
    except OSError as error:
        raise DownloadError(f"cannot download {hub_id}: {error}") from error
    # In the hub's cache, the directory's name is the commit.
    commit = Path(path).name
    if not _COMMIT.fullmatch(commit):
        raise DownloadError(f"the download of {hub_id} has no commit in its path ({path})")
    return SourceFolder(Path(path), hub_id, commit)
