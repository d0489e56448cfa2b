from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.tiny_models import Package

from gradewire_models.config import BuildFacts, read_config, write_config
from gradewire_models.digest import DigestParts

FACTS = BuildFacts(DigestParts("a" * 64, "b" * 64, 150, "mean", "", "fp32-cpu"), -9, onnx_bytes=7, tokenizer_bytes=8)


def test_tensors_are_explicit(bert: Package, tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    write_config(path, bert.model, FACTS)
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
    assert list(config.dynamic_batching.preferred_batch_size) == [32, 64, 128]
    assert config.dynamic_batching.max_queue_delay_microseconds == 500


def test_facts_stand_in_the_parameters(bert: Package, tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    write_config(path, replace(bert.model, smile_calibration=(0.61, 0.25)), FACTS)
    _, facts = read_config(path)
    expected = {
        "digest": FACTS.parts.digest(),
        "dims": "24",
        "fingerprint": "-9",
        "licence": "Apache-2.0",
        "max_tokens": "150",
        "numeric_class": "fp32-cpu",
        "onnx_bytes": "7",
        "pooling": "mean",
        "smile_sentence_weight": "0.25",
        "smile_threshold": "0.61",
        "source": "tiny-single==1.0",
    }
    assert {key: facts[key] for key in expected} == expected


@given(st.text())
def test_any_prefix_survives(bert: Package, prefix: str) -> None:
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "config.pbtxt"
        write_config(path, bert.model, replace(FACTS, parts=replace(FACTS.parts, prefix=prefix)))
        assert read_config(path)[1]["prefix"] == prefix


def test_what_tritons_users_add_is_skipped(bert: Package, tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    write_config(path, bert.model, FACTS)
    before = read_config(path)
    with path.open("a") as file:
        file.write(
            """
            instance_group [ { count: 2, kind: KIND_CPU, rate_limiter { priority: 1 } } ]
            optimization { graph { level: 1 } }
            version_policy: { latest { num_versions: 1 } }
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
