"""What ONNX Runtime's CUDA provider is told.

Field by field: https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html
"""

from gradewire_server.settings.compute import GpuConfig


def provider_options(config: GpuConfig, index: int, *, precision: str) -> dict[str, str]:
    """Options of a session.

    Args:
        config: What users set.
        index: Number of the GPU, from 0.
        precision: ``"fp32"`` or ``"fp16"``, as the model's numeric class begins.
    """
    options = {
        "device_id": str(index),
        # Shapes are few and known: memory grows by what they need, not to the next power of two.
        "arena_extend_strategy": "kSameAsRequested",
        # One stream for copies and kernels: a run never reads inputs that are still on their way.
        "do_copy_in_default_stream": "1",
        # TensorFloat-32 keeps 10 bits of a float's 23: that is another arithmetic than fp32.
        "use_tf32": "0" if precision == "fp32" else "1",
        "enable_cuda_graph": str(int(config.cuda_graphs)),
    }
    if config.memory_limit_bytes:
        options["gpu_mem_limit"] = str(config.memory_limit_bytes)
    return options
