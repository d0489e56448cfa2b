"""Quantized variants of the tiny models."""

from dataclasses import replace
from pathlib import Path

from tests.support.models.tiny_models import Package, tiny_tokenizer

from gradewire_models.build.calibration_rows import calibration_texts, texts_sha256
from gradewire_models.build.install import build_model
from gradewire_models.catalog.entries import CatalogModel, Limits, Recipe, Setting

ROWS: dict[str, Setting] = {
    "smoothing": 0.5,
    "outliers": 2,
    "hidden_outliers": 2,
    "excluded": (),
}
NBITS: dict[str, Setting] = {"block_size": 16, "accuracy_level": 4, "excluded": ()}
WIDE_LIMITS = Limits(min_cosine=-1, max_token_error=1e3, max_batch_effect=1e3)


def published(package: Package) -> Path:
    """Directory with the files a recipe reads."""
    source = package.wheels / "published"
    if not source.is_dir():
        source.mkdir()
        (source / "model.safetensors").write_bytes(package.weights.read_bytes())
        (source / "tokenizer.json").write_bytes(tiny_tokenizer())
    return source


def int8_variant(package: Package, **changes: Setting) -> CatalogModel:
    """The tiny model in 8-bit integers; settings as in `ROWS` where not changed."""
    texts = calibration_texts(published(package) / "tokenizer.json")
    return variant(package, "int8", ROWS | {"calibration_sha256": texts_sha256(texts)} | changes)


def variant(package: Package, method: str, settings: dict[str, Setting]) -> CatalogModel:
    """A variant of any recipe."""
    return replace(
        package.model,
        name=f"{package.model.name}-{method}",
        base=package.model.name,
        numeric_class=f"{method}-cpu",
        recipe=Recipe(method, settings),
        limits=WIDE_LIMITS,
    )


def build_beside_base(package: Package, model: CatalogModel, repository: Path) -> None:
    """Builds base and variant into one repository."""
    for each in (package.model, model):
        build_model(each, repository, wheels=package.wheels)
