"""Serve a judge in Triton's Python backend. `gradewire models build` copies this file to a judge's ``1/model.py``.

Triton runs the file in an environment with NumPy and ONNX Runtime, but without gradewire. So the modules that it
imports are copied with it.
"""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import triton_python_backend_utils as pb_utils

from gradewire_models.judges.cores import wire
from gradewire_models.judges.cores.batches import BatchedCore, BatchLimits
from gradewire_models.judges.cores.opening import open_core
from gradewire_models.judges.cores.rows import Core, CoreError, RowResult

_LONGEST_ANSWER_TOKENS = 4096
"""The longest prompt with an answer that a server asks for, see `max_context_tokens` of its embedded judge."""
_WARM_UP = wire.Question((), (0,))


class TritonPythonModel:
    """A judge. Triton calls `initialize` once and `execute` for every dynamic batch."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the graph, and run it once.

        Args:
            args: Values from Triton: ``model_config`` (JSON), ``model_repository`` (the judge's directory),
                ``model_instance_kind`` and ``model_instance_device_id``.

        Raises:
            pb_utils.TritonModelException: A file is missing or was changed, or the graph does not run.
        """
        config = json.loads(args["model_config"])
        given = {name.removeprefix("gradewire."): value["string_value"] for name, value in config["parameters"].items()}
        directory = Path(args["model_repository"])
        self._vocabulary, self._max_tokens = int(given["vocabulary"]), int(given["max_tokens"])
        self._fingerprint = wire.fingerprint_of(given["digest"])
        graph = directory / given["graph"]
        self._tokenizer = _checked(directory / "tokenizer.json", given["tokenizer_sha256"])
        _checked(graph, given["graph_sha256"])
        device = f"cuda:{args['model_instance_device_id']}" if args["model_instance_kind"] == "GPU" else "cpu"
        try:
            core: Core = open_core(graph, given["form"], threads=int(given["threads"]), device=device)
            limits = BatchLimits(
                max_run_tokens=int(given["max_run_tokens"]),
                # Keep as many answers as fit into a batch, because all of them may be written at the same time.
                max_begun_tokens=max(1, config["max_batch_size"]) * min(self._max_tokens, _LONGEST_ANSWER_TOKENS),
                ends=frozenset(map(int, given.get("eos_ids", "").split())),
            )
            self._core = BatchedCore(core, limits)
            # The first run reads all weights, so no caller has to wait for the disk.
            (result,) = self._core.answer([_WARM_UP])
        except CoreError as error:
            raise pb_utils.TritonModelException(str(error)) from error
        if isinstance(result, CoreError):
            raise pb_utils.TritonModelException(f"the judge cannot compute: {result}")

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer the requests in a dynamic batch."""
        responses: list[Any] = [None] * len(requests)
        questions: list[tuple[int, wire.Question]] = []
        for place, request in enumerate(requests):
            if request.is_cancelled():
                responses[place] = _failure("cancelled by the client", pb_utils.TritonError.CANCELLED)
            elif _asks_for_tokenizer(request):
                responses[place] = self._response(request, {wire.TOKENIZER: np.array([[self._tokenizer]], np.object_)})
            else:
                try:
                    questions.append((place, self._question(request)))
                except wire.QuestionError as error:
                    responses[place] = _failure(str(error), pb_utils.TritonError.INVALID_ARG)
        answers = self._core.answer([question for _, question in questions])
        for (place, _), answer in zip(questions, answers, strict=True):
            responses[place] = self._answered(requests[place], answer)
        return responses

    def _question(self, request: Any) -> wire.Question:
        tensors = {
            name: pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in (wire.TOKENS, wire.LENGTHS)
        }
        return wire.from_tensors(tensors, vocabulary=self._vocabulary, max_tokens=self._max_tokens)

    def _answered(self, request: Any, answer: RowResult | CoreError) -> Any:
        if isinstance(answer, CoreError):
            return _failure(str(answer), pb_utils.TritonError.INTERNAL)
        values = {
            wire.PROBABILITIES: np.array([answer.probabilities], np.float64),
            wire.MASS: np.array([[-1.0 if answer.mass is None else answer.mass]], np.float64),
            wire.NEXT_ID: np.array([[answer.next_token]], np.int64),
        }
        return self._response(request, values)

    def _response(self, request: Any, values: Mapping[str, Any]) -> Any:
        every = {**values, wire.FINGERPRINT: np.array([[self._fingerprint]], np.int64)}
        wanted = [name for name in request.requested_output_names() if name in every]
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, every[name]) for name in wanted])


def _asks_for_tokenizer(request: Any) -> bool:
    # A client that names no outputs asks for all of them, and wants an answer.
    wanted = set(request.requested_output_names())
    return wire.TOKENIZER in wanted and wanted <= {*wire.TOKENIZER_OUTPUTS}


def _checked(path: Path, sha256: str) -> bytes:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise pb_utils.TritonModelException(f"{path} was changed after the build. Run: gradewire models build NAME")
    return content


def _failure(message: str, code: Any) -> Any:
    return pb_utils.InferenceResponse([], pb_utils.TritonError(message, code))
