"""Reads what sentence-transformers writes beside a model: which modules follow one another, and how they pool.

Read as plain JSON, without that library: its files say what its classes would do.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from gradewire_models.errors import ExportError

Pooling = Literal["mean", "cls", "last", "pooler"]
"""How token vectors become a sentence vector.

``mean``: over the text's tokens; ``cls``: the first token's; ``last``: the last token's (decoders); ``pooler``: the
model's own pooler over the first token (dense layer and tanh), as transformers returns it.
"""

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

_MODULES_FILE = "modules.json"
# A mean and a sum divided by the root of the number of tokens are one and the same after normalisation.
_MODES: dict[str, Pooling] = {"mean": "mean", "mean_sqrt_len_tokens": "mean", "cls": "cls", "lasttoken": "last"}
_OLD_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True, slots=True)
class ModuleChain:
    """The modules of a sentence-transformers folder, as far as an export needs them.

    Attributes:
        transformer: Directory of the encoder itself.
        pooling: What its pooling module does; None where the folder has none.
        counts_prompt: Whether the tokens of a prompt are pooled like those of the text.
    """

    transformer: Path
    pooling: Pooling | None
    counts_prompt: bool


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object; an empty one where there is no such file.

    Raises:
        ExportError: It is not a JSON object, or cannot be read.
    """
    if not path.is_file():
        return {}
    found = _parse(path)
    if not isinstance(found, dict):
        raise ExportError(f"{path} should hold a JSON object")
    return found


def read_modules(directory: Path, *, pooling_is_given: bool) -> ModuleChain:
    """Reads modules.json and the pooling module's settings.

    A folder without modules.json is a plain transformers folder: the encoder, and no pooling.

    Args:
        directory: The model's folder.
        pooling_is_given: The caller knows the pooling; the folder's own may then be one that cannot be exported.

    Raises:
        ExportError: A module is of a kind, or pools in a way, that the graph cannot express.
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
                f"{path} has a module {kind!r} at {where or '.'!r}, which cannot be exported: the graph is one "
                "Transformer, one Pooling and a normalisation"
            )
    if transformer is None:
        raise ExportError(f"{path} names no Transformer module")
    return ModuleChain(transformer, pooling, counts_prompt=counts_prompt)


def _list_modules(path: Path) -> list[tuple[str, str]]:
    entries = _parse(path)
    try:
        modules = [(entry["type"].rpartition(".")[2], entry["path"]) for entry in entries]
        leaving = [where for _, where in modules if Path(where).is_absolute() or ".." in Path(where).parts]
    except (AttributeError, KeyError, TypeError) as error:
        raise ExportError(f"{path} is not a list of modules with type and path") from error
    if leaving:
        raise ExportError(f"{path} has a module at {leaving[0]!r}, outside of the model's folder")
    return modules


def _read_pooling(directory: Path, settings: dict[str, Any]) -> Pooling:
    mode = settings.get("pooling_mode")
    named = [mode] if isinstance(mode, str) else list(mode or [])
    if not named:
        named = [name for key, name in _OLD_KEYS.items() if settings.get(key) is True]
    if len(named) != 1 or named[0] not in _MODES:
        raise ExportError(
            f"{directory / 'config.json'} pools by {' and '.join(map(str, named)) or 'nothing'}, which cannot be "
            f"exported; one of {', '.join(_MODES)} can, and --pooling overrides what the folder says"
        )
    return _MODES[named[0]]


def _parse(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ExportError(f"cannot read {path}: {error}") from error
