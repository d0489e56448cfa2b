"""A client for NVIDIA Triton's encoders and judges, with Triton's errors and request counts."""

import contextlib
import struct
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import InferInput, InferRequestedOutput, InferResult
from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from gradewire_models.repository.config import ServedModel, served_from_wire
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.ports import REPLACED
from gradewire_server.settings.engine import TritonConfig

_CONTROL_TIMEOUT_S: Final = 5.0
_LOAD_TIMEOUT_S: Final = 120.0
_CHANNEL: Final = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Reconnect to a restarted server within a second. gRPC's default wait grows to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.min_reconnect_backoff_ms", 5000),  # despite the name, the timeout for connecting
    ("grpc.use_local_subchannel_pool", 1),
    # Pings detect a host that has vanished while calls are open.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 5000),
)


class Counts(NamedTuple):
    """The numbers of successful and failed requests since a model was loaded.

    A lower count shows that the model was reloaded. For a broken model, check `failed`, because `succeeded` soon
    reaches its old value again.
    """

    succeeded: int
    failed: int

    def may_follow(self, earlier: "Counts") -> bool:
        """Return True if neither count has fallen since `earlier`. A lower count would show a reload of the model."""
        return self.succeeded >= earlier.succeeded and self.failed >= earlier.failed


class Fault(StrEnum):
    """The type of a Triton error, which is also a label in the metric for failed inferences."""

    UNREACHABLE = "unreachable"
    NOT_READY = "not_ready"
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    LATE = "late"
    DENIED = "denied"
    REFUSED = "refused"
    FAILED = "failed"
    WRONG_ANSWER = "wrong_answer"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The failure to return for a Triton error. `breaks` is True if the circuit breaker counts the error."""

    failure: Failure
    breaks: bool


def _unavailable(message: str) -> Failure:
    return Failure(Status.UNAVAILABLE, message)


MEANINGS: Final[dict[Fault, Meaning]] = {
    Fault.UNREACHABLE: Meaning(_unavailable("the encoder's Triton server cannot be reached; try again"), breaks=True),
    Fault.NOT_READY: Meaning(_unavailable("the model is not ready in Triton; try again"), breaks=True),
    Fault.QUEUE_FULL: Meaning(_unavailable("Triton's queue is full; try again later"), breaks=False),
    Fault.QUEUE_TIMEOUT: Meaning(
        _unavailable("the request waited too long in Triton's queue; try again later"), breaks=False
    ),
    Fault.LATE: Meaning(_unavailable("Triton did not answer in time; try again"), breaks=True),
    Fault.DENIED: Meaning(
        _unavailable("Triton refuses this server's credentials; try again after the operator has corrected them"),
        breaks=True,
    ),
    Fault.REFUSED: Meaning(
        Failure(Status.INTERNAL, "Triton refused the server's request; trying again does not help"), breaks=True
    ),
    Fault.FAILED: Meaning(_unavailable("the encoder failed in Triton; try again"), breaks=True),
    Fault.WRONG_ANSWER: Meaning(
        Failure(Status.INTERNAL, "Triton's answer does not contain the model's vectors"), breaks=True
    ),
    Fault.REPLACED: Meaning(REPLACED, breaks=False),
}

_BY_CODE: Final = {
    "UNAVAILABLE": Fault.UNREACHABLE,
    "CANCELLED": Fault.UNREACHABLE,  # Triton cancelled the call; our own cancellation raises asyncio's error
    "NOT_FOUND": Fault.NOT_READY,
    "DEADLINE_EXCEEDED": Fault.LATE,
    "RESOURCE_EXHAUSTED": Fault.QUEUE_FULL,
    "UNAUTHENTICATED": Fault.DENIED,
    "PERMISSION_DENIED": Fault.DENIED,
    "INVALID_ARGUMENT": Fault.REFUSED,
}
# Triton uses UNAVAILABLE for several errors that differ only in their text.
_BY_WORDS: Final = (
    ("maximum queue size", Fault.QUEUE_FULL),
    ("timeout expired", Fault.QUEUE_TIMEOUT),
    ("not ready", Fault.NOT_READY),
    ("no available versions", Fault.NOT_READY),
    ("stopping", Fault.NOT_READY),
    ("unloading", Fault.NOT_READY),
)

OVERLOAD: Final = frozenset({Fault.QUEUE_FULL, Fault.QUEUE_TIMEOUT})
"""Errors that show that a healthy model has too much work."""


class TritonError(Exception):
    """A failed call to Triton."""

    def __init__(self, kind: Fault, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.meaning = MEANINGS[kind]


def kind_of(code: str, message: str) -> Fault:
    """Determine an error's type from the name of the gRPC code and from the message."""
    by_code = _BY_CODE.get(code, Fault.FAILED)
    return _by_words(message, by_code) if code in {"UNAVAILABLE", "CANCELLED"} else by_code


def kind_of_words(message: str) -> Fault:
    """Return the type of an error within a stream. Such an error has a message but no code."""
    if "unknown model" in message or "unavailable due to" in message:
        return Fault.NOT_READY
    return _by_words(message, Fault.FAILED)


def _by_words(message: str, otherwise: Fault) -> Fault:
    return next((kind for words, kind in _BY_WORDS if words in message), otherwise)


class TritonClient:
    """A connection to Triton for all models. It connects at first use. Use it on the event loop that created it.

    Raises:
        OSError: A certificate cannot be read.
    """

    def __init__(self, config: TritonConfig) -> None:
        self.timeout_s = config.timeout_s
        self._control_timeout_s = min(config.timeout_s, _CONTROL_TIMEOUT_S)
        self._headers = {"authorization": f"Bearer {config.token}"} if config.token else None
        self._client: Any = InferenceServerClient(
            config.address,
            ssl=config.tls,
            root_certificates=_text(config.tls_ca),
            private_key=_text(config.tls_key),
            certificate_chain=_text(config.tls_cert),
            channel_args=list(_CHANNEL),
        )

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def is_ready(self, model: str) -> bool:
        """Return True if Triton reports a model as ready. Triton may do this even if the model's process is dead."""
        ready: bool = await self._control("is_model_ready", model)
        return ready

    async def served(self, model: str) -> ServedModel:
        """Return Triton's description of a loaded model."""
        reply = await self._control("get_model_config", model)
        return served_from_wire(reply.config.SerializeToString())

    async def states(self, model: str) -> frozenset[str]:
        """Return the states of a model's versions (READY, LOADING, UNLOADING, UNAVAILABLE); an empty set if unknown."""
        index = await self._control("get_model_repository_index")
        return frozenset(each.state for each in index.models if each.name == model)

    async def counts(self, model: str) -> Counts:
        """Return a model's request counts since the model was loaded."""
        reply = await self._control("get_inference_statistics", model)
        statistics = [each.inference_stats for each in reply.model_stats]
        return Counts(sum(each.success.count for each in statistics), sum(each.fail.count for each in statistics))

    async def load(self, model: str) -> None:
        """Make Triton load a model, or reload a changed model."""
        await self._control("load_model", model, timeout_s=_LOAD_TIMEOUT_S)

    async def unload(self, model: str) -> None:
        """Make Triton unload a model."""
        await self._control("unload_model", model, timeout_s=_LOAD_TIMEOUT_S)

    async def _control(self, method: str, *arguments: str, timeout_s: float = 0.0) -> Any:
        with _translated():
            return await getattr(self._client, method)(
                *arguments, headers=self._headers, client_timeout=timeout_s or self._control_timeout_s
            )

    async def infer(
        self, model: str, inputs: Mapping[str, NDArray[np.int64]], outputs: Sequence[str], *, timeout_s: float
    ) -> dict[str, NDArray[Any]]:
        """Run a request with int64 tensors that have a batch dimension. Cancelling the call also cancels the inference.

        The timeout covers the whole call, including the wait in Triton's queue.

        Returns:
            The outputs by name, as read-only views of the reply.

        Raises:
            TritonError: The request failed, or an output is missing.
        """
        with _translated():
            reply = await self._client.infer(
                model,
                _tensors(inputs),
                outputs=[InferRequestedOutput(name) for name in outputs],
                timeout=max(1, int(timeout_s * 1e6)),
                client_timeout=timeout_s,
                headers=self._headers,
            )
        answers = {name: _array(reply, name) for name in outputs}
        missing = [name for name, value in answers.items() if value is None]
        if missing:
            raise TritonError(Fault.WRONG_ANSWER, f"Triton's answer lacks the outputs {missing}")
        return answers

    async def stream(
        self, model: str, inputs: Mapping[str, NDArray[Any]], *, timeout_s: float
    ) -> list[dict[str, NDArray[Any]]]:
        """Run a request on a decoupled model. Return each answer's outputs by name, in order of arrival.

        Inputs are tensors of bytes (dtype object), booleans or numbers, without a batch dimension. Each request has its
        own gRPC stream on the shared connection, because Triton can cancel only whole streams.

        Raises:
            TritonError: The request failed.
        """
        answers = []
        with _translated():
            replies = self._client.stream_infer(
                _once({"model_name": model, "inputs": _tensors(inputs)}),
                stream_timeout=timeout_s,
                headers=self._headers,
            )
            try:
                async for reply, error in replies:
                    if error is not None:
                        raise TritonError(kind_of_words(error.message() or ""), error.message() or "")
                    names = [each.name for each in reply.get_response().outputs]
                    answers.append({name: _array(reply, name) for name in names})
            finally:
                replies.cancel()
        return answers


def _array(reply: InferResult, name: str) -> Any:
    """Return an output as an array, or None if it is missing; raise TritonError if its parts do not fit together."""
    try:
        return reply.as_numpy(name)
    except (ValueError, TypeError, struct.error) as error:
        raise TritonError(Fault.WRONG_ANSWER, f"Triton's output {name} is malformed") from error


def _tensors(inputs: Mapping[str, NDArray[Any]]) -> list[InferInput]:
    tensors = []
    for name, value in inputs.items():
        tensors.append(InferInput(name, list(value.shape), np_to_triton_dtype(value.dtype)))
        tensors[-1].set_data_from_numpy(value)
    return tensors


async def _once(request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield request


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:  # the client library translates this error only for unary calls
        message = error.details() or ""
        raise TritonError(kind_of(error.code().name, message), f"{error.code().name}: {message}") from error
    except InferenceServerException as error:
        message = error.message() or ""
        code = (error.status() or "").removeprefix("StatusCode.")
        raise TritonError(kind_of(code, message), f"{code}: {message}") from error


def _text(path: object) -> str | None:
    return None if path is None else str(path)
