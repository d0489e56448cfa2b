"""Merges a low-rank adapter into published weights: W' = W + (alpha / r) B A (Hu et al. 2021, section 4.1).

In float64 and rounded once, so the graph has the shape and the cost of its base's and no operator of its own.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from gradewire_models.build.weights.adapter_config import AdapterConfig, read_adapter_config
from gradewire_models.catalog.adapters import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from gradewire_models.errors import BuildError

Array = NDArray[np.float32]
Low = NDArray[np.float64]

MAX_ADAPTER_BYTES = 1 << 28
"""256 MiB: an adapter of usual rank has some MB, and what is larger was not made for these encoders."""

_PREFIX = "base_model.model."
_TYPES = frozenset({"F16", "F32"})
# A dense layer over the first token that some checkpoints carry; no vector here is read from it.
_UNREAD = f"{_PREFIX}pooler."


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
        expected[f"{_PREFIX}{name}.lora_A.weight"] = (config.rank, inputs)
        expected[f"{_PREFIX}{name}.lora_B.weight"] = (outputs, config.rank)
    found = _read_tensors(path, expected)
    return {name: (found[f"{_PREFIX}{name}.lora_A.weight"], found[f"{_PREFIX}{name}.lora_B.weight"]) for name in shapes}


def _read_tensors(path: Path, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Low]:
    try:
        if (size := path.stat().st_size) > MAX_ADAPTER_BYTES:
            raise BuildError(f"{path} has {size} bytes, at most {MAX_ADAPTER_BYTES} are read: is it a whole model?")
        # Sizes and types first, so that nothing odd is read into memory.
        with safe_open(str(path), framework="np") as file:
            names = set(file.keys())
            odd = sorted(name for name in names - set(expected) if not name.startswith(_UNREAD))
            if odd or not set(expected) <= names:
                lacking = sorted(set(expected) - names)
                raise BuildError(
                    f"{path} does not hold what {ADAPTER_CONFIG} says: "
                    + (f"{odd[0]} belongs to no layer that it names" if odd else f"{lacking[0]} is missing")
                )
            for name, shape in expected.items():
                tensor = file.get_slice(name)
                if tensor.get_dtype() not in _TYPES or tuple(tensor.get_shape()) != shape:
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
