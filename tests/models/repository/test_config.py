from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.calibrations import SMILE
from tests.support.models.tiny_models import Package

from gradewire_models.catalog.metadata import Bertscore
from gradewire_models.repository.config import ModelFiles, bertscore_in, make_config, read_config, write_config
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
