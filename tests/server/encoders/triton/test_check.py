"""A model in Triton that is not the one described here is refused, and both are named."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gradewire_models.bf16 import BF16_CLASS
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.served import ServedModel, served_from_file
from gradewire_server.domain.result import Status
from gradewire_server.encoders.source import NotNowError, UnusableError
from gradewire_server.encoders.triton.check import check_arithmetic, check_catalog, check_served

MODEL = "all-MiniLM-L6-v2"


@pytest.fixture
def model(minilm: Path, tmp_path: Path) -> BuiltModel:
    (tmp_path / MODEL).mkdir()
    for name in ("config.pbtxt", "tokenizer.json"):
        shutil.copy(minilm / MODEL / name, tmp_path / MODEL)
    return load_built(tmp_path, MODEL, graph=False)


def test_what_equals_the_description_is_trusted(model: BuiltModel) -> None:
    check_served(model, served_from_file(model.directory / "config.pbtxt"))
    check_catalog(model)


def test_a_model_in_bf16_is_for_the_embedded_engine(model: BuiltModel) -> None:
    check_arithmetic(model)
    with pytest.raises(UnusableError, match=f"in bf16 .* not in Triton: .*--backend embedded, or use {MODEL} here"):
        check_arithmetic(replace(model, numeric_class=BF16_CLASS, base=MODEL))


def facts(name: str, value: str) -> Callable[[ServedModel], ServedModel]:
    return lambda served: replace(served, facts={**served.facts, name: value})


def tensor(name: str, value: str) -> Callable[[ServedModel], ServedModel]:
    return lambda served: replace(served, tensors={**served.tensors, name: value})


def runs_on(*kinds: str) -> Callable[[ServedModel], ServedModel]:
    return lambda served: replace(served, kinds=frozenset(kinds))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (facts("digest", "f" * 64), ["digest", "f" * 64, "{digest}"]),
        (facts("fingerprint", "7"), ["fingerprint", "7 in Triton", "{fingerprint}"]),
        (lambda served: replace(served, facts={}), ["digest none", "{digest}"]),
        (
            tensor("output sentence_embedding", "TYPE_FP32[768]"),
            ["output sentence_embedding", "TYPE_FP32[768]", "TYPE_FP32[384]"],
        ),
        (tensor("output sentence_embedding", "TYPE_FP16[384]"), ["TYPE_FP16[384]", "TYPE_FP32[384]"]),
        (tensor("input input_ids", "TYPE_INT32[-1]"), ["input input_ids", "TYPE_INT32[-1]", "TYPE_INT64[-1]"]),
        (tensor("input token_type_ids", "TYPE_INT64[-1]"), ["input token_type_ids", "nothing in the model repository"]),
        (
            lambda served: replace(served, tensors={k: v for k, v in served.tensors.items() if "ids" not in k}),
            ["input input_ids", "nothing in Triton"],
        ),
        (lambda served: replace(served, max_batch_size=3), ["batches of 3 in Triton"]),
        (runs_on("KIND_GPU"), ["runs on KIND_GPU", "fp32-cpu means KIND_CPU", f"gradewire models build {MODEL}"]),
        (runs_on("KIND_CPU", "KIND_GPU"), ["runs on KIND_CPU and KIND_GPU"]),
        (runs_on("KIND_AUTO"), ["runs on KIND_AUTO"]),
        (runs_on(), ["runs on no device"]),
        (lambda served: replace(served, accelerators="openvino"), ["the accelerators openvino in Triton, none in"]),
    ],
)
def test_any_difference_is_an_error_that_names_both(
    model: BuiltModel, change: Callable[[ServedModel], ServedModel], words: list[str]
) -> None:
    served = change(served_from_file(model.directory / "config.pbtxt"))
    with pytest.raises(NotNowError) as caught:
        check_served(model, served)
    assert caught.value.failure.status is Status.MODEL_UNAVAILABLE
    for word in words:
        word = word.format(digest=model.digest, fingerprint=model.fingerprint)  # noqa: PLW2901 - filled in
        assert word in caught.value.failure.message
    assert str(model.directory) not in caught.value.failure.message, "it goes to remote callers"


def test_a_model_for_gpus_is_not_taken_from_a_cpu(model: BuiltModel) -> None:
    served = served_from_file(model.directory / "config.pbtxt")
    for_gpus = replace(model, numeric_class="fp32-cuda")
    check_served(for_gpus, runs_on("KIND_GPU")(served))
    with pytest.raises(NotNowError) as caught:
        check_served(for_gpus, served)
    assert "runs on KIND_CPU" in caught.value.failure.message


def test_a_digest_that_is_not_the_catalogs_is_an_error_that_names_both(model: BuiltModel) -> None:
    with pytest.raises(NotNowError) as caught:
        check_catalog(replace(model, digest="e" * 64))
    message = caught.value.failure.message
    assert "e" * 64 in message
    assert load_catalog()[MODEL].digest in message
    assert f"gradewire models build {MODEL}" in message


def test_a_model_that_the_catalog_does_not_list_is_not_compared_with_it(model: BuiltModel) -> None:
    check_catalog(replace(model, name="our-own", digest="e" * 64))
