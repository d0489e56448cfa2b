"""What users fitted stays with a model for as long as it is the same model."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.engines.calibrations import SMILE, calibration
from tests.support.models.tiny_models import Package

from gradewire_models.build.fitted import (
    REPLACED_FILE,
    carry_calibrations,
    forget_calibrations,
    removable_calibrations,
    restorable_calibrations,
    store_calibration,
)
from gradewire_models.build.install import build_model
from gradewire_models.build.renew import renew
from gradewire_models.build.verify import verify_built
from gradewire_models.catalog.calibration import StoredCalibration
from gradewire_models.cli.group import models
from gradewire_models.errors import BuildError, ModelNotBuiltError
from gradewire_models.repository.built import list_built, load_built
from gradewire_models.repository.config import read_config

NAME = "tiny-bert"


@pytest.fixture
def directory(fresh_bert: Callable[[], Path]) -> Path:
    return fresh_bert() / NAME


def users(directory: Path, **changes: object) -> StoredCalibration:
    return calibration(origin="user", model_digest=load_built(directory.parent, NAME).digest, **changes)


def test_it_is_stored_told_and_forgotten_and_nothing_else_changes(directory: Path) -> None:
    path = directory / "config.pbtxt"
    before = path.read_text()
    digest = load_built(directory.parent, NAME).digest
    fitted = users(directory)
    other = users(directory, metric="sbert", parameters=(), sentence_weight=None)
    assert store_calibration(directory.parent, NAME, fitted).calibrations == (fitted,)
    assert store_calibration(directory.parent, NAME, other).digest == digest
    assert store_calibration(directory.parent, NAME, replace(fitted, threshold=0.7)).calibrations == (
        other,
        replace(fitted, threshold=0.7),
    )
    told = CliRunner().invoke(models, ["list", "--model-repository", str(directory.parent)]).output
    assert "fitted for smile/1 (preset=v1,synthetic=none): threshold 0.7" in told
    assert forget_calibrations(directory.parent, NAME, "sbert") == (other,)
    # What a fit had replaced comes back, once.
    assert restorable_calibrations(directory.parent, NAME) == (fitted,)
    assert forget_calibrations(directory.parent, NAME) == (replace(fitted, threshold=0.7),)
    assert load_built(directory.parent, NAME).calibrations == (fitted,)
    assert restorable_calibrations(directory.parent, NAME) == ()
    assert forget_calibrations(directory.parent, NAME) == (fitted,)
    assert path.read_text() == before
    assert not (directory / REPLACED_FILE).exists()
    assert forget_calibrations(directory.parent, NAME) == ()


def test_storing_the_same_fit_again_replaces_nothing(directory: Path) -> None:
    fitted = users(directory)
    for _ in range(2):
        store_calibration(directory.parent, NAME, fitted)
    assert not (directory / REPLACED_FILE).exists()


def test_a_replaced_fit_outlives_a_build_of_the_same_model_and_no_other(directory: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    shutil.copytree(directory, made)
    store_calibration(directory.parent, NAME, users(directory))
    store_calibration(directory.parent, NAME, users(directory, threshold=0.7))
    carry_calibrations(directory, made)
    assert (made / REPLACED_FILE).read_text() == (directory / REPLACED_FILE).read_text()
    (made / REPLACED_FILE).unlink()
    config = made / "config.pbtxt"
    config.write_text(config.read_text().replace(load_built(directory.parent, NAME).digest, "0" * 64))
    carry_calibrations(directory, made)
    assert not (made / REPLACED_FILE).exists()


def test_a_description_without_fits_to_remove_stays_as_it_is(directory: Path) -> None:
    path = directory / "config.pbtxt"
    fitted = users(directory)
    store_calibration(directory.parent, NAME, fitted)
    before = (path.read_bytes(), path.stat().st_ino)
    assert removable_calibrations(directory.parent, NAME) == (fitted,)
    assert removable_calibrations(directory.parent, NAME, "sbert") == ()
    assert forget_calibrations(directory.parent, NAME, "sbert") == ()
    assert (path.read_bytes(), path.stat().st_ino) == before
    with pytest.raises(ModelNotBuiltError):
        removable_calibrations(directory.parent, "nobody")
    path.write_text("no description")
    with pytest.raises(BuildError, match="cannot read the description of tiny-bert"):
        removable_calibrations(directory.parent, NAME)


def test_what_somebody_else_wrote_into_the_file_stays(directory: Path) -> None:
    path = directory / "config.pbtxt"
    theirs = "# ours\nrate_limiter { priority: 2 }\n"
    path.write_text(theirs + path.read_text())
    store_calibration(directory.parent, NAME, users(directory))
    assert path.read_text().startswith(theirs)
    # Written in another way it is found as well.
    path.write_text(path.read_text().replace('  key: "gradewire.calibration', '  key:"gradewire.calibration'))
    changed = users(directory, threshold=0.9)
    assert store_calibration(directory.parent, NAME, changed).calibrations == (changed,)


def test_a_model_of_another_digest_has_other_scores(directory: Path) -> None:
    before = (directory / "config.pbtxt").read_text()
    with pytest.raises(BuildError, match="Score the rows with that model"):
        store_calibration(directory.parent, NAME, replace(SMILE, origin="user"))
    assert (directory / "config.pbtxt").read_text() == before
    with pytest.raises(ModelNotBuiltError):
        store_calibration(directory.parent, "nobody", SMILE)
    with pytest.raises(ModelNotBuiltError):
        forget_calibrations(directory.parent, "../up")


def test_a_renewal_keeps_the_users_and_brings_the_catalogs(directory: Path, bert: Package) -> None:
    paper = calibration(parameters=(("preset", "paper"), ("synthetic", "none")))
    listed = replace(bert.model, calibrations=(SMILE, paper))
    fitted = users(directory)
    store_calibration(directory.parent, NAME, fitted)
    assert renew(load_built(directory.parent, NAME), listed)
    assert load_built(directory.parent, NAME).calibrations == (paper, fitted)
    result = build_model(listed, directory.parent, wheels=bert.wheels)
    assert (result.built, result.renewed, result.model.calibrations) == (False, False, (paper, fitted))
    # Of an exported model the description is all there is.
    assert not renew(load_built(directory.parent, NAME), None)
    forget_calibrations(directory.parent, NAME)
    assert renew(load_built(directory.parent, NAME), listed)
    assert load_built(directory.parent, NAME).calibrations == (paper, SMILE)


def test_a_broken_model_is_built_anew_with_what_was_fitted_for_it(directory: Path, bert: Package) -> None:
    fitted = users(directory)
    store_calibration(directory.parent, NAME, fitted)
    (directory / "1" / "model.onnx").write_bytes(b"torn")
    result = build_model(bert.model, directory.parent, wheels=bert.wheels)
    assert (result.built, result.model.calibrations, result.dropped) == (True, (fitted,), ())


def test_what_was_fitted_for_other_vectors_is_dropped_with_a_word(directory: Path, bert: Package) -> None:
    fitted = users(directory)
    store_calibration(directory.parent, NAME, fitted)
    made = replace(bert.model, max_tokens=bert.model.max_tokens - 50, digest="")
    (directory / "1" / "model.onnx").write_bytes(b"torn")
    result = build_model(made, directory.parent, wheels=bert.wheels)
    assert (result.built, result.model.calibrations, result.dropped) == (True, (), (fitted,))


def test_writers_at_once_lose_nothing(directory: Path) -> None:
    fitted = [users(directory, metric=f"metric_{number}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: store_calibration(directory.parent, NAME, each), fitted))
    assert load_built(directory.parent, NAME).calibrations == tuple(fitted)


def spoil(directory: Path, *metrics: str) -> None:
    """As a later release might have written it, or a hand."""
    path = directory / "config.pbtxt"
    for metric in metrics:
        store_calibration(directory.parent, NAME, users(directory, metric=metric))
    path.write_text(path.read_text().replace('\\"format\\":1', '\\"format\\":2'))


def test_what_cannot_be_read_is_told_and_the_model_goes_on(directory: Path) -> None:
    fitted = users(directory, metric="sbert")
    spoil(directory, "smile")
    store_calibration(directory.parent, NAME, fitted)
    for model in (load_built(directory.parent, NAME), list_built(directory.parent)[0]):
        assert model.calibrations == (fitted,)
        assert [each.metric for each in model.unreadable] == ["smile"]
    told = CliRunner().invoke(models, ["list", "--model-repository", str(directory.parent)]).output
    assert "fitted for sbert/1" in told
    assert "the calibration for smile cannot be read (gradewire.calibration.smile: the format is 2" in told
    checks = {check.name: check for check in verify_built(directory.parent, NAME, None)}
    assert not checks["config.pbtxt"].passed
    assert "--undo" in checks["config.pbtxt"].detail


def test_what_cannot_be_read_is_kept_until_somebody_takes_it_away(directory: Path, bert: Package) -> None:
    path = directory / "config.pbtxt"
    before = path.read_text()
    spoil(directory, "smile", "sbert")
    kept = load_built(directory.parent, NAME).unreadable
    # Renewed and built again, as broken files make it.
    build_model(replace(bert.model, calibrations=(SMILE,)), directory.parent, wheels=bert.wheels)
    assert load_built(directory.parent, NAME).unreadable == kept
    (directory / "1" / "model.onnx").write_bytes(b"torn")
    result = build_model(bert.model, directory.parent, wheels=bert.wheels)
    assert (result.built, result.model.unreadable, result.dropped) == (True, kept, ())
    # What is fitted again takes the place of its own metric's alone.
    again = users(directory, metric="sbert")
    store_calibration(directory.parent, NAME, again)
    model = load_built(directory.parent, NAME)
    assert (model.calibrations, [each.metric for each in model.unreadable]) == ((again,), ["smile"])
    assert [each.metric for each in forget_calibrations(directory.parent, NAME, "smile")] == ["smile"]
    assert load_built(directory.parent, NAME).calibrations == (again,)
    spoil(directory, "smile")
    assert {each.metric for each in forget_calibrations(directory.parent, NAME)} == {"sbert", "smile"}
    assert path.read_text() == before


def test_what_cannot_be_read_of_other_vectors_is_dropped_with_a_word(directory: Path, bert: Package) -> None:
    spoil(directory, "smile")
    made = replace(bert.model, max_tokens=bert.model.max_tokens - 50, digest="")
    (directory / "1" / "model.onnx").write_bytes(b"torn")
    result = build_model(made, directory.parent, wheels=bert.wheels)
    assert (result.model.unreadable, [each.metric for each in result.dropped]) == ((), ["smile"])


def test_nothing_is_carried_from_what_is_not_there(directory: Path, tmp_path: Path) -> None:
    assert carry_calibrations(tmp_path / "nowhere", directory) == ()
    assert "calibration" not in " ".join(read_config(directory / "config.pbtxt")[1])
