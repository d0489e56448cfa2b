from pathlib import Path

import pytest

from gradewire_models.catalog import loading as catalog
from gradewire_models.catalog.entries import Limits, Recipe
from gradewire_models.catalog.loading import base_models, load_catalog
from gradewire_models.errors import CatalogError

CATALOG = Path(catalog.__file__).with_name("catalog.toml")
# Files beside the catalog are found wherever a test writes its own one.
TEXT = CATALOG.read_text(encoding="utf-8").replace('fit_file = "', f'fit_file = "{CATALOG.parent}/')
VARIANT = """
[[variant]]
name = "half"
base = "all-MiniLM-L6-v2"
title = "A variant for tests"
numeric_class = "half-cpu"
digest = ""

[variant.recipe]
method = "rounding"
bits = 4
ratio = 0.5
symmetric = true
nodes = ["layer_1.up", "layer_2.up"]

[variant.limits]
min_cosine = 0.9
max_batch_effect = 1
"""


def read(tmp_path: Path, text: str) -> catalog.CatalogModel:
    path = tmp_path / "catalog.toml"
    path.write_text(TEXT + text, encoding="utf-8")
    return load_catalog(path)["half"]


def test_a_variant_is_its_base_in_another_arithmetic(tmp_path: Path) -> None:
    base, variant = load_catalog()["all-MiniLM-L6-v2"], read(tmp_path, VARIANT)
    assert (variant.name, variant.base, variant.numeric_class, variant.digest) == ("half", base.name, "half-cpu", "")
    assert (variant.files, variant.sources, variant.dims) == (base.files, base.sources, base.dims)
    assert variant.default is False
    assert variant.build_hint == "gradewire models build half"
    assert (variant.metadata.base, variant.metadata.build_command) == (base.name, "gradewire models build half")


def test_recipe_and_limits_are_read(tmp_path: Path) -> None:
    variant = read(tmp_path, VARIANT)
    assert variant.recipe is not None
    assert variant.recipe.method == "rounding"
    nodes = ("layer_1.up", "layer_2.up")
    assert variant.recipe.settings == {"bits": 4, "ratio": 0.5, "symmetric": True, "nodes": nodes}
    assert variant.limits == Limits(min_cosine=0.9, max_batch_effect=1)


def test_variants_for_gpus_stand_in_the_catalog() -> None:
    for base in (model for model in base_models() if model.adapter is None):
        variants = {model.name: model for model in load_catalog().values() if model.base == base.name}
        for kind in ("fp32-cuda", "fp16-cuda", "fp16-tensorrt"):
            variant = variants[f"{base.name}-{kind}"]
            assert variant.recipe == Recipe("gpu", {})
            assert variant.numeric_class == kind
            assert ("never tested" in variant.title) == (variant.name != "all-MiniLM-L6-v2-fp16-cuda")
    digests = [model.digest for model in load_catalog().values()]
    assert len(set(digests)) == len(digests)


def test_models_of_their_own_have_no_recipe_and_strict_limits() -> None:
    assert [model.name for model in base_models()][:2] == ["all-MiniLM-L6-v2", "all-mpnet-base-v2"]
    for model in base_models():
        assert (model.recipe, model.limits) == (None, Limits())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "half"', 'name = "all-MiniLM-L6-v2"', "listed twice"),
        ('name = "half"', "", "name is missing"),
        ('base = "all-MiniLM-L6-v2"', 'base = "ember-v1"', "base must be a .*model"),
        ('numeric_class = "half-cpu"', 'numeric_class = "fp32-cpu"', "mix both models' vectors"),
        ('digest = ""', 'digest = "0"', "64 lower-case hex"),
        ('digest = ""', 'digest = ""\ndims = 3', "dims is unknown"),
        ('method = "rounding"', "", "method is missing"),
        ('method = "rounding"', "method = 1", "recipe.method must be a valid string, not 1"),
        ("bits = 4", "bits = [4]", "bits must be a valid string or be a valid integer"),
        ("bits = 4", "bits = {}", "bits must be"),
        ("min_cosine = 0.9", "least_cosine = 0.9", "least_cosine"),
        ("min_cosine = 0.9", 'min_cosine = "0.9"', "min_cosine must be"),
        ("min_cosine = 0.9", "min_cosine = true", "min_cosine must be"),
    ],
)
def test_a_broken_variant_is_refused_and_says_where(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in VARIANT
    with pytest.raises(CatalogError, match=says):
        read(tmp_path, VARIANT.replace(old, new, 1))
