"""An untrained grader: a low-rank adapter with seeded weights and a head, as `gradewire models train grader` leaves."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tests.support.models.tiny_models import make_package

from gradewire_models.build.adapters import user_adapted
from gradewire_models.build.install import build_model
from gradewire_models.build.weights import linear_layers
from gradewire_models.catalog.entries import Architecture, CatalogModel

RANK = 2


def write_grader_adapter(
    directory: Path, base: CatalogModel, *, seed: int = 0, temperature: float = 1.0, scale: float = 0.05
) -> Path:
    """Writes the files of a grader into `directory`; other seeds give other logits."""
    rng = np.random.default_rng(seed)
    directory.mkdir(parents=True)
    tensors = {}
    for name in linear_layers(base):
        inputs = base.feed_forward_dims if name.endswith("output.dense") and "attention" not in name else base.dims
        outputs = base.feed_forward_dims if name.endswith("intermediate.dense") else base.dims
        for side, shape in {"A": (RANK, inputs), "B": (outputs, RANK)}.items():
            values = (rng.standard_normal(shape) * scale).astype(np.float32)
            tensors[f"base_model.model.{name}.lora_{side}.weight"] = values
    save_file(tensors, directory / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "target_modules": sorted({name.rpartition(".")[2] for name in linear_layers(base)}),
        "base_model_name_or_path": base.origin,
    }
    (directory / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    weight = rng.standard_normal((1, base.dims)).astype(np.float32)
    save_file({"weight": weight, "bias": np.array([0.25], np.float32)}, directory / "head.safetensors")
    said = {"base": base.name, "max_tokens": 256, "text_form": "grader", "temperature": temperature, "licence": "MIT"}
    (directory / "gradewire.json").write_text(json.dumps(said), encoding="utf-8")
    return directory


def build_tiny_grader(
    directory: Path,
    name: str = "tiny-grader",
    *,
    seed: int = 0,
    temperature: float = 1.0,
    architecture: Architecture = "bert",
) -> Path:
    """A repository with a grader of a tiny encoder; what it says means nothing, and differs for every text."""
    package = make_package(directory / f"wheels-{name}", architecture, max_tokens=256)
    adapter = write_grader_adapter(directory / f"adapter-{name}", package.model, seed=seed, temperature=temperature)
    model = user_adapted(adapter, package.model, name)
    build_model(model, directory / "repository", wheels=package.wheels)
    return directory / "repository"
