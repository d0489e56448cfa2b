"""Judging.Complete: what a judge says next in a chat that a caller has written."""

import time
from collections.abc import Sequence
from typing import Final

from gradewire_proto.conventions.normal_form import TooManyMarksError, nfc
from gradewire_proto.conventions.string_bounds import byte_count
from gradewire_proto.v1 import judging_pb2
from gradewire_server.domain.caller import Caller
from gradewire_server.domain.image import Image
from gradewire_server.domain.judge import Generate, Generated, JudgePrompt, Role, Turn
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.domain.result import Failure, Status
from gradewire_server.requests.admission.work import Work
from gradewire_server.requests.asking import asked_judge, ending_s, fill_failure, fill_source, judge_of, time_left_s
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import InvalidRequestError

KIND: Final = "complete"
MAX_TURNS: Final = 256
MAX_TOKENS: Final = 4096
DEFAULT_TOKENS: Final = 512
_MAX_STOPS: Final = 4
_MAX_STOP_BYTES: Final = 256
_ROLES: Final = {
    judging_pb2.CHAT_ROLE_SYSTEM: Role.SYSTEM,
    judging_pb2.CHAT_ROLE_USER: Role.USER,
    judging_pb2.CHAT_ROLE_ASSISTANT: Role.ASSISTANT,
}


async def complete(
    context: RequestContext,
    request: judging_pb2.CompleteRequest,
    *,
    deadline_s: float | None,
    size_bytes: int | None,
    caller: Caller,
) -> judging_pb2.CompleteResponse:
    """Answers one request; arguments and errors as `Handlers.complete`."""
    started_s = time.monotonic()
    judge = judge_of(context, request.model)
    need = Generate(
        model=f"{judge.name}@{judge.digest}",
        prompt=_prompt_of(request.turns, context.limits.max_item_bytes),
        max_tokens=_max_tokens(request.max_tokens),
        stop=_stops(request.stop),
    )
    left_s = time_left_s(context, started_s, deadline_s)
    size_bytes = request.ByteSize() if size_bytes is None else size_bytes
    work = Work(caller, KIND, size_bytes, items=1, judged=True)
    with context.admission.interactive(work, left_s):
        reply = await asked_judge(need, context.ports.judges.generate(need, deadline_s=ending_s(left_s, 1)))
    context.count_result(KIND, reply.answer.status if isinstance(reply.answer, Failure) else Status.OK)
    return _reply_of(reply, judge)


def _prompt_of(turns: Sequence[judging_pb2.ChatTurn], max_bytes: int) -> JudgePrompt:
    if not turns:
        raise InvalidRequestError("turns", "at least one of the user's is needed")
    if len(turns) > MAX_TURNS:
        raise InvalidRequestError("turns", f"{len(turns)} of them, at most {MAX_TURNS} are allowed")
    if (size := sum(byte_count(turn.text) for turn in turns)) > max_bytes:
        raise InvalidRequestError("turns", f"{size} bytes of text, at most {max_bytes} are allowed")
    read = [_turn_of(turn, f"turns[{index}]") for index, turn in enumerate(turns)]
    begun = read.pop().text.rstrip() if read[-1].role is Role.ASSISTANT else ""
    if not read or read[-1].role is not Role.USER:
        raise InvalidRequestError(
            f"turns[{len(turns) - 1}].role", "the last turn is the user's, or the assistant's behind the user's"
        )
    asking = len(read) - 1
    for index, turn in enumerate(turns):
        if turn.images and index != asking:
            raise InvalidRequestError(f"turns[{index}].images", "only the last turn of the user may have pictures")
    images = tuple(Image(each.data, each.uri, each.media_type) for each in turns[asking].images)
    return JudgePrompt(fixed=tuple(read[:-1]), lead=read[-1].text, opening=begun, images=images)


def _turn_of(turn: judging_pb2.ChatTurn, path: str) -> Turn:
    role = _ROLES.get(turn.role)
    if role is None:
        raise InvalidRequestError(f"{path}.role", "takes CHAT_ROLE_SYSTEM, CHAT_ROLE_USER or CHAT_ROLE_ASSISTANT")
    try:
        return Turn(role, nfc(turn.text))
    except TooManyMarksError as error:
        raise InvalidRequestError(f"{path}.text", str(error)) from None


def _max_tokens(given: int) -> int:
    if given > MAX_TOKENS:
        raise InvalidRequestError("max_tokens", f"is {given}, at most {MAX_TOKENS} are allowed")
    return given or DEFAULT_TOKENS


def _stops(given: Sequence[str]) -> tuple[str, ...]:
    if len(given) > _MAX_STOPS:
        raise InvalidRequestError("stop", f"{len(given)} of them, at most {_MAX_STOPS} are allowed")
    for index, text in enumerate(given):
        if not 1 <= byte_count(text) <= _MAX_STOP_BYTES:
            raise InvalidRequestError(f"stop[{index}]", f"takes 1 to {_MAX_STOP_BYTES} bytes")
    return tuple(given)


def _reply_of(reply: JudgeReply[Generated], judge: ModelStatus) -> judging_pb2.CompleteResponse:
    message = judging_pb2.CompleteResponse(model=judge.name, model_digest=judge.digest)
    answer = reply.answer
    if isinstance(answer, Failure):
        fill_failure(message, answer)
        return message
    message.status = int(Status.OK)  # type: ignore[assignment]
    message.text, message.complete = answer.text, answer.complete
    if answer.prompt_tokens is not None:
        message.prompt_tokens = answer.prompt_tokens
    if answer.generated_tokens is not None:
        message.generated_tokens = answer.generated_tokens
    fill_source(message, reply)
    return message
