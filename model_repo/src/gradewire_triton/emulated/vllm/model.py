# noqa: INP001 - Triton loads this file by its path
"""Emulate Triton's vLLM backend with llama.cpp on CPUs.

Triton loads this file from --backend-directory for every model whose config.pbtxt contains ``backend: "vllm"``. The
directory also contains a link to the package xllamacpp. From model.json, the backend reads ``model`` (here a GGUF file,
absolute or relative to the model's directory), ``max_model_len``, ``max_num_seqs``, and ``num_threads``, which vLLM
lacks. This file cannot import gradewire.
"""

import base64
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

sys.path.append(str(Path(__file__).parent))
try:
    import xllamacpp
except ImportError as error:
    raise pb_utils.TritonModelException(
        f"the emulated vLLM backend needs llama.cpp ({error}). Run: pip install 'gradewire[judge]'"
    ) from error

ENGINE_FILE = "model.json"
IMAGE_PLACEHOLDER = "<|image_pad|>"
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
FLAGS = ("finish_reason", "cumulative_logprob", "logprobs", "num_input_tokens", "num_output_tokens")
"""Outputs that a request can select with the input ``return_NAME``."""


class TritonPythonModel:
    """A model that accepts requests immediately and sends the answers later. Each slot runs one request."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the weights.

        Args:
            args: Values from Triton: ``model_repository`` (the model's directory), ``model_version``, ``model_config``
                (JSON).

        Raises:
            pb_utils.TritonModelException: The model's files are missing or invalid.
        """
        if not pb_utils.using_decoupled_model_transaction_policy(json.loads(args["model_config"])):
            raise pb_utils.TritonModelException("the vLLM backend needs model_transaction_policy { decoupled: true }")
        directory = Path(args["model_repository"])
        engine = json.loads((directory / args["model_version"] / ENGINE_FILE).read_text(encoding="utf-8"))
        weights = directory / engine["model"]
        if not weights.is_file():
            raise pb_utils.TritonModelException(
                f"the emulated vLLM backend needs a GGUF file, but {weights} is missing"
            )
        slots = int(engine.get("max_num_seqs", 1))
        self._server = xllamacpp.Server(_parameters(weights, engine, slots))
        self._threads = ThreadPoolExecutor(slots, "vllm")

    def execute(self, requests: Sequence[Any]) -> None:
        """Accept requests; other threads send the answers."""
        for request in requests:
            self._threads.submit(self._answer, request, request.get_response_sender())

    def finalize(self) -> None:
        """Wait for running requests."""
        self._threads.shutdown(cancel_futures=True)

    def _answer(self, request: Any, sender: Any) -> None:
        try:
            response = self._response(request, sender)
        except Exception as error:  # noqa: BLE001 - the caller must get an answer
            response = _failure(f"Error generating stream: {error}", pb_utils.TritonError.INTERNAL)
        sender.send(response, flags=FINAL)

    def _response(self, request: Any, sender: Any) -> Any:
        if sender.is_cancelled():
            return _failure("Request was cancelled", pb_utils.TritonError.CANCELLED)
        prompt = _with_images(_input(request, "text_input").decode(), _images(request))
        stream = bool(_input(request, "stream", default=False))
        exclude = bool(_input(request, "exclude_input_in_output", default=stream))
        if stream and not exclude:
            raise ValueError("When streaming, `exclude_input_in_output` = False is not allowed.")
        flags = {name for name in FLAGS if _input(request, f"return_{name}", default=False)}
        sampling = json.loads(_input(request, "sampling_parameters", default=b"{}"))
        completion = self._complete(prompt, _completion_request(sampling), sender)
        if completion is None:
            return _failure("Request was cancelled", pb_utils.TritonError.CANCELLED)
        return _success(completion, "" if exclude else prompt, flags)

    def _complete(self, prompt: str, request: dict[str, Any], sender: Any) -> dict[str, Any] | None:
        """Return a completion, joined from its pieces, or None if the caller cancelled the request."""
        pieces: list[dict[str, Any]] = []

        def take(piece: dict[str, Any]) -> bool:  # must not raise, because llama.cpp's thread hides exceptions
            pieces.append(piece)
            return "error" in piece or bool(sender.is_cancelled())

        self._server.handle_completions({**request, "prompt": prompt}, take)
        failed = next((piece["error"] for piece in pieces if "error" in piece), None)
        if failed is not None:
            raise RuntimeError(failed.get("message", "llama.cpp failed"))
        choices = [choice for piece in pieces for choice in piece["choices"]]
        finish = next((choice["finish_reason"] for choice in choices if choice["finish_reason"]), None)
        if finish is None:
            return None
        return {
            "text": "".join(choice["text"] for choice in choices),
            "tokens": [token for choice in choices for token in (choice["logprobs"] or {}).get("content", ())],
            "finish": finish,
            "usage": pieces[-1].get("usage", {}),
        }


def _parameters(weights: Path, engine: Mapping[str, Any], slots: int) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.n_parallel = slots
    parameters.n_ctx = slots * int(engine.get("max_model_len", 2048))
    parameters.n_gpu_layers = 0
    threads = int(engine.get("num_threads", 0)) or len(os.sched_getaffinity(0))
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0
    parameters.cache_ram_mib = 0
    parameters.verbosity = 1  # errors
    parameters.warmup = False
    parameters.ui = False
    # The library always listens on the loopback; a random key locks other users out.
    parameters.api_keys = [secrets.token_hex(32)]
    return parameters


def _completion_request(sampling: Mapping[str, Any]) -> dict[str, Any]:
    known = {"max_tokens", "temperature", "logprobs", "stop", "structured_outputs", "seed"}
    if set(sampling) - known:
        raise ValueError(f"unknown sampling parameters {sorted(set(sampling) - known)}")
    request: dict[str, Any] = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": int(sampling.get("max_tokens", 16)),
        "temperature": float(sampling.get("temperature", 1.0)),
    }
    if sampling.get("logprobs") is not None:
        request["n_probs"] = int(sampling["logprobs"])
    if sampling.get("stop"):
        request["stop"] = sampling["stop"]
    if sampling.get("structured_outputs"):
        choices = json.loads(sampling["structured_outputs"])["choice"]
        request["grammar"] = "root ::= " + " | ".join(json.dumps(each, ensure_ascii=False) for each in choices)
    return request


def _success(completion: Mapping[str, Any], before: str, flags: set[str]) -> Any:
    tokens = completion["tokens"]
    outputs = [_texts("text_output", before + completion["text"])]
    if "finish_reason" in flags:
        outputs.append(_texts("finish_reason", completion["finish"]))
    if "cumulative_logprob" in flags:
        total = sum(token["logprob"] for token in tokens)
        outputs.append(pb_utils.Tensor("cumulative_logprob", np.asarray([total], np.float32)))
    if "logprobs" in flags:
        outputs.append(_texts("logprobs", json.dumps([_ranked(token) for token in tokens]) if tokens else "null"))
    for name, counted in (("num_input_tokens", "prompt_tokens"), ("num_output_tokens", "completion_tokens")):
        if name in flags:
            count = int(completion["usage"].get(counted, 0))
            outputs.append(pb_utils.Tensor(name, np.asarray([count], np.uint32)))
    return pb_utils.InferenceResponse(outputs)


def _ranked(token: Mapping[str, Any]) -> dict[str, Any]:
    """Return log probabilities in vLLM's format, by token ID and with the generated token first."""
    ranked = {each["id"]: rank for rank, each in enumerate(token["top_logprobs"], 1)}
    beyond = len(ranked) + 1  # the true rank is unknown
    return {
        str(each["id"]): {
            "logprob": each["logprob"],
            "rank": ranked.get(each["id"], beyond),
            "decoded_token": each["token"],
        }
        for each in (token, *token["top_logprobs"])
    }


def _input(request: Any, name: str, *, default: Any = None) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return default if tensor is None else tensor.as_numpy()[0]


def _images(request: Any) -> list[bytes]:
    tensor = pb_utils.get_input_tensor_by_name(request, "image")
    return [] if tensor is None else [base64.b64decode(each, validate=True) for each in tensor.as_numpy()]


def _with_images(prompt: str, images: Sequence[bytes]) -> str:
    """Replace each image's placeholder in the prompt with words that differ between images."""
    parts = prompt.split(IMAGE_PLACEHOLDER)
    if len(parts) != len(images) + 1:
        raise ValueError(f"the prompt has {len(parts) - 1} placeholders for {len(images)} images")
    words = [f"(picture {hashlib.sha256(image).hexdigest()[:8]})" for image in images]
    return "".join(text + word for text, word in zip(parts, [*words, ""], strict=True))


def _texts(name: str, text: str) -> Any:
    return pb_utils.Tensor(name, np.asarray([text.encode()], np.object_))


def _failure(message: str, code: Any) -> Any:
    return pb_utils.InferenceResponse([], pb_utils.TritonError(message, code))
