"""What was fitted for a model: written into its description and read back."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.repository.test_config import FILES
from tests.support.engines.calibrations import SMILE, calibration, stored_calibrations
from tests.support.examples import example_count
from tests.support.models.tiny_models import Package

from gradewire_models.catalog.calibration import StoredCalibration, fitting, merge, of_users
from gradewire_models.repository.calibration_records import calibrations_in, to_parameters
from gradewire_models.repository.config import make_config, read_config, write_config
from gradewire_models.repository.serving import Serving


@settings(max_examples=example_count(60), deadline=None)
@given(found=st.lists(stored_calibrations(), max_size=4))
def test_what_is_written_is_read_back(bert: Package, found: list[StoredCalibration]) -> None:
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "config.pbtxt"
        kept = merge([replace(each, origin="catalog") for each in found], ())
        write_config(path, make_config(replace(bert.model.metadata, calibrations=kept), FILES, Serving()))
        assert calibrations_in(read_config(path)[1]).readable == kept


@settings(max_examples=example_count(60), deadline=None)
@given(below=st.lists(stored_calibrations(), max_size=4), above=st.lists(stored_calibrations(), max_size=4))
def test_the_one_above_takes_the_place(below: list[StoredCalibration], above: list[StoredCalibration]) -> None:
    merged = merge(below, above)
    assert len({each.key for each in merged}) == len(merged)
    assert {each.key for each in merged} == {each.key for each in [*below, *above]}
    last = {each.key: each for each in [*below, *above]}
    assert all(each == last[each.key] for each in merged)
    assert calibrations_in(to_parameters(merged)).readable == merged


def test_a_users_fit_holds_for_the_vectors_it_was_fitted_on(bert: Package, tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    write_config(path, make_config(bert.model.metadata, FILES, Serving()))
    digest = read_config(path)[1]["digest"]
    own, other = (calibration(origin="user", model_digest=each) for each in (digest, "f" * 64))
    elsewhere = replace(other, parameters=(("preset", "paper"),))
    write_config(path, make_config(replace(bert.model.metadata, calibrations=(own, elsewhere)), FILES, Serving()))
    assert calibrations_in(read_config(path)[1]).readable == (own,)
    # A variant has its base's from the catalog.
    assert fitting((SMILE, elsewhere), digest) == (SMILE,)
    assert of_users((SMILE, own)) == (own,)


def test_the_digest_is_that_of_the_vectors_alone(bert: Package) -> None:
    plain = make_config(bert.model.metadata, FILES, Serving())
    fitted = make_config(replace(bert.model.metadata, calibrations=(SMILE,)), FILES, Serving())
    assert plain != fitted
    assert plain.parameters["gradewire.digest"] == fitted.parameters["gradewire.digest"]


def test_equal_fits_have_equal_texts_however_they_were_written() -> None:
    one, two = (
        calibration(metric="correctness", threshold=None, fit=text)
        for text in ('{"b": 1.0, "a": []}', '{"a":[],\n"b":1.0}')
    )
    assert one == two


def test_one_for_another_version_of_the_metric_stands_beside_it() -> None:
    """So the catalog's, which a release brings with a new version, counts beside what a user fitted for the old one."""
    old, new = calibration(origin="user"), calibration(metric_version=2)
    assert merge((new,), (old,)) == (old, new)
    assert calibrations_in(to_parameters((old, new))).readable == (old, new)


def test_what_was_fitted_under_a_former_name_of_the_metric_is_found_under_that_of_now() -> None:
    fitted = calibration(metric="correctness", threshold=None, fit='{"a":1}')
    (text,) = to_parameters((fitted,)).values()
    former = {"calibration.calibrated": text.replace("correctness", "calibrated")}
    assert calibrations_in(former).readable == (fitted,)
    (broken,) = calibrations_in({"calibration.calibrated": "?"}).unreadable
    assert broken.metric == "correctness"


RECORD = json.loads(to_parameters((SMILE,))["calibration.smile"])[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "format is 2"),
        ({"colour": 1}, "unknown colour"),
        ({"threshold": "0.5"}, "threshold should be float, not '0.5'"),
        ({"threshold": 10**400}, "too large"),
        ({"threshold": None}, "a threshold or a fit"),
        ({"fit": {}}, "a threshold or a fit"),
        ({"fit": [1], "threshold": None}, "a JSON object"),
        ({"sentence_weight": 2}, "0 to 1"),
        ({"parameters": [1]}, "parameters should be a table"),
        ({"parameters": {"preset": 1}}, "parameters: 1: 2 should be str"),
        ({"figures": {"x": "y"}}, "figures"),
        ({"rows": -1}, "rows"),
        ({"rows": True}, "rows"),
        ({"metric_version": 0}, "metric_version"),
        ({"metric": "../up"}, "a name"),
        ({"model_digest": "12"}, "64 lower-case hex"),
        ({"origin": "nobody"}, "origin should be one of"),
    ],
)
def test_what_is_no_calibration_is_named(change: dict[str, Any], says: str) -> None:
    (found,) = calibrations_in({"calibration.smile": json.dumps([RECORD | change])}).unreadable
    assert says in found.reason
    assert found.told.startswith("what was fitted for smile cannot be read (gradewire.calibration.smile: ")
    assert found.told.endswith("take it away with gradewire calibrate --undo --model NAME --metric smile")


@pytest.mark.parametrize(
    "text",
    ["", "{", "1", '"x"', "[1]", "[[]]", "[" * 100_000, '[{"format": NaN}]', '[{"format":1,"' + "x" * 10**6 + '":1}]'],
)
def test_what_is_no_list_of_records_is_kept_aside_and_the_others_are_read(text: str) -> None:
    sbert = calibration(metric="sbert", parameters=(), sentence_weight=None)
    facts = to_parameters((sbert,)) | {"calibration.smile": text}
    found = calibrations_in(facts)
    assert found.readable == (sbert,)
    (unreadable,) = found.unreadable
    assert (unreadable.metric, unreadable.text) == ("smile", text)
    assert len(unreadable.told) < 500
    assert to_parameters(found.readable, found.unreadable) == facts


def test_it_is_told_in_one_line() -> None:
    assert SMILE.told == (
        "fitted for smile/1 (preset=v1,synthetic=none): threshold 0.61, sentence_weight 0.25; "
        "catalog: fitted on seven rows, SHA-256 aaaaaaaaaaaa, 2026-11-22"
    )
