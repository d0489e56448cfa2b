"""The linear layer of a grader, behind its encoder."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from gradewire_models.catalog.adapters import HEAD_WEIGHTS
from gradewire_models.catalog.loading import CatalogModel
from gradewire_models.errors import BuildError
from gradewire_models.repository.grader_input import MAX_TOKENS

SEPARATOR = "[SEP]"


@dataclass(frozen=True, slots=True)
class Head:
    """``mean @ weight.T + bias``: float32 [1, dims] and [1]."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


def read_head(directory: Path, model: CatalogModel) -> Head:
    """Reads the head that lies in `directory`.

    Raises:
        BuildError: It cannot be read, a tensor of it has another shape or type or holds values that are no numbers, or
            the model reads texts of another length than graders do.
    """
    if model.max_tokens != MAX_TOKENS:
        raise BuildError(f"{model.name}: a grader reads {MAX_TOKENS} tokens, max_tokens is {model.max_tokens}")
    path = directory / HEAD_WEIGHTS
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise BuildError(f"cannot read the head {path}: {error}") from error
    shapes = {"weight": (1, model.dims), "bias": (1,)}
    if set(tensors) != set(shapes):
        raise BuildError(f"{path} should hold {' and '.join(shapes)}, found {', '.join(sorted(tensors)) or 'nothing'}")
    for name, shape in shapes.items():
        tensor = tensors[name]
        if tensor.dtype != np.float32 or tensor.shape != shape:
            raise BuildError(
                f"{path}: {name} should be float32 {list(shape)}, found {tensor.dtype} {list(tensor.shape)}"
            )
        if not np.isfinite(tensor).all():
            raise BuildError(f"{path}: {name} holds values that are no numbers (NaN or infinite)")
    return Head(tensors["weight"], tensors["bias"])


def read_separator(tokenizer: Path) -> int:
    """Id of the token that parts a grader's texts, by a tokenizer.json.

    Raises:
        BuildError: It has none.
    """
    try:
        separator = json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"][SEPARATOR]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BuildError(f"{tokenizer} has no token {SEPARATOR}") from error
    return int(separator)
