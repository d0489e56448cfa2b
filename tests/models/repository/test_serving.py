"""What Triton is asked for; that the real server takes it is seen in tests/triton."""

from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf import text_format
from tests.support.models.tiny_models import Package
from tritonclient.grpc import model_config_pb2

from gradewire_models.repository.config import ModelFiles, make_config, write_config
from gradewire_models.repository.digest import FileRecord
from gradewire_models.repository.serving import Copies, Serving, serving_of_class, write_warmup

FILES = ModelFiles(FileRecord(7, "a" * 64), FileRecord(8, "b" * 64), fingerprint=-9)


def write(tmp_path: Path, bert: Package, serving: Serving) -> model_config_pb2.ModelConfig:
    """The file as Triton's own message reads it: every name and number has to be one of Triton's."""
    path = tmp_path / "config.pbtxt"
    write_config(path, make_config(bert.model.metadata, FILES, serving))
    return text_format.Parse(path.read_text(), model_config_pb2.ModelConfig())


def test_requests_gather_and_never_wait_for_ever(tmp_path: Path, bert: Package) -> None:
    batching = write(tmp_path, bert, Serving()).dynamic_batching
    assert list(batching.preferred_batch_size) == [32, 64, 128]
    assert batching.max_queue_delay_microseconds == 0
    policy = batching.default_queue_policy
    assert policy.timeout_action == model_config_pb2.ModelQueuePolicy.REJECT
    assert policy.allow_timeout_override
    assert policy.default_timeout_microseconds == 30_000_000
    assert policy.max_queue_size == 1024


def test_the_newest_version_is_served_and_answers_are_not_kept(tmp_path: Path, bert: Package) -> None:
    config = write(tmp_path, bert, Serving())
    assert config.version_policy.latest.num_versions == 1
    assert not config.response_cache.enable


def test_a_cpu_model_stays_on_cpus_where_there_are_gpus(tmp_path: Path, bert: Package) -> None:
    config = write(tmp_path, bert, Serving(instances=3, threads=2))
    (group,) = config.instance_group
    assert (group.count, group.kind) == (3, model_config_pb2.ModelInstanceGroup.KIND_CPU)
    assert not config.HasField("optimization")
    assert config.max_batch_size == 1024
    parameters = {name: value.string_value for name, value in config.parameters.items()}
    assert parameters["intra_op_thread_count"] == "2"
    assert parameters["inter_op_thread_count"] == "1"
    assert parameters["enable_mem_pattern"] == "0"


def test_warm_up_runs_texts_not_padding(tmp_path: Path, bert: Package) -> None:
    warmups = write(tmp_path, bert, Serving()).model_warmup
    write_warmup(tmp_path, bert.model.max_tokens)
    assert [(warmup.name, warmup.batch_size) for warmup in warmups] == [("short", 1), ("long", 8)]
    for warmup in warmups:
        ids, mask = warmup.inputs["input_ids"], warmup.inputs["attention_mask"]
        assert ids.zero_data
        assert ids.dims == mask.dims
        assert mask.dims[0] == {"short": 8, "long": 64}[warmup.name]
        content = (tmp_path / "warmup" / mask.input_data_file).read_bytes()
        assert content == b"\1\0\0\0\0\0\0\0" * mask.dims[0]


@pytest.mark.parametrize(("max_tokens", "tokens"), [(40, [8, 40]), (5, [5, 5]), (64, [8, 64])])
def test_warm_up_is_no_longer_than_the_models_texts(
    tmp_path: Path, bert: Package, max_tokens: int, tokens: list[int]
) -> None:
    config = make_config(replace(bert.model.metadata, max_tokens=max_tokens), FILES, Serving())
    write_warmup(tmp_path, max_tokens)
    masks = [warmup.inputs["attention_mask"] for warmup in config.model_warmup]
    assert [list(mask.dims) for mask in masks] == [[number] for number in tokens]
    assert [(tmp_path / "warmup" / mask.input_data_file).stat().st_size for mask in masks] == [8 * n for n in tokens]


def test_cuda_keeps_to_the_arithmetic_of_its_name(tmp_path: Path, bert: Package) -> None:
    for precision, options in (("fp32", {"use_tf32": "0"}), ("fp16", {})):
        config = write(tmp_path, bert, Serving(accelerator="cuda", precision=precision))
        (accelerator,) = config.optimization.execution_accelerators.gpu_execution_accelerator
        assert (accelerator.name, dict(accelerator.parameters)) == ("cuda", options)
        assert [group.kind for group in config.instance_group] == [model_config_pb2.ModelInstanceGroup.KIND_GPU]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_tensorrt_plans_for_every_batch_triton_may_make(tmp_path: Path, bert: Package, precision: str) -> None:
    config = write(tmp_path, bert, Serving(accelerator="tensorrt", precision=precision))  # type: ignore[arg-type]
    (accelerator,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    options = dict(accelerator.parameters)
    assert (accelerator.name, options["precision_mode"]) == ("tensorrt", precision.upper())
    assert options["trt_profile_min_shapes"] == "input_ids:1x1,attention_mask:1x1"
    largest = f"{config.max_batch_size}x150"
    assert options["trt_profile_max_shapes"] == f"input_ids:{largest},attention_mask:{largest}"
    assert options["trt_engine_cache_enable"] == "1"


def test_an_engine_file_is_never_taken_for_another_graphs(tmp_path: Path, bert: Package) -> None:
    prefixes = set()
    for sha256 in ("a" * 64, "c" * 64):
        path = tmp_path / "config.pbtxt"
        files = replace(FILES, onnx=FileRecord(7, sha256))
        write_config(path, make_config(bert.model.metadata, files, Serving(accelerator="tensorrt")))
        config = text_format.Parse(path.read_text(), model_config_pb2.ModelConfig())
        (accelerator,) = config.optimization.execution_accelerators.gpu_execution_accelerator
        prefixes.add(accelerator.parameters["trt_engine_cache_prefix"])
    assert len(prefixes) == 2


@pytest.mark.parametrize(
    ("numeric_class", "serving"),
    [
        ("fp32-cpu", Serving(instances=3, threads=2)),
        ("int8-rows-cpu", Serving(instances=3, threads=2)),
        ("fp16-cuda", Serving(3, 2, "cuda", "fp16")),
        ("fp32-cuda", Serving(3, 2, "cuda", "fp32")),
        ("fp16-tensorrt", Serving(3, 2, "tensorrt", "fp16")),
    ],
)
def test_an_arithmetic_says_what_a_model_runs_on(numeric_class: str, serving: Serving) -> None:
    assert serving_of_class(numeric_class, Copies(3, 2)) == serving


@pytest.mark.parametrize("numeric_class", ["fp8-cuda", "fp16-rocm", "cuda", ""])
def test_an_arithmetic_of_no_release_is_refused(numeric_class: str) -> None:
    with pytest.raises(ValueError, match="unknown numeric class"):
        serving_of_class(numeric_class)
