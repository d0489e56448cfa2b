import json
import re
from pathlib import Path

import pytest

from gradewire_models.catalog import loading as catalog
from gradewire_models.catalog.loading import base_models, default_model, find_model, load_catalog
from gradewire_models.errors import CatalogError

CATALOG = Path(catalog.__file__).with_name("catalog.toml")
# Files beside the catalog are found wherever a test writes its own one.
TEXT = CATALOG.read_text(encoding="utf-8").replace('fit_file = "', f'fit_file = "{CATALOG.parent}/')


def test_the_default_is_minilm_and_everything_is_pinned() -> None:
    models = load_catalog()
    assert default_model().name == "all-MiniLM-L6-v2"
    assert list(models)[:2] == ["all-MiniLM-L6-v2", "all-mpnet-base-v2"]
    for model in models.values():
        assert re.fullmatch("[0-9a-f]{64}", model.digest)
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", source.requirement) for source in model.sources)
        assert model.build_hint == f"gradewire models build {model.name}"


def test_published_facts_of_the_models() -> None:
    minilm, mpnet = base_models()[:2]
    assert (minilm.dims, minilm.layers, minilm.max_tokens, minilm.architecture) == (384, 6, 256, "bert")
    assert (mpnet.dims, mpnet.layers, mpnet.max_tokens, mpnet.architecture) == (768, 12, 384, "mpnet")
    assert minilm.files["model.safetensors"].startswith("53aa5117")
    assert mpnet.files["model.safetensors"].startswith("78c0197b")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(CatalogError, match="all-MiniLM-L6-v2, all-mpnet-base-v2"):
        find_model("ember-v1")


FITTED = """
[[model.calibrations]]
metric = "bertscore"
metric_version = 1
threshold = 0.5
parameters = { layer = "6" }
rows = 12

[[model.calibrations]]
metric = "rouge_l"
metric_version = 1
fit_file = "fit.json"

[model.files]
"model.safetensors" = "53"""


def test_calibrations_are_the_models_and_its_variants(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    (tmp_path / "fit.json").write_text('{"trees": []}', encoding="utf-8")
    path.write_text(TEXT.replace('[model.files]\n"model.safetensors" = "53', FITTED, 1), encoding="utf-8")
    models = load_catalog(path)
    minilm = models["all-MiniLM-L6-v2"]
    fitted = {each.metric: each for each in minilm.calibrations}
    assert (fitted["bertscore"].threshold, fitted["bertscore"].parameters) == (0.5, (("layer", "6"),))
    assert (fitted["bertscore"].origin, fitted["bertscore"].model_digest) == ("catalog", minilm.digest)
    assert fitted["rouge_l"].fit == '{"trees":[]}'
    thresholds = tuple(each for each in minilm.calibrations if not each.fit)
    assert models["all-MiniLM-L6-v2-int8"].calibrations == thresholds == (fitted["bertscore"],)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("threshold = 0.5", "threshold = nan", "calibrations: threshold must be a finite number"),
        ("threshold = 0.5", "", "a threshold or a fit"),
        ("rows = 12", "colour = 12", "colour"),
        ("metric_version = 1\nthreshold", "threshold", "metric_version"),
        ('{ layer = "6" }', '"6"', "must be a table"),
        ("fit.json", "nowhere.json", "cannot read"),
        (
            'metric = "rouge_l"\nmetric_version = 1\nfit_file = "fit.json"',
            'metric = "bertscore"\nmetric_version = 1\nthreshold = 0.5\nparameters = { layer = "6" }',
            "two calibrations",
        ),
    ],
)
def test_an_unsound_calibration_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "catalog.toml"
    (tmp_path / "fit.json").write_text("{}", encoding="utf-8")
    assert old in FITTED
    fitted = FITTED.replace(old, new, 1)
    path.write_text(TEXT.replace('[model.files]\n"model.safetensors" = "53', fitted, 1), encoding="utf-8")
    with pytest.raises(CatalogError, match=says):
        load_catalog(path)


def test_every_encoder_says_what_bertscore_takes() -> None:
    for model in load_catalog().values():
        if model.adapter is not None:
            continue  # whose vectors nobody measured for it: the last layer is taken, as of an exported one
        assert model.bertscore is not None
        assert model.bertscore.layer in model.bertscore.baselines
        assert set(model.bertscore.baselines) == {*model.token_layers, model.layers}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("layer = 6\n", "layer = 2\n", "layers that are not outputs; use only .3, 4, 5, 6."),
        ("3 = [0.3764, 0.3754, 0.3716]", "3 = [0.3764]", "bertscore.baselines.3.1 is missing"),
        ("3 = [0.3764, 0.3754, 0.3716]", "2 = [0.3764, 0.3754, 0.3716]", "not outputs"),
        ("dims = 384", "", "dims"),
        ("dims = 384", 'dims = "384"', "dims must be a valid integer, not '384'"),
        ("dims = 384", "dims = true", "dims must be a valid integer"),
        ("dims = 384", "dims = 384.0", "dims must be a valid integer"),
        ("dims = 384", "dims = 385", "multiple of heads"),
        ("dims = 384", "dims = 384\ncolour = 1", "colour"),
        ('name = "all-MiniLM-L6-v2"', 'name = "../up"', "name must be a name of letters"),
        ('name = "all-MiniLM-L6-v2"', 'name = "all-mpnet-base-v2"', "listed twice"),
        ("default = true", "default = false", "exactly one model"),
        ("default = false", "default = true", "exactly one model"),
        ('architecture = "bert"', 'architecture = "gpt"', "architecture must be 'bert' or 'mpnet', not 'gpt'"),
        ('pooling = "mean"', 'pooling = "max"', "pooling must be 'mean', not 'max'"),
        ("token_layers = [3, 4, 5]", "token_layers = [3, 6]", "token_layers"),
        ('sha256 = "b9a0018d', 'sha256 = "B9A0018D', "64 lower-case hex"),
        ('digest = "', 'digest = "0', "64 lower-case hex"),
        ('"tokenizer.json" =', '"tokenizer.txt" =', "tokenizer.json"),
        ('requirement = "gt-', 'colour = "gt-', "colour"),
        ("version = 2", "version =", "cannot read"),
    ],
)
def test_a_broken_catalog_is_refused_and_says_where(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TEXT
    path = tmp_path / "catalog.toml"
    path.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(CatalogError, match=says):
        load_catalog(path)


def test_a_catalog_without_models_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text("version = 1", encoding="utf-8")
    with pytest.raises(CatalogError, match=r"no \[\[model\]\]"):
        load_catalog(path)


def test_a_catalog_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="cannot read"):
        load_catalog(tmp_path / "catalog.toml")


def test_entries_say_what_their_fits_say() -> None:
    fits = [
        (each, json.loads(each.fit)) for model in load_catalog().values() for each in model.calibrations if each.fit
    ]
    for entry, fit in fits:
        assert (entry.metric_version, entry.date) == (fit["metric_version"], fit["date"])
        if entry.metric == "correctness":
            assert (entry.rows, entry.rows_sha256) == (fit["rows"]["count"], fit["rows"]["sha256"])
            assert dict(entry.parameters).get("grader") == fit.get("grader")
