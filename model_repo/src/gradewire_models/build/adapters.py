"""Read low-rank adapters (Hu et al. 2021), merge them into weights, and describe models with a user's adapter."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from safetensors import SafetensorError, safe_open

from gradewire_models.catalog.entries import (
    ADAPTER_CONFIG,
    ADAPTER_METADATA,
    ADAPTER_WEIGHTS,
    HEAD_WEIGHTS,
    AdapterSource,
    CatalogModel,
    adapter_files,
)
from gradewire_models.catalog.loading import adapted_model, require_free_name
from gradewire_models.catalog.table import Count, read_table
from gradewire_models.errors import BuildError, DigestMismatchError
from gradewire_models.repository.digest import file_sha256

MAX_CONFIG_BYTES = 1 << 20

# These fields do not affect the adapter's output.
_IGNORED_FIELDS = frozenset(
    {
        "auto_mapping",
        "ensure_weight_tying",
        "inference_mode",
        "lora_dropout",
        "megatron_core",
        "peft_version",
        "qalora_group_size",
        "revision",
        "task_type",
    }
)
_MAX_ALPHA = 1_000_000
_OFF: tuple[object, ...] = (None, False, "none", "", [], {})
_SHOWN_CHARACTERS = 80

T = TypeVar("T")

Array = NDArray[np.float32]
Low = NDArray[np.float64]

MAX_ADAPTER_BYTES = 1 << 28
"""Maximum size of an adapter file in bytes; an adapter of a usual rank has a few MB."""

_TENSOR_PREFIX = "base_model.model."
_TENSOR_TYPES = frozenset({"F16", "F32"})
# Some checkpoints contain a pooler, which our vectors do not use.
_UNREAD_TENSORS = f"{_TENSOR_PREFIX}pooler."

_PICKLE = "adapter_model.bin"


_Text = Annotated[str, Field(min_length=1)]
_Layer = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """The settings in adapter_config.json that affect an adapter's output.

    Attributes:
        peft_type: The only adapter type that can be merged.
        r: The rank, which is the number of one matrix's rows and of the other matrix's columns.
        lora_alpha: Scaling factor; the matrices' product is multiplied by lora_alpha / r.
        target_modules: Suffixes of the adapted layers' names.
        layers_to_transform: Adapted encoder layers, counted from 0; None for all layers.
        init_lora_weights: Initialisation method. Methods that also change the base's weights (pissa, olora, eva, …) are
            not supported.
    """

    peft_type: Literal["LORA"]
    r: Count
    lora_alpha: Annotated[float, Field(gt=0, le=_MAX_ALPHA)]
    target_modules: Annotated[tuple[_Text, ...], Field(min_length=1)]
    layers_to_transform: Annotated[tuple[_Layer, ...], Field(min_length=1)] | _Layer | None = None
    init_lora_weights: Literal[True, False, "gaussian"] = True
    base_model_name_or_path: str | None = None

    @property
    def scale(self) -> float:
        """The factor of the matrices' product."""
        return self.lora_alpha / self.r

    @property
    def layers(self) -> tuple[int, ...] | None:
        """The adapted encoder layers, counted from 0; None for all layers."""
        given = self.layers_to_transform
        return (given,) if isinstance(given, int) else given

    def adapts(self, module: str, layer: int) -> bool:
        """Return True if the adapter changes the linear layer `module` of encoder layer `layer`, counted from 0."""
        in_layers = self.layers is None or layer in self.layers
        return in_layers and any(module == end or module.endswith(f".{end}") for end in self.target_modules)


def read_adapter_config(path: Path) -> AdapterConfig:
    """Read an adapter_config.json.

    Raises:
        BuildError: The file is missing or invalid, or the adapter cannot be merged. The message states the field.
    """
    settings = read_json_object(path)
    config = _read(AdapterConfig, settings, path)
    known = {each.name for each in fields(AdapterConfig)} | _IGNORED_FIELDS
    for name, value in settings.items():
        if name not in known and value not in _OFF:
            shown = json.dumps(value)[:_SHOWN_CHARACTERS]
            raise BuildError(f"{path}: {name} is {shown}, which cannot be merged into the weights. Train without it")
    return config


def _read(kind: type[T], values: Mapping[str, Any], path: Path) -> T:
    try:
        return read_table(kind, values, extra="ignore")
    except ValueError as error:
        raise BuildError(f"{path}: {error}") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a small JSON file that contains an object.

    Raises:
        BuildError: The file cannot be read, is larger than `MAX_CONFIG_BYTES`, or does not contain an object.
    """
    try:
        if (size := path.stat().st_size) > MAX_CONFIG_BYTES:
            raise BuildError(f"{path} has {size} bytes, but the maximum is {MAX_CONFIG_BYTES}")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BuildError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise BuildError(f"{path} must contain a JSON object")
    return found


def merge_adapter(tensors: Mapping[str, Array], directory: Path, linears: Mapping[str, int]) -> dict[str, Array]:
    """Return an encoder's weights, float32 by name, with the adapter in `directory` merged in.

    `tensors` stays unchanged. `linears` maps the graph's linear layers to encoder layers, counted from 0.

    Raises:
        BuildError: The adapter is invalid, cannot be merged, or belongs to different weights. The message states the
            file and the field.
    """
    config = read_adapter_config(directory / ADAPTER_CONFIG)
    wanted = [name for name, layer in linears.items() if config.adapts(name, layer)]
    if not wanted:
        raise BuildError(
            f"{directory / ADAPTER_CONFIG}: target_modules {list(config.target_modules)} in layers "
            f"{'all' if config.layers is None else list(config.layers)} match no linear layer of this encoder"
        )
    path = directory / ADAPTER_WEIGHTS
    absent = [name for name in wanted if f"{name}.weight" not in tensors]
    if absent:
        raise BuildError(f"the weights have no {absent[0]}.weight to merge {path} into")
    shapes = {name: tensors[f"{name}.weight"].shape for name in wanted}
    pairs = _read_pairs(path, config, shapes)
    merged = dict(tensors)
    for name, (narrow, wide) in pairs.items():
        merged[f"{name}.weight"] = _merge(tensors[f"{name}.weight"], narrow, wide, config.scale)
        if not np.isfinite(merged[f"{name}.weight"]).all():
            raise BuildError(f"{path}: {name} exceeds the range of float32 when it is merged")
    return merged


def _merge(weight: Array, narrow: Low, wide: Low, scale: float) -> Array:
    # Sum rank by rank, because a BLAS sums in a machine-dependent order.
    total = np.zeros(weight.shape, np.float64)
    for row, column in zip(narrow, wide.T, strict=True):
        total += column[:, None] * row
    with np.errstate(over="ignore"):
        return (weight + scale * total).astype(np.float32)


def _read_pairs(path: Path, config: AdapterConfig, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[Low, Low]]:
    expected: dict[str, tuple[int, ...]] = {}
    for name, (outputs, inputs) in shapes.items():
        expected[f"{_TENSOR_PREFIX}{name}.lora_A.weight"] = (config.r, inputs)
        expected[f"{_TENSOR_PREFIX}{name}.lora_B.weight"] = (outputs, config.r)
    found = _read_tensors(path, expected)
    return {
        name: (found[f"{_TENSOR_PREFIX}{name}.lora_A.weight"], found[f"{_TENSOR_PREFIX}{name}.lora_B.weight"])
        for name in shapes
    }


def _read_tensors(path: Path, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Low]:
    try:
        if (size := path.stat().st_size) > MAX_ADAPTER_BYTES:
            raise BuildError(
                f"{path} has {size} bytes, but the maximum is {MAX_ADAPTER_BYTES}. Use an adapter, not a whole model"
            )
        with safe_open(str(path), framework="np") as file:
            names = set(file.keys())
            odd = sorted(name for name in names - set(expected) if not name.startswith(_UNREAD_TENSORS))
            if odd or not set(expected) <= names:
                lacking = sorted(set(expected) - names)
                raise BuildError(
                    f"{path} does not match {ADAPTER_CONFIG}: "
                    + (f"{odd[0]} belongs to none of the adapted layers" if odd else f"{lacking[0]} is missing")
                )
            for name, shape in expected.items():
                tensor = file.get_slice(name)
                if tensor.get_dtype() not in _TENSOR_TYPES or tuple(tensor.get_shape()) != shape:
                    raise BuildError(
                        f"{path}: {name} must be F16 or F32 {list(shape)}, found {tensor.get_dtype()} "
                        f"{list(tensor.get_shape())}. {ADAPTER_CONFIG} has a different rank or base"
                    )
            tensors = {name: file.get_tensor(name).astype(np.float64) for name in expected}
    except (OSError, SafetensorError) as error:
        raise BuildError(f"cannot read the adapter {path}: {error}") from error
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise BuildError(f"{path}: {name} contains NaN or infinite values")
    return tensors


@dataclass(frozen=True, slots=True)
class _ModelFields:
    base: str | None = None
    base_sha256: str | None = None
    licence: str = ""
    max_tokens: Count | None = None
    text_form: str = ""
    temperature: float = 1.0


def user_adapted(directory: Path, base: CatalogModel, name: str = "") -> CatalogModel:
    """Describe the model that `base` becomes with the adapter in `directory`.

    `name` defaults to the directory's name. ``gradewire.json``, which ``gradewire models train`` writes next to PEFT's
    two files, may set base, licence, max_tokens and text_form. Without this file, the licence is unknown and max_tokens
    is the base's. The text_form ``"grader"`` makes the model a grader, whose head must be in `directory`.

    Raises:
        BuildError: The directory contains no adapter that can be merged into `base`, or the name is invalid.
    """
    directory = directory.resolve()
    name = name or directory.name
    require_free_name(name, BuildError)
    if base.base or base.adapter:
        own = base.base or (base.adapter.base if base.adapter else "")
        raise BuildError(
            f"{base.name} is built from {own}, and adapters need the weights of {own}. Use {own} as the base"
        )
    _check_files(directory)
    config = read_adapter_config(directory / ADAPTER_CONFIG)
    _check_base(directory / ADAPTER_CONFIG, config, base)
    path = directory / ADAPTER_METADATA
    said = _read(_ModelFields, read_json_object(path), path) if path.exists() else _ModelFields()
    if said.base not in {None, base.name}:
        raise BuildError(f"{path}: the adapter belongs to {said.base!r}, not {base.name}. Use {said.base} as the base")
    if said.base_sha256 not in {None, base.files["model.safetensors"]}:
        raise BuildError(f"{path}: base_sha256 does not match the weights of {base.name} in the catalog")
    kind = "grader" if said.text_form == "grader" else "encoder"
    _check_files(directory, adapter_files(kind))
    source = AdapterSource(
        base=base.name,
        directory=directory,
        files={file: file_sha256(directory / file) for file in adapter_files(kind)},
        text_form=said.text_form,
    )
    values = {"kind": kind, "temperature": said.temperature} if kind == "grader" else {}
    try:
        return adapted_model(
            base,
            source,
            name=name,
            title=f"adapter on {base.name}",
            licence=said.licence,
            origin=f"{directory} on {base.origin}",
            max_tokens=said.max_tokens or base.max_tokens,
            digest="",
            catalog_version=0,
            **values,
        )
    except ValueError as error:
        raise BuildError(f"{path}: {error}") from error


def bring_adapter(adapter: AdapterSource, target: Path) -> None:
    """Copy an adapter's files into `target` and compare them with the pinned digests.

    Raises:
        BuildError: A file is missing or too large.
        DigestMismatchError: A file differs from the pinned file, or has changed since the model was described.
        OSError: `target` is not writable.
    """
    _check_files(adapter.directory, tuple(adapter.files))
    for name, pinned in adapter.files.items():
        content = (adapter.directory / name).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if found != pinned:
            raise DigestMismatchError(f"{adapter.directory / name} has SHA-256 {found}, but {pinned} is pinned")
        (target / name).write_bytes(content)


def _check_files(directory: Path, names: Iterable[str] = (ADAPTER_CONFIG, ADAPTER_WEIGHTS)) -> None:
    for name in names:
        path = directory / name
        if not path.is_file():
            refused = f"; {_PICKLE} is a pickle, which is never loaded. Save the adapter as safetensors"
            hint = refused if name == ADAPTER_WEIGHTS and (directory / _PICKLE).exists() else ""
            of = " of a grader" if name == HEAD_WEIGHTS else ""
            raise BuildError(f"{directory} is not an adapter in PEFT's format{of}: {name} is missing{hint}")
        if path.stat().st_size > MAX_ADAPTER_BYTES:
            raise BuildError(
                f"{path} has {path.stat().st_size} bytes, but the maximum is {MAX_ADAPTER_BYTES}. "
                "Use an adapter, not a whole model"
            )


def _check_base(path: Path, config: AdapterConfig, base: CatalogModel) -> None:
    said = config.base_model_name_or_path or ""
    if said.rstrip("/") not in {"", base.origin} and said.rstrip("/").rpartition("/")[2] != base.name:
        raise BuildError(
            f"{path}: base_model_name_or_path is {said!r}, not {base.origin}. Use the base that the "
            f"adapter was trained on, or correct the field if the base is {base.origin}"
        )
