"""The backend `triton`: judges in Triton, on its vLLM backend or built by `gradewire models build`."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_server.domain.items import Status
from gradewire_server.domain.judge import JudgePrompt, Role
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges.images import base64_of
from gradewire_server.judges.prometheus import JudgeTelemetry, Tokens
from gradewire_server.judges.prompt_texts import TEMPLATES, Markup, harmless, turns
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault
from gradewire_server.judges.remote.judge import RemoteBackend
from gradewire_server.judges.remote.labels import Labels, Step
from gradewire_server.judges.remote.server import Answer, Question, Server
from gradewire_server.judges.remote.triton_judge import BuiltJudge, JudgeFacts, JudgeRepair, replaced
from gradewire_server.settings.engine import TritonConfig
from gradewire_server.settings.judge import RemoteJudgeConfig
from gradewire_server.triton import Fault, TritonClient, TritonError

_log = logging.getLogger(__name__)

TOP_LOGPROBS: Final = 20
"""The number of alternatives per token, which is vLLM's default maximum (max_logprobs)."""
FLAGS: Final = ("return_finish_reason", "return_logprobs", "return_num_input_tokens", "return_num_output_tokens")

_PICTURE_REFUSALS: Final = frozenset({Fault.FAILED, Fault.REFUSED})
_LOGGED: Final = frozenset({Fault.FAILED, Fault.REFUSED, Fault.WRONG_ANSWER})
QWEN_PLACEHOLDER: Final = "<|vision_start|><|image_pad|><|vision_end|>"
_NEEDED: Final = ("input text_input", "input sampling_parameters", "output text_output")


def chat_text(prompt: JudgePrompt, template: str = "chatml", *, image_placeholder: str = "") -> str:
    """Return a prompt in the model's chat format, up to the position where the judge continues."""
    kind = TEMPLATES[template]
    parts = list(kind.begin)
    *before, item = turns(prompt)
    for turn in before:
        parts += [*kind.before[turn.role], turn.text, *kind.after]
    parts += [*kind.before[item.role], image_placeholder * len(prompt.images), item.text, *kind.after]
    parts += [*kind.before[Role.ASSISTANT], harmless(prompt.opening)]
    return "".join(part.token if isinstance(part, Markup) else part for part in parts)


Tensors = dict[str, NDArray[Any]]


def request_tensors(question: Question, known: frozenset[str], image_placeholder: str = "") -> Tensors:
    """Return a request's tensors for the inputs that the model has (`known`). Older backends have fewer inputs.

    `image_placeholder` marks an image in the model's prompt.
    """
    tensors = {
        "text_input": _bytes(chat_text(question.prompt, image_placeholder=image_placeholder)),
        "sampling_parameters": _bytes(json.dumps(_sampling(question, logprobs="return_logprobs" in known))),
        "stream": np.array([False]),
        "exclude_input_in_output": np.array([True]),
        **{flag: np.array([True]) for flag in FLAGS},
    }
    if question.prompt.images:
        tensors["image"] = _bytes(*map(base64_of, question.prompt.images))
    return {name: value for name, value in tensors.items() if name in known}


def _sampling(question: Question, *, logprobs: bool) -> Mapping[str, object]:
    greedy: dict[str, object] = {"temperature": 0.0}
    if not question.options:
        return greedy | {"max_tokens": question.max_tokens, "stop": list(question.stop)}
    labels = Labels(question.options)
    before = " " if question.prompt.opening else ""
    # The backend parses JSON within JSON. vLLM computes log probabilities before it masks all tokens except labels.
    held = {"structured_outputs": json.dumps({"choice": [before + option for option in question.options]})}
    if logprobs:
        return greedy | {"max_tokens": labels.tokens_to_tell, "logprobs": TOP_LOGPROBS} | held
    return greedy | {"max_tokens": labels.max_tokens} | held


def answer_from(answers: Sequence[Tensors]) -> Answer:
    """Parse a model's answer; raise RemoteError if the answer is not complete."""
    if not answers:
        raise errors.unreadable("nothing")
    try:
        text = "".join(_text(each["text_output"]) for each in answers)
        steps = [step for each in answers if "logprobs" in each for step in _steps(_text(each["logprobs"]), text)]
        finish = _text(answers[-1]["finish_reason"]) if "finish_reason" in answers[-1] else "stop"
        read = [_count(each, "num_input_tokens") for each in answers if "num_input_tokens" in each]
        written = [_count(each, "num_output_tokens") for each in answers if "num_output_tokens" in each]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise errors.unreadable("something other than the vLLM backend's tensors") from error
    return Answer(
        text,
        finish != "length",
        tuple(steps) or None,
        continued=True,
        tokens=Tokens(max(read, default=None), None, sum(written) if written else None),
    )


def _steps(content: str, text: str) -> list[Step]:
    """Return one answer's steps. In `content`, each token's alternatives include the token itself, in any order."""
    steps = []
    rest = text
    for ranked in json.loads(content) or ():
        tops = [
            (str(each["decoded_token"] or ""), float(each["logprob"]), int(each["rank"] or 0))
            for each in ranked.values()
        ]
        # The written token is the longest token that matches the text here. If no token matches (at the turn's end),
        # the written token comes first.
        token = max((each for each, _, _ in tops if each and rest.startswith(each)), key=len, default=tops[0][0])
        rest = rest.removeprefix(token)
        # A written token that is not among the most probable tokens counts for no label.
        likely = tuple((each, logprob) for each, logprob, rank in tops if rank <= TOP_LOGPROBS)
        steps.append(Step(token, likely))
    return steps


def _text(tensor: NDArray[Any]) -> str:
    value = tensor.reshape(-1)[0]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _count(answer: Tensors, name: str) -> int:
    return max(0, int(answer[name].reshape(-1)[0]))


def _bytes(*texts: str) -> NDArray[Any]:
    return np.array([text.encode("utf-8", "replace") for text in texts], dtype=np.object_)


class TritonServer(Server):
    """One model in Triton: a built judge, or any model on the vLLM backend.

    Args:
        image_placeholder: Text that marks an image in the model's prompt; "" means Qwen's text.
    """

    def __init__(self, client: TritonClient, model: str, address: str, image_placeholder: str = "") -> None:
        self._client = client
        self._address = address
        self._model = model
        self._image_placeholder = image_placeholder or QWEN_PLACEHOLDER
        self._inputs: frozenset[str] = frozenset()
        self._built: BuiltJudge | None = None
        self._repair: JudgeRepair | None = None

    @override
    def described(self, status: ModelStatus) -> ModelStatus:
        return status if self._built is None else self._built.described(status)

    @property
    @override
    def lacks(self) -> str:
        return "" if self._built is not None or "return_logprobs" in self._inputs else "logprobs"

    @override
    async def find_out(self) -> None:
        await self.probe()
        with self._translating():
            served = await self._client.served(self._model)
            facts = JudgeFacts.of(served)
            if facts is not None:
                self._built = await BuiltJudge.open(self._client, self._model, facts)
                self.reads_texts = False
                self._repair = JudgeRepair(self._client, self._model, self._built.check)
                return
        tensors = served.tensors
        missing = [name for name in _NEEDED if name not in tensors]
        if missing:
            raise errors.refused(
                f"model {self._model!r} in the judge's Triton is neither a judge of `gradewire models build` nor on "
                f"the vLLM backend. These tensors are missing: {', '.join(missing)}. Check {errors.MODEL_SETTING}"
            )
        self._inputs = frozenset(name.removeprefix("input ") for name in tensors if name.startswith("input "))
        # The backend adds this input to every model that it configures itself, even if the model accepts no images.
        self.sees_images = None if "image" in self._inputs else False

    @override
    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer | RemoteError]:
        (question,) = questions
        if self._built is not None:
            with self._translating():
                return [await self._built.ask(question)]
        if any(image.uri for image in question.prompt.images):
            message = "images: the judge's Triton accepts only bytes, not addresses. Send data or a data: URI"
            raise RemoteError(RemoteFault.REJECTED, Status.INVALID_INPUT, message)
        tensors = request_tensors(question, self._inputs, self._image_placeholder)
        with self._translating(pictures=bool(question.prompt.images)):
            answers = await self._client.stream(self._model, tensors, timeout_s=self._client.timeout_s)
        return [answer_from(answers)]

    @override
    async def probe(self) -> None:
        with self._translating():
            ready = await self._client.is_ready(self._model)
            if self._built is None or self._repair is None:
                if not ready:
                    raise self._not_ready()
                return
            if not ready:
                self._repair.not_ready()
            if not ready or self._repair.running:
                raise self._not_ready()
            if JudgeFacts.of(await self._client.served(self._model)) != self._built.facts:
                raise replaced()
            try:
                await self._built.check()
            except TritonError as error:
                if error.kind is Fault.FAILED:
                    self._repair.failed()
                raise

    @override
    async def close(self) -> None:
        if self._repair is not None:
            await self._repair.close()
        await self._client.close()

    def _not_ready(self) -> RemoteError:
        message = f"model {self._model!r} is not ready in the judge's Triton. Try again"
        return RemoteError(RemoteFault.SERVER_ERROR, Status.UNAVAILABLE, message)

    @contextmanager
    def _translating(self, *, pictures: bool = False) -> Iterator[None]:
        try:
            yield
        except TritonError as error:
            raise self._translated(error, pictures=pictures) from error

    def _translated(self, error: TritonError, *, pictures: bool = False) -> RemoteError:
        words = str(error)
        if error.kind is Fault.FAILED and errors.says_too_long(words):
            return errors.too_long()
        if error.kind in _LOGGED:
            # The error may quote the request, which contains a user's text.
            _log.warning("judge %s in Triton: %s", self._model, error.kind.value)
            _log.debug("judge %s in Triton: %.300s", self._model, words)
        if (
            pictures
            and error.kind in _PICTURE_REFUSALS
            and (refusal := errors.refusal_of_pictures(words, self._model, 400))
        ):
            return refusal
        return {
            Fault.UNREACHABLE: errors.unreachable(self._address),
            Fault.NOT_READY: self._not_ready(),
            Fault.QUEUE_FULL: errors.rate_limited(None),
            Fault.QUEUE_TIMEOUT: errors.rate_limited(None),
            Fault.LATE: errors.late(self._address, self._client.timeout_s),
            Fault.DENIED: errors.refused("the judge's Triton refuses the token. Check judge_token (--judge-token)"),
            Fault.REFUSED: errors.rejected(400),
            Fault.FAILED: errors.server_error(),
        }.get(error.kind, errors.unreadable("something other than the model's tensors"))


class TritonJudges(RemoteBackend):
    """One judge in Triton.

    Raises:
        ValueError: The address is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, telemetry: JudgeTelemetry) -> None:
        try:
            triton = TritonConfig(config.url, token=config.token, timeout_s=config.timeout_s)
        except ValueError as error:
            raise ValueError(
                f"{errors.ADDRESS_SETTING} must be HOST:PORT of Triton's gRPC endpoint (the default port is 8001), "
                "or grpcs://HOST:PORT for TLS"
            ) from error

        async def server() -> TritonServer:
            return TritonServer(TritonClient(triton), config.model, config.url, config.image_placeholder)

        super().__init__("triton", config, telemetry, server)
