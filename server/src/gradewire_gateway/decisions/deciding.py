"""Has a judge decide, or the metric `correctness`, whose one question is whether an answer is right."""

from typing import Final

from gradewire_gateway.decisions.asked import Asked
from gradewire_gateway.decisions.questions import Decided, Decisions, QuestionType
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.problems import invalid
from gradewire_gateway.statuses import check_ok
from gradewire_gateway.twins.unary import call_unary
from gradewire_gateway.upstream import CallOptions
from gradewire_gateway.wire.body import Body
from gradewire_gateway.wire.methods import method_at
from gradewire_proto.conventions.services import JUDGING, SCORING
from gradewire_proto.v1 import judging_pb2, scoring_pb2, types_pb2

CORRECTNESS: Final = "correctness"
DEFAULT_MODEL: Final = "default"


async def decide(gateway: Gateway, asked: Asked, options: CallOptions, body: Body) -> Decisions:
    """Answers all questions of a request.

    Args:
        gateway: What it calls.
        asked: The request.
        options: Metadata and deadline of the call.
        body: Of the HTTP request, read to its end.

    Raises:
        ProblemError: What the server answers in place of a reply, or the failure of one question.
        DisconnectedError: The caller went away.
    """
    if asked.model == CORRECTNESS:
        return await _graded(gateway, asked, options, body)
    request = judging_pb2.DecideRequest(
        model="" if asked.model == DEFAULT_MODEL else asked.model,
        state=asked.text(),
        questions=[question.to_message() for question in asked.questions],
    )
    reply = await call_unary(gateway, method_at(f"/{JUDGING}/Decide"), request, options, body)
    assert isinstance(reply, judging_pb2.DecideResponse)  # noqa: S101 - for mypy: it is the method's
    for question, decision in zip(asked.questions, reply.decisions, strict=True):
        check_ok(decision, question.at)
    answers = [Decided(tuple(decision.probabilities)) for decision in reply.decisions]
    return Decisions(reply.model, answers, sum(decision.prompt_tokens for decision in reply.decisions))


async def _graded(gateway: Gateway, asked: Asked, options: CallOptions, body: Body) -> Decisions:
    for question in asked.questions:
        if question.kind is not QuestionType.NOUL:
            detail = f"{question.at}.type: correctness answers whether an answer is right, which is no {question.kind}"
            raise invalid(detail, f"{question.at}.type")
    request = scoring_pb2.ScoreRequest(
        items=[asked.item()],
        metrics=[types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters())],
        omit_diagnostics=True,
    )
    reply = await call_unary(gateway, method_at(f"/{SCORING}/Score"), request, options, body)
    assert isinstance(reply, scoring_pb2.ScoreResponse)  # noqa: S101 - for mypy: it is the method's
    (result,) = reply.items[0].results
    check_ok(result, asked.at)
    answer = Decided((1 - result.score, result.score))
    return Decisions(CORRECTNESS, [answer] * len(asked.questions), 0)
