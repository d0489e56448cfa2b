"""Statuses of results as problems, where one of them is all that a request asks for."""

from typing import Final

from gradewire_gateway.problems import Problem, ProblemError
from gradewire_proto.v1 import judging_pb2, types_pb2

_PROBLEMS: Final = {
    types_pb2.STATUS_INVALID_INPUT: (400, "invalid_argument"),
    types_pb2.STATUS_INVALID_PARAMETER: (400, "invalid_argument"),
    types_pb2.STATUS_EMPTY_PREDICTION: (400, "invalid_argument"),
    types_pb2.STATUS_JUDGE_CANNOT_SEE: (400, "failed_precondition"),
    types_pb2.STATUS_MODEL_UNAVAILABLE: (400, "failed_precondition"),
    types_pb2.STATUS_TIMEOUT: (504, "deadline_exceeded"),
    types_pb2.STATUS_UNAVAILABLE: (503, "unavailable"),
}
"""Any other status is a defect."""


def check_ok(
    result: judging_pb2.CompleteResponse | judging_pb2.Decision | types_pb2.MetricResult, at: str = ""
) -> None:
    """Raises ProblemError where a result is not OK; `at` is the path of what it answers."""
    if result.status == types_pb2.STATUS_OK:
        return
    status, code = _PROBLEMS.get(result.status, (500, "internal"))
    retry_after_s = result.retry_after_s if result.HasField("retry_after_s") else None
    message = f"{at}: {result.message}" if at else result.message
    raise ProblemError(Problem(status, code, message, at, retry_after_s=retry_after_s))
