"""Write Triton's settings for an encoder: batching, queue, copies, devices, warm-up. They never change a vector.

https://github.com/triton-inference-server/server/blob/main/docs/user_guide/model_configuration.md describes the fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from gradewire_models.repository._model_config_pb2 import (
    TYPE_INT64,
    ModelConfig,
    ModelDynamicBatching,
    ModelInstanceGroup,
    ModelOptimizationPolicy,
    ModelParameter,
    ModelQueuePolicy,
    ModelResponseCache,
    ModelVersionPolicy,
    ModelWarmup,
)

Accelerator = Literal["none", "cuda", "tensorrt"]
Precision = Literal["fp32", "fp16"]

PREFERRED_BATCH_SIZES = (32, 64, 128)
MAX_QUEUE_SIZE = 1024
DEFAULT_TIMEOUT_US = 30_000_000
WARMUP_FOLDER = "warmup"
THREADS_PARAMETER = "intra_op_thread_count"

# Two copies with few threads keep cores busier than one copy with many threads, because a run waits for its slowest
# thread. On 2 busy cores, two copies halved the time for 64 texts.
CPU_INSTANCES = 2

# Maximum rows in a batch. GPUs have a lower limit because TensorRT plans memory for the largest batch of the longest
# texts.
MAX_BATCH_SIZES: Mapping[Accelerator, int] = {"none": 1024, "cuda": 256, "tensorrt": 256}

# A directory on Triton's machine, which must exist and be writable for Triton's user.
ENGINE_CACHE = "/var/cache/gradewire/tensorrt"
WORKSPACE_BYTES = 4 << 30

# Rows and maximum tokens of each warm-up request.
_WARMUP_SHAPES = {"short": (1, 8), "long": (8, 64)}


@dataclass(frozen=True, slots=True)
class Serving:
    """Triton's settings for a model.

    Attributes:
        instances: Number of copies; for GPU models, the number on each GPU. Each copy keeps the graph in memory.
        threads: Threads for a copy's operators on a CPU. 0 means the backend's default: NVIDIA's backend uses all cores
            for each copy, and the emulated backend gives each copy an equal share of the cores.
        precision: Precision in TensorRT; without TensorRT, the graph determines the precision.
    """

    instances: int = CPU_INSTANCES
    threads: int = 0
    accelerator: Accelerator = "none"
    precision: Precision = "fp32"


@dataclass(frozen=True, slots=True)
class Copies:
    """The number of copies that run concurrently, and each copy's number of threads on a CPU.

    None keeps an existing model's value. A new model gets 2 copies on CPUs or 1 on each GPU, and 0 threads, which means
    the backend's default.
    """

    instances: int | None = None
    threads: int | None = None


AS_IT_IS = Copies()


def serving_of_class(numeric_class: str, copies: Copies = AS_IT_IS) -> Serving:
    """Return Triton's settings for a numeric class, such as ``"fp16-cuda"``; None in `copies` means the default.

    Raises:
        ValueError: The device or precision is unknown.
    """
    if numeric_class.endswith("-cpu"):
        return Serving(instances=copies.instances or CPU_INSTANCES, threads=copies.threads or 0)
    for accelerator in get_args(Accelerator)[1:]:
        for precision in get_args(Precision):
            if numeric_class == f"{precision}-{accelerator}":
                return Serving(copies.instances or 1, copies.threads or 0, accelerator, precision)
    raise ValueError(f"unknown numeric class {numeric_class!r}")


def describe_serving(config: ModelConfig, serving: Serving, *, max_tokens: int, engine_prefix: str) -> None:
    """Write `serving` into `config`, which must already contain the model's inputs and name.

    `engine_prefix` must be unique to the graph, because TensorRT loads any engine file with this prefix.
    """
    config.max_batch_size = MAX_BATCH_SIZES[serving.accelerator]
    config.version_policy.CopyFrom(ModelVersionPolicy(latest=ModelVersionPolicy.Latest(num_versions=1)))
    config.dynamic_batching.CopyFrom(_batching())
    shapes = _warmup_shapes(max_tokens)
    config.model_warmup.extend(_warmup(name, *shape) for name, shape in shapes.items())
    # gradewire has its own cache, with the model's digest in the keys.
    config.response_cache.CopyFrom(ModelResponseCache(enable=False))
    if serving.accelerator == "none":
        # By default, Triton uses a GPU if it finds one, but a GPU's vectors differ from the CPU's with the same digest.
        config.instance_group.append(ModelInstanceGroup(count=serving.instances, kind=ModelInstanceGroup.KIND_CPU))
    else:
        config.instance_group.append(ModelInstanceGroup(count=serving.instances, kind=ModelInstanceGroup.KIND_GPU))
        options = _accelerator_options(serving, config.max_batch_size, max_tokens, engine_prefix)
        accelerators = ModelOptimizationPolicy.ExecutionAccelerators
        accelerator = accelerators.Accelerator(name=serving.accelerator, parameters=options)
        config.optimization.CopyFrom(
            ModelOptimizationPolicy(execution_accelerators=accelerators(gpu_execution_accelerator=[accelerator]))
        )
    for name, value in _session_options(serving).items():
        config.parameters[name].CopyFrom(ModelParameter(string_value=value))


def warmup_files(max_tokens: int) -> dict[str, bytes]:
    """Return the warm-up requests' attention masks as files, by path in the model's directory.

    Triton can fill a mask only with zeros, which mean no text, or with random values.
    """
    return {
        f"{WARMUP_FOLDER}/{_mask_file(name)}": (1).to_bytes(8, "little") * tokens
        for name, (_, tokens) in _warmup_shapes(max_tokens).items()
    }


def write_warmup(directory: Path, max_tokens: int) -> None:
    """Write the warm-up requests' attention masks into a model's `directory`.

    Raises:
        OSError: A file is not writable.
    """
    (directory / WARMUP_FOLDER).mkdir(exist_ok=True)
    for name, content in warmup_files(max_tokens).items():
        (directory / name).write_bytes(content)


def _warmup_shapes(max_tokens: int) -> dict[str, tuple[int, int]]:
    # A warm-up text beyond the model's limit would stop the server.
    return {name: (batch, min(tokens, max_tokens)) for name, (batch, tokens) in _WARMUP_SHAPES.items()}


def _mask_file(warmup: str) -> str:
    return f"{warmup}_attention_mask"


def _batching() -> ModelDynamicBatching:
    policy = ModelQueuePolicy(
        timeout_action=ModelQueuePolicy.REJECT,
        default_timeout_microseconds=DEFAULT_TIMEOUT_US,
        allow_timeout_override=True,
        max_queue_size=MAX_QUEUE_SIZE,
    )
    # Batching needs no delay, because requests gather while an earlier batch runs. A single request never waits.
    return ModelDynamicBatching(preferred_batch_size=PREFERRED_BATCH_SIZES, default_queue_policy=policy)


def _warmup(name: str, batch: int, tokens: int) -> ModelWarmup:
    ids = ModelWarmup.Input(data_type=TYPE_INT64, dims=[tokens], zero_data=True)
    mask = ModelWarmup.Input(data_type=TYPE_INT64, dims=[tokens], input_data_file=_mask_file(name))
    return ModelWarmup(name=name, batch_size=batch, inputs={"input_ids": ids, "attention_mask": mask}, count=1)


def _session_options(serving: Serving) -> dict[str, str]:
    # ONNX Runtime would keep a memory plan for every input shape, and our shapes are many and small.
    return {
        "enable_mem_pattern": "0",
        "inter_op_thread_count": "1",
        THREADS_PARAMETER: str(serving.threads),
    }


def _accelerator_options(serving: Serving, max_batch: int, max_tokens: int, engine_prefix: str) -> dict[str, str]:
    if serving.accelerator == "cuda":
        # TensorFloat-32 keeps only 10 of fp32's 23 mantissa bits.
        return {"use_tf32": "0"} if serving.precision == "fp32" else {}
    return {
        "precision_mode": serving.precision.upper(),
        "max_workspace_size_bytes": str(WORKSPACE_BYTES),
        "trt_layer_norm_fp32_fallback": "1",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": ENGINE_CACHE,
        "trt_engine_cache_prefix": engine_prefix,
        "trt_profile_min_shapes": _shapes(1, 1),
        "trt_profile_opt_shapes": _shapes(min(64, max_batch), min(16, max_tokens)),
        "trt_profile_max_shapes": _shapes(max_batch, max_tokens),
    }


def _shapes(batch: int, tokens: int) -> str:
    return ",".join(f"{name}:{batch}x{tokens}" for name in ("input_ids", "attention_mask"))
