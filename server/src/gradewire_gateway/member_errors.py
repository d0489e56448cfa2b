"""Problems under /v1 also carry the member `error`, where the clients of such endpoints look for the reason."""

from dataclasses import replace

from starlette.types import ASGIApp, Receive, Scope, Send

from gradewire_gateway.problems import Problem, ProblemError


class MemberErrors:
    """An ASGI app around one of them.

    Args:
        app: Which one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request as the app does; raises its problems with that member."""
        try:
            await self._app(scope, receive, send)
        except ProblemError as error:
            raise ProblemError(_with_error(error.problem)) from error


def _with_error(problem: Problem) -> Problem:
    told = {"message": problem.detail, "type": problem.code, "param": problem.at or None, "code": problem.code}
    return replace(problem, members={"error": told})
