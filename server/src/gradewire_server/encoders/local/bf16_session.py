"""A model's graph in bf16 on OpenVINO: token ids in, vectors out. Called from worker threads, several at a time."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_server.encoders.local.inputs import padded_inputs
from gradewire_server.encoders.run_reader import RunOutput
from gradewire_server.settings.compute import ComputeConfig

_CPU_INFO: Final = Path("/proc/cpuinfo")
_INSTRUCTIONS: Final = frozenset({"avx512_bf16", "amx_bf16"})


class Bf16UnavailableError(Exception):
    """bf16 cannot be had here; the message says why, and what to do."""


class Bf16Session:
    """The graph of one model, compiled.

    Raises:
        Bf16UnavailableError: OpenVINO is not installed, or the processor has no instruction for bf16.
    """

    def __init__(self, model: BuiltModel, compute: ComputeConfig) -> None:
        check_bf16()
        import openvino  # noqa: PLC0415 - an extra that others need not have

        core = openvino.Core()
        settings = {
            # OpenVINO chooses a precision by itself where none is asked for, and another one on another processor.
            "INFERENCE_PRECISION_HINT": "bf16",
            "NUM_STREAMS": compute.worker_count,
            "INFERENCE_NUM_THREADS": compute.worker_count * compute.intra_op_threads,
            "ENABLE_CPU_PINNING": False,
        }
        self._compiled = core.compile_model(core.read_model(model.onnx_path), "CPU", settings)
        self._model = model
        self._requests = threading.local()

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Runs texts of any lengths, padded to the longest; as `EncoderSession.run`.

        Args:
            ids: Token ids of each text, at least one.
            layers: Whose token vectors are wanted, of the model's `token_layers`.
            exclusive: Makes no difference.
        """
        del exclusive
        request = self._request()
        found = request.infer(padded_inputs(ids), share_inputs=True)
        tokens = {layer: np.array(found[self._model.token_output(layer)], np.float32) for layer in layers}
        return RunOutput(np.array(found[self._model.sentence_output], np.float32), tokens)

    def _request(self) -> Any:
        request = getattr(self._requests, "request", None)
        if request is None:
            request = self._requests.request = self._compiled.create_infer_request()
        return request


def check_bf16(cpu_info: Path = _CPU_INFO) -> None:
    """Checks that bf16 can be had on this machine.

    OpenVINO lists BF16 for processors that only emulate it, more slowly than fp32: so the processor's own list of
    instructions decides (Linux on x86 has it).

    Raises:
        Bf16UnavailableError: It cannot.
    """
    try:
        import openvino  # noqa: F401, PLC0415 - an extra that others need not have
    except ImportError as error:
        missing = "OpenVINO is not installed: pip install 'gradewire[openvino]'"
        raise Bf16UnavailableError(missing) from error
    try:
        lines = cpu_info.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise Bf16UnavailableError(f"{cpu_info} cannot be read, which tells whether a processor has bf16") from error
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    if _INSTRUCTIONS.isdisjoint(flags):
        raise Bf16UnavailableError(f"this processor has none of {', '.join(sorted(_INSTRUCTIONS))}")
