"""Average the weights of several trained `sfve` encoders, such as those of runs that differ only in their seeds."""

import hashlib
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from gradewire_models.catalog.entries import ADAPTER_CONFIG, ADAPTER_METADATA, ADAPTER_WEIGHTS
from gradewire_models.repository.digest import file_sha256
from gradewire_train import TrainingError
from gradewire_train.encoder import load_base
from gradewire_train.run.staged import remove_unfinished, staged

_WEIGHTS: Final = "model.safetensors"
_ALIKE: Final = ("base", "base_sha256", "licence", "max_tokens", "text_form")
"""Fields that the runs' descriptions have in common."""
_OF_ONE_RUN: Final = ("README.md", "recipe.toml", "curve.jsonl", "checkpoint.pt", ADAPTER_METADATA)

Tensors = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _Run:
    directory: Path
    metadata: Mapping[str, Any]
    weights: Path
    tensors: Tensors

    @property
    def is_adapter(self) -> bool:
        return self.weights.name == ADAPTER_WEIGHTS


def average(
    directories: Sequence[Path], out: Path, *, shares: Sequence[float] = (), wheels: Path | None = None
) -> None:
    """Write the mean of trained encoders to `out`: an adapter if all are adapters, otherwise an encoder's folder.

    `shares` are the weights of the runs in the mean, relative to their sum; by default, all are equal. The mean of
    adapters is exact: it has all their matrices side by side, so its rank is the sum of their ranks. Beside whole
    encoders, adapters are merged into the base's weights, which `load_base` finds, in `wheels` if that is given. For
    weights that started from the same base, a mean often ranks better than most of its members.

    Source: Wortsman et al. 2022, "Model soups: averaging weights of multiple fine-tuned models improves accuracy
    without increasing inference time".

    Raises:
        TrainingError: There are fewer than two runs; a run is missing or broken, is of a grader, or has another base
            or shape than the first; or the shares are not as many positive numbers.
        ModelError: The base of an adapter cannot be loaded.
        OSError: `out` is not writable.
    """
    if len(directories) < 2:
        raise TrainingError("a mean needs the folders of at least two runs")
    parts = _parts(shares or [1.0] * len(directories), len(directories))
    runs = [_read(directory) for directory in directories]
    for run in runs[1:]:
        _check_alike(runs[0], run)
    whole = next((run for run in runs if not run.is_adapter), None)
    if whole is not None:
        merged = _Base(whole.tensors, runs[0].metadata, wheels)
        runs = [replace(run, tensors=merged.with_adapter(run)) if run.is_adapter else run for run in runs]
    _check_shapes(runs)
    out.mkdir(parents=True, exist_ok=True)
    remove_unfinished(out)
    with staged(out) as fresh:
        _copy_settings((whole or runs[0]).directory, fresh)
        (_write_adapter if whole is None else _write_encoder)(runs, parts, fresh)
        _write_account(runs, parts, fresh)


def _parts(shares: Sequence[float], count: int) -> list[float]:
    if len(shares) != count or not all(math.isfinite(share) and share > 0 for share in shares):
        raise TrainingError(f"shares: {list(shares)} must be {count} numbers above 0, one for each folder")
    return [share / math.fsum(shares) for share in shares]


def _read(directory: Path) -> _Run:
    path = directory / ADAPTER_METADATA
    weights = next((directory / name for name in (ADAPTER_WEIGHTS, _WEIGHTS) if (directory / name).is_file()), None)
    if weights is None:
        raise TrainingError(f"{directory} has neither {ADAPTER_WEIGHTS} nor {_WEIGHTS}. Name a folder of `train sfve`")
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
        tensors = load_file(weights)
    except (OSError, ValueError, SafetensorError) as error:
        raise TrainingError(f"cannot read {directory}: {error}") from error
    if not isinstance(metadata, dict) or metadata.get("text_form") != "sfve":
        raise TrainingError(f"{path} is not of an encoder for sfve. Only these have a mean")
    return _Run(directory, metadata, weights, tensors)


def _check_alike(first: _Run, other: _Run) -> None:
    if different := [name for name in _ALIKE if first.metadata.get(name) != other.metadata.get(name)]:
        raise TrainingError(f"{first.directory} and {other.directory} have different {', '.join(different)}")


def _check_shapes(runs: Sequence[_Run]) -> None:
    # The ranks of adapters may differ.
    adapters = all(run.is_adapter for run in runs)
    shapes = [{name: adapters or tensor.shape for name, tensor in run.tensors.items()} for run in runs]
    if other := next((run for run, each in zip(runs, shapes, strict=True) if each != shapes[0]), None):
        raise TrainingError(f"{runs[0].directory} and {other.directory} have different weights: layers or sizes")


@dataclass(eq=False)
class _Base:
    """The base's weights under the names of the whole encoders, which are loaded if an adapter needs them."""

    like: Tensors
    metadata: Mapping[str, Any]
    wheels: Path | None

    @cached_property
    def tensors(self) -> Tensors:
        tokens = int(self.metadata["max_tokens"])
        encoder = load_base(str(self.metadata["base"]), max_tokens=tokens, wheels=self.wheels)
        if encoder.base.weights_sha256 != self.metadata["base_sha256"]:
            raise TrainingError(
                f"base: the weights of {self.metadata['base']} are not those that the runs started from"
            )
        own = {name: each.numpy() for name, each in encoder.model.state_dict().items()}
        return {name: own[name] for name in self.like if name in own}

    def with_adapter(self, run: _Run) -> Tensors:
        """Return the base's weights with an adapter merged in."""
        config, merged = _config(run), dict(self.tensors)
        for name, narrow in run.tensors.items():
            if "lora_A" in name:
                layer = f"{name.removeprefix('base_model.model.').removesuffix('.lora_A.weight')}.weight"
                if layer not in merged:
                    raise TrainingError(f"{run.directory} has an adapter of {layer}, which the encoder lacks")
                wide = run.tensors[name.replace("lora_A", "lora_B")].astype(np.float32)
                merged[layer] = merged[layer] + config["lora_alpha"] / config["r"] * (wide @ narrow.astype(np.float32))
        return merged


def _config(run: _Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.directory / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    return found


def _copy_settings(directory: Path, target: Path) -> None:
    """Copy the files that describe the encoder: its shape, tokenizer and pooling."""
    for path in sorted(directory.rglob("*.json")):
        place = path.relative_to(directory)
        if path.name not in _OF_ONE_RUN and not place.parts[0].startswith("."):
            (target / place).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, target / place)


def _write_encoder(runs: Sequence[_Run], parts: Sequence[float], target: Path) -> None:
    mean = {}
    for name, first in runs[0].tensors.items():
        each = np.stack([run.tensors[name] for run in runs])
        mean[name] = np.tensordot(np.array(parts), each, axes=1).astype(first.dtype)
    save_file(mean, target / _WEIGHTS, metadata={"format": "pt"})


def _write_adapter(runs: Sequence[_Run], parts: Sequence[float], target: Path) -> None:
    configs = [_config(run) for run in runs]
    rank = sum(config["r"] for config in configs)
    # With alpha equal to the rank, the product of the joined matrices has the factor 1.
    factors = [part * config["lora_alpha"] / config["r"] for part, config in zip(parts, configs, strict=True)]
    joined = {}
    for name in runs[0].tensors:
        own = [run.tensors[name].astype(np.float32) for run in runs]
        if "lora_B" in name:
            own = [factor * each for factor, each in zip(factors, own, strict=True)]
        joined[name] = np.concatenate(own, axis=int("lora_B" in name)).astype(np.float16)
    save_file(joined, target / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    config = {**configs[0], "r": rank, "lora_alpha": float(rank)}
    (target / ADAPTER_CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _write_account(runs: Sequence[_Run], parts: Sequence[float], target: Path) -> None:
    first = runs[0].metadata
    members = [
        {
            "share": round(part, 6),
            "recipe_sha256": run.metadata.get("recipe_sha256"),
            "weights_sha256": file_sha256(run.weights),
        }
        for run, part in zip(runs, parts, strict=True)
    ]
    digest = hashlib.sha256(json.dumps(members).encode()).hexdigest()
    metadata = {name: first[name] for name in _ALIKE if name in first} | {"average_of": members}
    (target / ADAPTER_METADATA).write_text(json.dumps(metadata, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    lines = [
        "# SFVE, a mean of training runs",
        "",
        "An encoder for the metric `sfve` of gradewire. Its weights are the mean of several runs' weights",
        "(Wortsman et al. 2022, model soups), whose cards have the data and the settings.",
        "",
        f"- Base: {first.get('base')}, weights SHA-256 `{first.get('base_sha256')}`",
        f"- Licence: {first.get('licence') or 'unknown'}",
        f"- Members, SHA-256 of the list `{digest}`:",
        "",
        "| share | recipe, SHA-256 | weights, SHA-256 |",
        "|---:|---|---|",
        *(f"| {each['share']:g} | `{each['recipe_sha256']}` | `{each['weights_sha256']}` |" for each in members),
        "",
    ]
    (target / "README.md").write_text("\n".join(lines), encoding="utf-8")
