"""What was fitted for a model: written into its description and read back."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines.calibrations import SMILE, calibration, stored_calibrations
from tests.support.examples import example_count
from tests.support.models.tiny_models import Package

from gradewire_models.catalog.calibration import StoredCalibration, fitting, merge, of_users
from gradewire_models.catalog.entries import Bertscore
from gradewire_models.repository.config import (
    ModelFiles,
    bertscore_in,
    calibrations_in,
    make_config,
    read_config,
    to_parameters,
    write_config,
)
from gradewire_models.repository.digest import DigestParts, FileRecord
from gradewire_models.repository.serving import Serving

FILES = ModelFiles(FileRecord(7, "a" * 64), FileRecord(8, "b" * 64), fingerprint=-9)
DIGEST = DigestParts("a" * 64, "b" * 64, 150, "mean", "", "fp32-cpu").digest()


def test_tensors_are_explicit(bert: Package, tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    write_config(path, make_config(bert.model.metadata, FILES, Serving()))
    config, _ = read_config(path)
    assert (config.name, config.backend, config.max_batch_size) == ("tiny-bert", "onnxruntime", 1024)
    assert [(tensor.name, list(tensor.dims)) for tensor in config.input] == [
        ("input_ids", [-1]),
        ("attention_mask", [-1]),
    ]
    assert [(tensor.name, list(tensor.dims)) for tensor in config.output] == [
        ("sentence_embedding", [24]),
        ("token_embeddings", [-1, 24]),
        ("token_embeddings_layer_1", [-1, 24]),
        ("token_embeddings_layer_2", [-1, 24]),
        ("model_fingerprint", [1]),
    ]


def test_facts_stand_in_the_parameters(bert: Package, tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    write_config(path, make_config(replace(bert.model.metadata, calibrations=(SMILE,)), FILES, Serving()))
    _, facts = read_config(path)
    expected = {
        "digest": DIGEST,
        "dims": "24",
        "fingerprint": "-9",
        "licence": "Apache-2.0",
        "max_tokens": "150",
        "numeric_class": "fp32-cpu",
        "onnx_bytes": "7",
        "pooling": "mean",
        "source": "tiny-single==1.0",
    }
    assert {key: facts[key] for key in expected} == expected


def test_a_file_is_parsed_once_and_each_reader_has_a_configuration_of_its_own(
    bert: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, parsed = tmp_path / "config.pbtxt", []
    parse = text_format.Parse
    monkeypatch.setattr(
        text_format, "Parse", lambda text, *how, **more: parsed.append(text) or parse(text, *how, **more)
    )
    write_config(path, make_config(bert.model.metadata, FILES, Serving(threads=3)))
    first, _ = read_config(path)
    first.max_batch_size = 7
    assert read_config(path)[0].max_batch_size == 1024
    assert len(parsed) == 1
    write_config(path, make_config(bert.model.metadata, FILES, Serving(threads=4)))
    assert read_config(path) != (first, read_config(path)[1])
    assert len(parsed) == 2
    path.write_text("no configuration {", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(ValueError, match="is not a model configuration"):
            read_config(path)


def test_what_bertscore_has_to_know_is_read_back(bert: Package, tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    measured = Bertscore(2, {1: (0.1, 0.2, 1 / 3), 2: (-0.5, 0.0, 1e-7)})
    write_config(path, make_config(replace(bert.model.metadata, bertscore=measured), FILES, Serving()))
    assert bertscore_in(read_config(path)[1]) == measured
    write_config(path, make_config(bert.model.metadata, FILES, Serving()))
    assert bertscore_in(read_config(path)[1]) is None
    with pytest.raises(ValueError, match="unpack"):
        bertscore_in({"bertscore_layer": "2", "bertscore_baseline_2": "0.5"})


@given(st.text())
def test_any_prefix_survives(bert: Package, prefix: str) -> None:
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "config.pbtxt"
        write_config(path, make_config(replace(bert.model.metadata, prefix=prefix), FILES, Serving()))
        assert read_config(path)[1]["prefix"] == prefix


def test_what_tritons_users_add_is_skipped(bert: Package, tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    write_config(path, make_config(bert.model.metadata, FILES, Serving()))
    before = read_config(path)
    with path.open("a") as file:
        file.write(
            """
            instance_group [ { count: 2, kind: KIND_CPU, rate_limiter { priority: 1 } } ]
            optimization { graph { level: 1 } eager_batching: true }
            model_transaction_policy: { decoupled: false }
            model_warmup [ { name: "one", inputs { key: "input_ids" value { dims: [ 4 ] zero_data: true } } } ]
            parameters { key: "foreign" value { string_value: "1" } }
            """
        )
    config, facts = read_config(path)
    assert facts == before[1]
    assert list(config.output) == list(before[0].output)


@pytest.mark.parametrize("text", ["{", "name: 7", "\udcff"])
def test_what_is_not_a_configuration_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.pbtxt"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"config|utf-8"):
        read_config(path)


@settings(max_examples=example_count(60), deadline=None)
@given(found=st.lists(stored_calibrations(), max_size=4))
def test_what_is_written_is_read_back(bert: Package, found: list[StoredCalibration]) -> None:
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "config.pbtxt"
        # Fits of other models are not written.
        digest = make_config(bert.model.metadata, FILES, Serving()).parameters["gradewire.digest"].string_value
        kept = merge([replace(each, origin="catalog", model_digest=digest) for each in found], ())
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
    # A variant has its base's thresholds from the catalog, but not its fits.
    fits = [calibration(threshold=None, fit="{}", origin="catalog", model_digest=each) for each in (digest, "f" * 64)]
    assert fitting((SMILE, elsewhere, *fits), digest) == (SMILE, fits[0])
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
        ({"colour": 1}, "colour is unknown"),
        ({"threshold": "0.5"}, "threshold must be a valid number, not '0.5'"),
        ({"threshold": 10**400}, "threshold must be a finite number"),
        ({"threshold": None}, "either a threshold or a fit"),
        ({"fit": {}}, "either a threshold or a fit"),
        ({"fit": [1], "threshold": None}, "fit must be a JSON object"),
        ({"sentence_weight": 2}, "sentence_weight must be less than or equal to 1, not 2"),
        ({"parameters": [1]}, "parameters must be a table"),
        ({"parameters": {"preset": 1}}, "parameters must be a valid string, not 1"),
        ({"figures": {"x": "y"}}, "figures"),
        ({"rows": -1}, "rows"),
        ({"rows": True}, "rows"),
        ({"metric_version": 0}, "metric_version"),
        ({"metric": "../up"}, "metric must be a name"),
        ({"model_digest": "12"}, "64 lower-case hex"),
        ({"origin": "nobody"}, "origin must be 'catalog' or 'user'"),
    ],
)
def test_what_is_no_calibration_is_named(change: dict[str, Any], says: str) -> None:
    (found,) = calibrations_in({"calibration.smile": json.dumps([RECORD | change])}).unreadable
    assert says in found.reason
    assert found.summary.startswith("the calibration for smile cannot be read (gradewire.calibration.smile: ")
    assert found.summary.endswith("remove it: gradewire calibrate --undo --model NAME --metric smile")


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
    assert len(unreadable.summary) < 500
    assert to_parameters(found.readable, found.unreadable) == facts


def test_it_is_told_in_one_line() -> None:
    assert SMILE.summary == (
        "fitted for smile/1 (preset=v1,synthetic=none): threshold 0.61, sentence_weight 0.25; "
        "catalog: fitted on seven rows, SHA-256 aaaaaaaaaaaa, 2026-11-22"
    )
