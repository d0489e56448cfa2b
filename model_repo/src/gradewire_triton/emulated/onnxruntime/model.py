# noqa: INP001 - Triton loads this file by its path
"""Run ONNX models in Triton's Python backend, in place of NVIDIA's ONNX Runtime backend.

Triton loads this file from --backend-directory for every model whose config.pbtxt contains ``backend: "onnxruntime"``.
Each model instance is a process in the environment of `gradewire_triton.environment`, so this file cannot import
gradewire.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # see gradewire_models.runtime

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils
from numpy.typing import NDArray

GRAPH_FILE = "model.onnx"

Tensors = dict[str, NDArray[Any]]


class TritonPythonModel:
    """An instance of a model version. Triton calls `initialize` once and `execute` for every dynamic batch."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the graph.

        Args:
            args: Values from Triton: ``model_config`` (JSON), ``model_repository`` (the model's directory),
                ``model_version``.

        Raises:
            pb_utils.TritonModelException: The configuration does not match the graph.
        """
        config = json.loads(args["model_config"])
        path = Path(args["model_repository"]) / args["model_version"] / GRAPH_FILE
        self._session = onnxruntime.InferenceSession(path, _options(config), providers=["CPUExecutionProvider"])
        self._inputs = tuple(tensor["name"] for tensor in config["input"])
        _compare("inputs", self._inputs, [tensor.name for tensor in self._session.get_inputs()])
        outputs = {tensor.name for tensor in self._session.get_outputs()}
        missing = [tensor["name"] for tensor in config["output"] if tensor["name"] not in outputs]
        if missing:
            raise pb_utils.TritonModelException(f"the graph has no outputs {missing}; it has {sorted(outputs)}")

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer the requests in a dynamic batch; requests with equal shapes and outputs share a run."""
        responses: list[Any] = [None] * len(requests)
        groups: dict[tuple[Any, ...], list[tuple[int, Tensors]]] = {}
        for index, request in enumerate(requests):
            if request.is_cancelled():
                responses[index] = _failure("cancelled by the client", pb_utils.TritonError.CANCELLED)
                continue
            tensors = {name: pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in self._inputs}
            wanted = tuple(request.requested_output_names())
            groups.setdefault((wanted, *(tensor.shape[1:] for tensor in tensors.values())), []).append((index, tensors))
        for (wanted, *_), members in groups.items():
            answers = self._answer(wanted, [tensors for _, tensors in members])
            for (index, _), answer in zip(members, answers, strict=True):
                responses[index] = answer
        return responses

    def _answer(self, wanted: Sequence[str], members: Sequence[Tensors]) -> list[Any]:
        rows = [len(next(iter(tensors.values()))) for tensors in members]
        try:
            merged = members[0] if len(members) == 1 else _join(members)
            outputs = self._session.run(list(wanted), merged)
        except Exception as error:  # noqa: BLE001 - ONNX Runtime's errors have no common base class
            if len(members) > 1:
                # A request must not fail because of another request in the batch, so run each request alone.
                return [answer for tensors in members for answer in self._answer(wanted, [tensors])]
            return [_failure(str(error), _code(error))]
        parts = [np.split(output, np.cumsum(rows)[:-1]) for output in outputs]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor(name, part) for name, part in zip(wanted, own, strict=True)])
            for own in zip(*parts, strict=True)
        ]


def _options(config: Mapping[str, Any]) -> onnxruntime.SessionOptions:
    given = {name: value["string_value"] for name, value in config.get("parameters", {}).items()}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(given.get("intra_op_thread_count", "0")) or _share_of_cores(config)
    options.inter_op_num_threads = int(given.get("inter_op_thread_count", "0")) or 1
    # Spinning is off by default, as in gradewire's embedded engine (gradewire_server.encoders.local).
    options.add_session_config_entry("session.intra_op.allow_spinning", given.get("intra_op.allow_spinning", "0"))
    options.enable_mem_pattern = given.get("enable_mem_pattern", "0") == "1"
    return options


def _share_of_cores(config: Mapping[str, Any]) -> int:
    # All instances together use each core once; with more threads than cores, runs took a seventh longer.
    instances = sum(int(group["count"]) for group in config["instance_group"])
    return max(1, len(os.sched_getaffinity(0)) // max(1, instances))


def _compare(what: str, configured: Sequence[str], found: Sequence[str]) -> None:
    if sorted(configured) != sorted(found):
        raise pb_utils.TritonModelException(f"config.pbtxt has the {what} {configured}, but the graph has {found}")


def _join(members: Sequence[Tensors]) -> Tensors:
    return {name: np.concatenate([tensors[name] for tensors in members]) for name in members[0]}


def _code(error: Exception) -> Any:
    wrong_input = type(error).__name__ == "InvalidArgument"
    return pb_utils.TritonError.INVALID_ARG if wrong_input else pb_utils.TritonError.INTERNAL


def _failure(message: str, code: Any) -> Any:
    return pb_utils.InferenceResponse([], pb_utils.TritonError(message, code))
