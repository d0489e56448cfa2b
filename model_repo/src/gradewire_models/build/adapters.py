"""Low-rank adapters: read their configuration, merge them into weights (Hu et al. 2021), bring in a user's own."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
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
from gradewire_models.catalog.loading import adapted_model, load_catalog
from gradewire_models.catalog.table import NAME_PATTERN
from gradewire_models.errors import BuildError, DigestMismatchError
from gradewire_models.repository.digest import file_sha256

MAX_CONFIG_BYTES = 1 << 20

# They decide how an adapter was trained, or name versions and places: not what it computes.
_OF_NO_CONSEQUENCE = frozenset(
    {
        "auto_mapping",
        "base_model_name_or_path",
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
_READ = frozenset({"init_lora_weights", "layers_to_transform", "lora_alpha", "peft_type", "r", "target_modules"})
# Other ways to start (pissa, olora, eva, …) change the base's weights, to which the matrices then belong.
_PLAIN_STARTS = (True, False, "gaussian")
_MAX_ALPHA = 1_000_000
_OFF: tuple[object, ...] = (None, False, "none", "", [], {})

Array = NDArray[np.float32]
Low = NDArray[np.float64]

MAX_ADAPTER_BYTES = 1 << 28
"""256 MiB: an adapter of usual rank has some MB, and what is larger was not made for these encoders."""

_TENSOR_PREFIX = "base_model.model."
_TENSOR_TYPES = frozenset({"F16", "F32"})
# A dense layer over the first token that some checkpoints carry; no vector here is read from it.
_UNREAD_TENSORS = f"{_TENSOR_PREFIX}pooler."

_PICKLE = "adapter_model.bin"


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """An adapter's shape.

    Attributes:
        rank: Columns of one matrix and rows of the other, at least 1.
        scale: Factor of their product: PEFT's lora_alpha / r.
        targets: Ends of the names of the layers that have one.
        layers: Encoder layers that have one, counted from 0; None for all.
        base: What it says it was trained on: a name, an id of a hub or a path; empty where it does not say.
    """

    rank: int
    scale: float
    targets: tuple[str, ...]
    layers: tuple[int, ...] | None
    base: str

    def wants(self, module: str, layer: int) -> bool:
        """Whether the linear layer `module` of encoder layer `layer`, counted from 0, has an adapter."""
        of_a_layer = self.layers is None or layer in self.layers
        return of_a_layer and any(module == end or module.endswith(f".{end}") for end in self.targets)


def read_adapter_config(path: Path) -> AdapterConfig:
    """Reads an adapter_config.json.

    Raises:
        BuildError: It is not there or none, or asks for something that cannot be merged; the message names the field.
    """
    fields = read_json_object(path)
    if fields.get("peft_type") != "LORA":
        raise _refused(path, "peft_type", fields.get("peft_type"), '"LORA"')
    rank, alpha = fields.get("r"), fields.get("lora_alpha")
    if not _is_whole(rank) or rank < 1:
        raise _refused(path, "r", rank, "a whole number from 1")
    if not (_is_whole(alpha) or isinstance(alpha, float)) or not 0 < alpha <= _MAX_ALPHA:
        raise _refused(path, "lora_alpha", alpha, f"a number above 0, at most {_MAX_ALPHA}")
    targets = fields.get("target_modules")
    if not isinstance(targets, list) or not targets or not all(isinstance(each, str) and each for each in targets):
        raise _refused(path, "target_modules", targets, "a list of names of layers")
    start = fields.get("init_lora_weights", True)
    if start not in _PLAIN_STARTS:
        raise _refused(path, "init_lora_weights", start, 'true, false or "gaussian": other ways change the base')
    base = fields.get("base_model_name_or_path") or ""
    if not isinstance(base, str):
        raise _refused(path, "base_model_name_or_path", base, "a name")
    for name, value in fields.items():
        if name not in _READ | _OF_NO_CONSEQUENCE and value not in _OFF:
            raise _refused(path, name, value, "off: it cannot be merged into the weights")
    return AdapterConfig(
        rank=rank,
        scale=alpha / rank,
        targets=tuple(targets),
        layers=_layers(path, fields.get("layers_to_transform")),
        base=base,
    )


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads a small JSON file that holds an object.

    Raises:
        BuildError: It cannot be read, is larger than `MAX_CONFIG_BYTES` or holds something else.
    """
    try:
        if (size := path.stat().st_size) > MAX_CONFIG_BYTES:
            raise BuildError(f"{path} has {size} bytes; such a file has a few hundred")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BuildError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise BuildError(f"{path} should hold a JSON object")
    return found


def _layers(path: Path, value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    numbers: list[Any] = value if isinstance(value, list) else [value]
    if not numbers or not all(_is_whole(number) and number >= 0 for number in numbers):
        raise _refused(path, "layers_to_transform", value, "null, or numbers of layers from 0")
    return tuple(numbers)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _refused(path: Path, name: str, value: object, wanted: str) -> BuildError:
    shown = json.dumps(value)
    return BuildError(f"{path}: {name} should be {wanted}, not {shown if len(shown) < 80 else shown[:80] + '…'}")


def merge_adapter(tensors: Mapping[str, Array], directory: Path, linears: Mapping[str, int]) -> dict[str, Array]:
    """Adds an adapter to an encoder's weights.

    Args:
        tensors: The published weights, float32 by name; left as they are.
        directory: Holds PEFT's two files.
        linears: Encoder layer, from 0, of every linear layer that the graph has, by its name.

    Returns:
        The same names and shapes.

    Raises:
        BuildError: The adapter is none, cannot be merged, or belongs to other weights; the message names file and
            field.
    """
    config = read_adapter_config(directory / ADAPTER_CONFIG)
    wanted = [name for name, layer in linears.items() if config.wants(name, layer)]
    if not wanted:
        raise BuildError(
            f"{directory / ADAPTER_CONFIG}: target_modules {list(config.targets)} in layers "
            f"{'all' if config.layers is None else list(config.layers)} are none of this encoder's"
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
            raise BuildError(f"{path}: {name} grows beyond what float32 holds when it is merged")
    return merged


def _merge(weight: Array, narrow: Low, wide: Low, scale: float) -> Array:
    # Rank by rank, because the order in which a BLAS sums differs between machines, and the bytes must not.
    total = np.zeros(weight.shape, np.float64)
    for row, column in zip(narrow, wide.T, strict=True):
        total += column[:, None] * row
    with np.errstate(over="ignore"):
        return (weight + scale * total).astype(np.float32)


def _read_pairs(path: Path, config: AdapterConfig, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[Low, Low]]:
    expected: dict[str, tuple[int, ...]] = {}
    for name, (outputs, inputs) in shapes.items():
        expected[f"{_TENSOR_PREFIX}{name}.lora_A.weight"] = (config.rank, inputs)
        expected[f"{_TENSOR_PREFIX}{name}.lora_B.weight"] = (outputs, config.rank)
    found = _read_tensors(path, expected)
    return {
        name: (found[f"{_TENSOR_PREFIX}{name}.lora_A.weight"], found[f"{_TENSOR_PREFIX}{name}.lora_B.weight"])
        for name in shapes
    }


def _read_tensors(path: Path, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Low]:
    try:
        if (size := path.stat().st_size) > MAX_ADAPTER_BYTES:
            raise BuildError(f"{path} has {size} bytes, at most {MAX_ADAPTER_BYTES} are read: is it a whole model?")
        # Sizes and types first, so that nothing odd is read into memory.
        with safe_open(str(path), framework="np") as file:
            names = set(file.keys())
            odd = sorted(name for name in names - set(expected) if not name.startswith(_UNREAD_TENSORS))
            if odd or not set(expected) <= names:
                lacking = sorted(set(expected) - names)
                raise BuildError(
                    f"{path} does not hold what {ADAPTER_CONFIG} says: "
                    + (f"{odd[0]} belongs to no layer that it names" if odd else f"{lacking[0]} is missing")
                )
            for name, shape in expected.items():
                tensor = file.get_slice(name)
                if tensor.get_dtype() not in _TENSOR_TYPES or tuple(tensor.get_shape()) != shape:
                    raise BuildError(
                        f"{path}: {name} should be F16 or F32 {list(shape)}, found {tensor.get_dtype()} "
                        f"{list(tensor.get_shape())}: another rank than {ADAPTER_CONFIG} says, or another base"
                    )
            tensors = {name: file.get_tensor(name).astype(np.float64) for name in expected}
    except (OSError, SafetensorError) as error:
        raise BuildError(f"cannot read the adapter {path}: {error}") from error
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise BuildError(f"{path}: {name} holds values that are no numbers (NaN or infinite)")
    return tensors


def user_adapted(directory: Path, base: CatalogModel, name: str = "") -> CatalogModel:
    """Describes the model that `base` becomes with the adapter in `directory`.

    Beside PEFT's two files ``gradewire.json`` may say base, licence, max_tokens and text_form, as
    ``gradewire models train sfve`` writes it; without it texts are as long as the base's, and no licence is known. The
    text_form ``"grader"`` makes a grader of it, whose head lies beside them.

    Args:
        directory: Of the adapter.
        base: A model of the catalog.
        name: Of the model in the repository; empty for that of the directory.

    Raises:
        BuildError: The folder holds no adapter that can be merged into `base`, or the name cannot be used.
    """
    directory = directory.resolve()
    name = name or directory.name
    if not re.match(NAME_PATTERN, name):
        raise BuildError(f"{name!r} is no name for a model (letters, digits, '.', '_' and '-'): say --name")
    if name in load_catalog():
        raise BuildError(f"{name!r} is a model of the catalog, whose digest is fixed: choose another with --name")
    if base.base or base.adapter:
        own = base.base or (base.adapter.base if base.adapter else "")
        raise BuildError(f"{base.name} is made of {own}: name {own}, whose weights adapters belong to")
    _check_files(directory)
    config = read_adapter_config(directory / ADAPTER_CONFIG)
    _check_base(directory / ADAPTER_CONFIG, config, base)
    said = _Said(directory / ADAPTER_METADATA)
    if said.text("base", base.name) != base.name:
        raise BuildError(f"{said.path}: base is {said.text('base')!r}, not {base.name}: name that one")
    if said.text("base_sha256", base.files["model.safetensors"]) != base.files["model.safetensors"]:
        raise BuildError(f"{said.path}: base_sha256 is of other weights than those of {base.name} here")
    kind = "grader" if said.text("text_form") == "grader" else "encoder"
    _check_files(directory, adapter_files(kind))
    source = AdapterSource(
        base=base.name,
        directory=directory,
        files={file: file_sha256(directory / file) for file in adapter_files(kind)},
        text_form=said.text("text_form"),
    )
    values = {"kind": kind, "temperature": said.number("temperature", 1.0)} if kind == "grader" else {}
    try:
        return adapted_model(
            base,
            source,
            name=name,
            title=f"adapter on {base.name}",
            licence=said.text("licence"),
            origin=f"{directory} on {base.origin}",
            max_tokens=said.count("max_tokens", base.max_tokens),
            digest="",
            catalog_version=0,
            **values,
        )
    except ValueError as error:
        raise BuildError(f"{said.path}: {error}") from error


def bring_adapter(adapter: AdapterSource, target: Path) -> None:
    """Copies an adapter's two files into `target`, beside the base's weights, and lets only the pinned bytes through.

    Raises:
        BuildError: One is not there or too large.
        DigestMismatchError: One is not the file that was pinned, or it changed since it was described.
        OSError: `target` cannot be written.
    """
    _check_files(adapter.directory, tuple(adapter.files))
    for name, pinned in adapter.files.items():
        content = (adapter.directory / name).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if found != pinned:
            raise DigestMismatchError(f"{adapter.directory / name} has SHA-256 {found}, not {pinned}")
        (target / name).write_bytes(content)


def _check_files(directory: Path, names: Iterable[str] = (ADAPTER_CONFIG, ADAPTER_WEIGHTS)) -> None:
    for name in names:
        path = directory / name
        if not path.is_file():
            refused = f"; {_PICKLE} is a pickle, which is never loaded: save it as safetensors"
            hint = refused if name == ADAPTER_WEIGHTS and (directory / _PICKLE).exists() else ""
            of = " of a grader" if name == HEAD_WEIGHTS else ""
            raise BuildError(f"{directory} is no adapter in PEFT's format{of}: it has no {name}{hint}")
        if path.stat().st_size > MAX_ADAPTER_BYTES:
            raise BuildError(
                f"{path} has {path.stat().st_size} bytes, at most {MAX_ADAPTER_BYTES} are read: is it a whole model?"
            )


def _check_base(path: Path, config: AdapterConfig, base: CatalogModel) -> None:
    named = config.base.rstrip("/")
    if named and named != base.origin and named.rpartition("/")[2] != base.name:
        raise BuildError(
            f"{path}: base_model_name_or_path is {config.base!r}, not {base.origin}: name its base, or correct the "
            "field where that is what the adapter was trained on"
        )


class _Said:
    """What ``gradewire.json`` says, where there is one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._values = read_json_object(path) if path.exists() else {}

    def text(self, name: str, otherwise: str = "") -> str:
        value = self._values.get(name, otherwise)
        if not isinstance(value, str):
            raise BuildError(f"{self.path}: {name} should be a string, not {value!r}")
        return value

    def count(self, name: str, otherwise: int) -> int:
        value = self._values.get(name, otherwise)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise BuildError(f"{self.path}: {name} should be a whole number from 1, not {value!r}")
        return value

    def number(self, name: str, otherwise: float) -> float:
        value = self._values.get(name, otherwise)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise BuildError(f"{self.path}: {name} should be a number, not {value!r}")
        return float(value)
