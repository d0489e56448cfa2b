"""One model on Triton's vLLM backend, as `RemoteJudge` asks it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from typing_extensions import override

from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.remote.errors import (
    MODEL_SETTING,
    RemoteError,
    RemoteFault,
    addressed,
    late,
    rate_limited,
    refused,
    rejected,
    says_too_long,
    server_error,
    too_long,
    unreachable,
    unreadable,
)
from gradewire_server.judges.remote.refused_pictures import refusal_of_pictures
from gradewire_server.judges.remote.server import Answer, Question, Server
from gradewire_server.judges.triton.answers import answer_from, request_tensors
from gradewire_server.triton.client import TritonClient
from gradewire_server.triton.errors import Fault, TritonError

_log = logging.getLogger(__name__)

_OF_REQUESTS: Final = frozenset({Fault.FAILED, Fault.REFUSED})
_LOGGED: Final = frozenset({Fault.FAILED, Fault.REFUSED, Fault.WRONG_ANSWER})
QWEN_PLACEHOLDER: Final = "<|vision_start|><|image_pad|><|vision_end|>"
_NEEDED: Final = ("input text_input", "input sampling_parameters", "output text_output")


class TritonServer(Server):
    """One model on Triton's vLLM backend.

    Args:
        client: Where it is.
        model: The model's name there.
        address: Of `client`, for messages.
        image_placeholder: What stands for a picture in the model's prompt; "" for Qwen's.
    """

    def __init__(self, client: TritonClient, model: str, address: str, image_placeholder: str = "") -> None:
        self._client = client
        self._address = address
        self._model = model
        self._image_placeholder = image_placeholder or QWEN_PLACEHOLDER
        self._inputs: frozenset[str] = frozenset()

    @property
    @override
    def lacks(self) -> str:
        return "" if "return_logprobs" in self._inputs else "logprobs"

    @property
    @override
    def sees_images(self) -> bool | None:
        # The backend adds the input to every model that it configures itself, whether or not that has eyes.
        return None if "image" in self._inputs else False

    @override
    async def find_out(self) -> None:
        await self.probe()
        with self._translating():
            tensors = (await self._client.served(self._model)).tensors
        missing = [name for name in _NEEDED if name not in tensors]
        if missing:
            raise refused(
                f"{self._model!r} in the judge's Triton is no model of its vLLM backend, for it lacks "
                f"{', '.join(missing)}: see {MODEL_SETTING}"
            )
        self._inputs = frozenset(name.removeprefix("input ") for name in tensors if name.startswith("input "))

    @override
    async def ask(self, question: Question) -> Answer:
        if any(image.uri for image in question.prompt.images):
            raise addressed()
        tensors = request_tensors(question, self._inputs, self._image_placeholder)
        with self._translating(pictures=bool(question.prompt.images)):
            answers = await self._client.stream(self._model, tensors, timeout_s=self._client.timeout_s)
        return answer_from(answers)

    @override
    async def probe(self) -> None:
        with self._translating():
            ready = await self._client.is_ready(self._model)
        if not ready:
            raise self._not_ready()

    @override
    async def close(self) -> None:
        await self._client.close()

    def _not_ready(self) -> RemoteError:
        return RemoteError(
            RemoteFault.SERVER_ERROR,
            Failure(Status.UNAVAILABLE, f"the judge's Triton does not have {self._model!r} ready; try again"),
        )

    @contextmanager
    def _translating(self, *, pictures: bool = False) -> Iterator[None]:
        try:
            yield
        except TritonError as error:
            raise self._translated(error, pictures=pictures) from error

    def _translated(self, error: TritonError, *, pictures: bool = False) -> RemoteError:
        words = str(error)
        if error.kind is Fault.FAILED and says_too_long(words):
            return too_long()
        if error.kind in _LOGGED:
            # What it says may quote the request, and that a user's text.
            _log.warning("judge %s in Triton: %s", self._model, error.kind.value)
            _log.debug("judge %s in Triton: %.300s", self._model, words)
        if pictures and error.kind in _OF_REQUESTS and (refusal := refusal_of_pictures(words, self._model, 400)):
            return refusal
        return {
            Fault.UNREACHABLE: unreachable(self._address),
            Fault.NOT_READY: self._not_ready(),
            Fault.QUEUE_FULL: rate_limited(None),
            Fault.QUEUE_TIMEOUT: rate_limited(None),
            Fault.LATE: late(self._address, self._client.timeout_s),
            Fault.DENIED: refused("the judge's Triton refuses the credentials: see judge_token (--judge-token)"),
            Fault.REFUSED: rejected(400),
            Fault.FAILED: server_error(),
        }.get(error.kind, unreadable("something else than the vLLM backend's tensors"))
