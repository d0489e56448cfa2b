"""What is told of a built model's calibrations."""

import json
import re
import shutil
from pathlib import Path

import pytest

from gradewire.errors import InvalidRequest
from gradewire_cli.server_fits import LEVEL, default_encoder, fitted_for, level_start, store_fitted

NAME = "all-MiniLM-L6-v2"


def test_the_catalogs_fit_is_told_and_where_a_build_is_too_old_for_it_how_to_get_it(
    minilm: Path, tmp_path: Path
) -> None:
    name, lines = fitted_for(minilm, NAME)
    assert name.startswith(f"{NAME}@")
    told = [line for line in lines if "correctness" in line]
    assert len(told) == 4  # without a grader, with either, and for votes
    assert all("catalog" in line and "too old" not in line for line in told)

    shutil.copytree(minilm / NAME, tmp_path / NAME)
    config = tmp_path / NAME / "config.pbtxt"
    text, removed = re.subn(
        r'parameters \{\n  key: "gradewire\.calibration\.(?:calibrated|correctness)"\n.*?\n\}\n',
        "",
        config.read_text(),
        flags=re.DOTALL,
    )
    assert removed == 1
    config.write_text(text)
    _, lines = fitted_for(tmp_path, NAME)
    assert [line for line in lines if "correctness" in line] == [
        f"{metric}: this build is too old for the catalog's fit. Run: gradewire models build {NAME}"
        for metric in (
            "correctness",
            *(f"correctness?{fit}" for fit in ("fit=votes", "grader=grader-base", "grader=grader-mini")),
        )
    ]


@pytest.mark.parametrize("grader", ["", "grader-mini", "grader-base"])
def test_a_level_starts_from_the_fit_below_the_users_level(minilm: Path, tmp_path: Path, grader: str) -> None:
    shutil.copytree(minilm / NAME, tmp_path / NAME)
    start = level_start(tmp_path, NAME, grader)
    identity, form = start.fit, start.form
    assert LEVEL not in form
    assert start.replaced is None
    assert bool(form.get("grader_digest")) == bool(grader)
    values = {"metric": "correctness", "metric_version": form["metric_version"], "rows": 50}
    parameters = (("grader", grader),) if grader else ()
    provenance = {"offset": 0.5, "fit": identity}
    text = json.dumps({**form, LEVEL: provenance})
    store_fitted(tmp_path, NAME, form["model_digest"], {**values, "parameters": parameters, "fit": text})
    assert start.origin.startswith("catalog: fitted on ")
    assert level_start(tmp_path, NAME, grader) == (identity, form, start.origin, provenance)
    # A user's own probability is what a level starts from.
    own = {**form, "note": "own"}
    values |= {"parameters": parameters, "fit": json.dumps(own)}
    store_fitted(tmp_path, NAME, form["model_digest"], values)
    found, own_form, origin, replaced = level_start(tmp_path, NAME, grader)
    assert (found != identity, own_form, replaced) == (True, own, None)
    assert origin.startswith("user: fitted on ")
    # A level replaces the user's own fit, which --undo brings back. No second level starts from the catalog's fit.
    values |= {"fit": json.dumps({**own, LEVEL: {"offset": 0.5, "fit": found}})}
    store_fitted(tmp_path, NAME, form["model_digest"], values)
    with pytest.raises(
        InvalidRequest, match=f"no longer has fit {found}, .* Go back to the fit before the level: .* --undo"
    ):
        level_start(tmp_path, NAME, grader)


def test_a_fit_that_a_server_would_refuse_is_named(minilm: Path, tmp_path: Path) -> None:
    shutil.copytree(minilm / NAME, tmp_path / NAME)
    form = level_start(tmp_path, NAME).form
    broken = json.dumps({**form, "base": "high"})
    values = {"metric": "correctness", "metric_version": form["metric_version"], "fit": broken}
    store_fitted(tmp_path, NAME, form["model_digest"], values)
    with pytest.raises(InvalidRequest, match=f"the fit of {NAME} for correctness cannot be used: base: "):
        level_start(tmp_path, NAME)


def test_a_model_that_is_not_built_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=NAME):
        fitted_for(tmp_path, NAME)


def test_the_default_encoder_is_the_settings_or_the_catalogs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADEWIRE_DEFAULT_MODEL", raising=False)
    assert default_encoder() == NAME
    monkeypatch.setenv("GRADEWIRE_DEFAULT_MODEL", "mine")
    assert default_encoder() == "mine"
