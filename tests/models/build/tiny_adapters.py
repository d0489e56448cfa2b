"""Random adapters in PEFT's format for the tiny models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tests.support.models.tiny_models import DIMS, LAYERS, WIDE

from gradewire_models.catalog.entries import Architecture

RANK, ALPHA = 3, 6.0
ENDS = {"bert": ["query", "value", "dense"], "mpnet": ["q", "o", "dense"]}


def shapes_of(architecture: Architecture) -> dict[str, tuple[int, int]]:
    """[outputs, inputs] of the layers that `ENDS` names, by published name: written down, not asked of the code."""
    attention = {
        "bert": ("attention.self.query", "attention.self.value", "attention.output.dense"),
        "mpnet": ("attention.attn.q", "attention.attn.o"),
    }[architecture]
    shapes = dict.fromkeys(attention, (DIMS, DIMS))
    shapes |= {"intermediate.dense": (WIDE, DIMS), "output.dense": (DIMS, WIDE)}
    return {f"encoder.layer.{layer}.{name}": shape for layer in range(LAYERS) for name, shape in shapes.items()}


def settings_of(architecture: Architecture, **changes: Any) -> dict[str, Any]:
    """An adapter_config.json with the fields that PEFT 0.21 writes."""
    off = dict.fromkeys(("alora_invocation_tokens", "exclude_modules", "layers_pattern", "modules_to_save"))
    off |= dict.fromkeys(("fan_in_fan_out", "lora_bias", "use_dora", "use_rslora"), False)
    return {
        **off,
        "alpha_pattern": {},
        "base_model_name_or_path": f"somebody/tiny-{architecture}",
        "bias": "none",
        "init_lora_weights": True,
        "layers_to_transform": None,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.1,
        "peft_type": "LORA",
        "peft_version": "0.21.2",
        "r": RANK,
        "target_modules": ENDS[architecture],
        "task_type": None,
    } | changes


def tensors_of(architecture: Architecture, seed: int = 0) -> dict[str, NDArray[np.float16]]:
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, (outputs, inputs) in shapes_of(architecture).items():
        for side, shape in (("A", (RANK, inputs)), ("B", (outputs, RANK))):
            tensors[f"base_model.model.{name}.lora_{side}.weight"] = rng.standard_normal(shape).astype(np.float16) / 4
    return tensors


def write_adapter(
    directory: Path, architecture: Architecture, *, seed: int = 0, said: dict[str, Any] | None = None, **changes: Any
) -> Path:
    """Writes an adapter; `changes` go into its settings, `said` into gradewire.json."""
    directory.mkdir(parents=True, exist_ok=True)
    save_file(tensors_of(architecture, seed), directory / "adapter_model.safetensors")
    (directory / "adapter_config.json").write_text(json.dumps(settings_of(architecture, **changes)), encoding="utf-8")
    if said is not None:
        (directory / "gradewire.json").write_text(json.dumps(said), encoding="utf-8")
    return directory
