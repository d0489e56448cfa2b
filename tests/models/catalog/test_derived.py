"""Fits of a variant whose scores were compared with its base's: the base's numbers, for the variant's digests."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gradewire_models.catalog import loading
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.errors import CatalogError
from gradewire_server.metrics.correctness.features import features_of
from gradewire_server.metrics.correctness.fit import VOTES, fit_id, read_fit
from gradewire_server.metrics.correctness.metric import VERSION

CATALOG = Path(loading.__file__).with_name("catalog.toml")
TEXT = CATALOG.read_text(encoding="utf-8").replace('fit_file = "', f'fit_file = "{CATALOG.parent}/')
BASE = "all-MiniLM-L6-v2"
GRADER = "graded-half"
VARIANTS = f"""
[[variant]]
name = "{GRADER}"
base = "grader-mini"
title = "A grader's variant for tests"
numeric_class = "half-cpu"
digest = "{"a" * 64}"
recipe = {{ method = "gpu" }}

[[variant]]
name = "half"
base = "{BASE}"
title = "A variant for tests"
numeric_class = "half-cpu"
digest = "{"b" * 64}"
recipe = {{ method = "gpu" }}

[variant.compared_fits]
graders = {{ grader-mini = "{GRADER}" }}
rows = 12
rows_sha256 = "{"c" * 64}"
compared_on = "twelve rows"
auc = 0.9
auc_change = -0.00001
max_change = 0.00042
computed = "in the head"
date = "2026-11-29"
"""


def read(directory: Path, text: str) -> Mapping[str, CatalogModel]:
    path = directory / "catalog.toml"
    path.write_text(TEXT + text, encoding="utf-8")
    return load_catalog(path)


def fits_of(model: CatalogModel) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the fits by metric, and by grader or name."""
    return {
        (each.metric, dict(each.parameters).get("grader") or dict(each.parameters).get("fit", "")): json.loads(each.fit)
        for each in model.calibrations
        if each.fit
    }


def test_they_are_the_bases_numbers_for_other_digests(tmp_path: Path) -> None:
    models = read(tmp_path, VARIANTS)
    base, variant = models[BASE], models["half"]
    before, after = fits_of(base), fits_of(variant)
    # The fit with grader-base and the fit votes are missing, because they were not compared.
    assert ("correctness", VOTES) in before
    assert set(after) == {("correctness", ""), ("correctness", GRADER), ("auto", "")}
    plain, graded = after["correctness", ""], after["correctness", GRADER]
    own = {"model": "half", "model_digest": "b" * 64}
    assert plain == before["correctness", ""] | own
    graders = {"grader": GRADER, "grader_digest": "a" * 64}
    assert graded == before["correctness", "grader-mini"] | own | graders
    text = next(each.fit for each in variant.calibrations if each.metric == "correctness" and not each.parameters)
    assert after["auto", ""] == before["auto", ""] | own | {"correctness_fit": fit_id(text)}
    assert {each.model_digest for each in variant.calibrations} == {"b" * 64}
    said = next(each for each in variant.calibrations if each.parameters == (("grader", GRADER),)).described
    assert said.startswith(f"catalog: fitted on {BASE}'s scores (compared on 12 rows) of half b of EVOUNA dev, ")


def test_the_server_reads_them_as_fits_of_the_variant(tmp_path: Path) -> None:
    for (metric, grader), form in fits_of(read(tmp_path, VARIANTS)["half"]).items():
        if metric == "correctness":
            fit = read_fit(json.dumps(form), features_of(grader), version=VERSION)
            assert (fit.form.model, fit.form.model_digest) == ("half", "b" * 64)
            assert fit.form.grader_digest == ("a" * 64 if grader else "")


def test_a_variant_that_was_not_compared_has_no_fits(tmp_path: Path) -> None:
    models = read(tmp_path, VARIANTS.partition("[variant.compared_fits]")[0])
    assert fits_of(models[BASE])
    assert fits_of(models["half"]) == {}
    assert models["half"].compared_fits is None


def test_the_comparison_is_told_in_one_line(tmp_path: Path) -> None:
    compared = read(tmp_path, VARIANTS)["half"].compared_fits
    assert compared is not None
    assert compared.summary == (
        "correctness works with the base's fits: on 12 rows its AUC changes by -0.000010, and no score by more than "
        "0.00042 (in the head)"
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (f'grader-mini = "{GRADER}"', 'grader-mini = "nowhere"', "'nowhere' is not a variant of 'grader-mini'"),
        (f'grader-mini = "{GRADER}"', 'grader-mini = "half"', "'half' is not a variant of 'grader-mini'"),
        (f'grader-mini = "{GRADER}"', f'sfve-mini = "{GRADER}"', "no fit with this grader"),
        ("rows = 12", "rows = 0", "compared_fits.rows must be greater"),
        ("auc = 0.9", "auc = 9.9", "compared_fits.auc must be less"),
        ("max_change = 0.00042", "", "compared_fits.max_change is missing"),
        ("max_change = 0.00042", "max_change = 0.00042\ncolour = 1", "colour is unknown"),
        ('base = "grader-mini"', 'base = "grader-maxi"', "base must be a"),
    ],
)
def test_an_unsound_comparison_is_refused_and_says_where(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert VARIANTS.count(old) == 1
    with pytest.raises(CatalogError, match=says):
        read(tmp_path, VARIANTS.replace(old, new))
