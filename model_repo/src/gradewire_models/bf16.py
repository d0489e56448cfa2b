"""Run encoder graphs in bf16 on OpenVINO, so that a text's vector does not depend on the other texts in its batch.

The order of additions changes a bf16 sum, and in attention the padded length determines this order. A text's padded
length therefore depends only on the text's own length, and each run processes texts of a single padded length
(docs/adr/0009-encoder-graphs.md).
"""

import threading
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.processor import CPU_INFO, instructions

BF16_CLASS: Final = "bf16-cpu"
"""The `numeric_class` of models that this module runs. Change this name whenever you change `padded_length`."""
_INSTRUCTIONS: Final = ("amx_bf16", "avx512_bf16")
_STEP_TOKENS: Final = 8


class Bf16UnavailableError(Exception):
    """Raised when this machine cannot run bf16; the message states the reason and the remedy."""


def padded_length(tokens: int) -> int:
    """Return the length to which every text with `tokens` tokens is padded, whether alone or in a batch."""
    return -(-tokens // _STEP_TOKENS) * _STEP_TOKENS


def pad(texts: Sequence[NDArray[np.integer]], length: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return padded token ids and their mask, int64 [texts, length]. If `length` is 0, pad to the longest text."""
    ids = np.zeros((len(texts), length or max(map(len, texts))), np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return ids, mask


def bf16_instruction(cpu_info: Path = CPU_INFO) -> str:
    """Return the name of the processor's bf16 instructions, from the processor's flags (Linux on x86).

    OpenVINO also reports BF16 on processors that only emulate bf16. Emulated bf16 is slower than fp32.

    Raises:
        Bf16UnavailableError: OpenVINO is not installed, or the processor has no bf16 instructions.
    """
    try:
        import openvino  # noqa: F401, PLC0415 - an optional extra
    except ImportError as error:
        missing = "OpenVINO is not installed. Run: pip install 'gradewire[openvino]'"
        raise Bf16UnavailableError(missing) from error
    try:
        flags = instructions(cpu_info)
    except OSError as error:
        raise Bf16UnavailableError(f"cannot read {cpu_info} to find this processor's bf16 instructions") from error
    found = next((name for name in _INSTRUCTIONS if name in flags), "")
    if not found:
        raise Bf16UnavailableError(f"this processor has no bf16 (none of {', '.join(_INSTRUCTIONS)})")
    return found


def arithmetic() -> str:
    """Return the processor's bf16 instructions and OpenVINO's version, which both affect bf16 vectors.

    Raises:
        Bf16UnavailableError: See `bf16_instruction`.
    """
    return f"{bf16_instruction()}, OpenVINO {version('openvino')}"


class Bf16Graph:
    """A compiled encoder graph for concurrent callers.

    Args:
        path: File with the graph, whose inputs are ``input_ids`` and ``attention_mask``, int64 [batch, tokens].
        runs_at_once: Number of concurrent runs, each on one thread because more threads would change the order of sums.

    Raises:
        Bf16UnavailableError: bf16 is not available (see `bf16_instruction`), or OpenVINO cannot compile the graph.
    """

    def __init__(self, path: Path, *, runs_at_once: int = 1) -> None:
        bf16_instruction()
        import openvino  # noqa: PLC0415 - an optional extra

        settings = {
            # By default, OpenVINO's precision depends on the processor.
            "INFERENCE_PRECISION_HINT": "bf16",
            "NUM_STREAMS": runs_at_once,
            "INFERENCE_NUM_THREADS": runs_at_once,
            "ENABLE_CPU_PINNING": False,
        }
        core = openvino.Core()
        try:
            self._compiled = core.compile_model(core.read_model(path), "CPU", settings)
        except RuntimeError as error:
            # OpenVINO's message contains file paths, so show our message.
            raise Bf16UnavailableError(f"OpenVINO {version('openvino')} cannot compile the graph") from error
        self._requests = threading.local()

    def run(self, outputs: Sequence[str], ids: Sequence[NDArray[np.integer]]) -> list[NDArray[np.float32]]:
        """Run the graph on texts, once for each padded length.

        Args:
            outputs: Names of the outputs. The first output has one row per text, every other output one row per token.
            ids: Token ids of each text, at least one.

        Returns:
            float32 [texts, …] for the first output, float32 [texts, longest text, …] for every other output. Rows after
            a text's last token are unspecified.
        """
        lengths = [padded_length(len(text)) for text in ids]
        longest = max(map(len, ids))
        whole: list[NDArray[np.float32]] = []
        for length in sorted(set(lengths)):
            places = [place for place, each in enumerate(lengths) if each == length]
            padded, mask = pad([ids[place] for place in places], length)
            found = self._request().infer({"input_ids": padded, "attention_mask": mask}, share_inputs=True)
            for number, name in enumerate(outputs):
                part = found[name]
                shape = part.shape[1:] if number == 0 else (longest, *part.shape[2:])
                if len(whole) <= number:
                    whole.append(np.zeros((len(ids), *shape), np.float32))
                if number == 0:
                    whole[number][places] = part
                else:
                    whole[number][places, : min(length, longest)] = part[:, :longest]
        return whole

    def _request(self) -> Any:
        request = getattr(self._requests, "request", None)
        if request is None:
            request = self._requests.request = self._compiled.create_infer_request()
        return request
