"""Requests to a judge's server: limited in time, sent again where that helps, refused while the server is away."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

from gradewire_server.concurrency.backoff import Backoff
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.observers import RemoteJudgeObserver, RequestUsage
from gradewire_server.judges.remote.availability import ServerAvailability
from gradewire_server.judges.remote.errors import AWAY, RETRIED, RemoteError, RemoteFault, late
from gradewire_server.judges.remote.server import Answer, Paid, Question, Server
from gradewire_server.settings.judge import RemoteJudgeConfig

_MILLION: Final = 1e6
T = TypeVar("T")
_Send: TypeAlias = Callable[[], Awaitable[tuple[T, Sequence[Answer]]]]
"""Sends one request; gives what is returned to who asked, and the answers whose tokens are counted."""


class ServerRequests:
    """Asks one server.

    Args:
        name: Of the judge, for the log.
        server: Closed with this.
        config: Limits and prices.
        observer: Hears of the requests.
        backoff: Waits between attempts.
    """

    def __init__(
        self, name: str, server: Server, config: RemoteJudgeConfig, observer: RemoteJudgeObserver, backoff: Backoff
    ) -> None:
        self._server = server
        self._config = config
        self._observer = observer
        self._backoff = backoff
        self._availability = ServerAvailability(name, server.probe)

    @property
    def trouble(self) -> str:
        """Why the server cannot answer now; empty when it can."""
        return self._availability.trouble

    async def ask(self, question: Question, deadline_s: float | None) -> Answer:
        """Has one question answered; raises RemoteError.

        Between attempts its caller keeps the permit: a server that wants fewer requests gets fewer.
        """

        async def send() -> tuple[Answer, Sequence[Answer]]:
            answer = await self._server.ask(question)
            return answer, (answer,)

        return await self._answered(send, deadline_s)

    async def ask_together(
        self, questions: Sequence[Question], deadline_s: float | None
    ) -> Sequence[Answer | RemoteError]:
        """Likewise, by one request; what is wrong with one answer stands in its place."""

        async def send() -> tuple[Sequence[Answer | RemoteError], Sequence[Answer]]:
            answers = await self._server.ask_together(questions)
            return answers, [answer for answer in answers if isinstance(answer, Answer)]

        return await self._answered(send, deadline_s)

    async def close(self) -> None:
        """Ends the probes and closes the server's connections."""
        await self._availability.close()
        await self._server.close()

    async def _answered(self, send: _Send[T], deadline_s: float | None) -> T:
        first_s = time.monotonic()
        attempt = 0
        while True:
            refusal = self._availability.refusal()
            if refusal is not None:
                raise RemoteError(RemoteFault.UNREACHABLE, refusal)
            attempt += 1
            try:
                return await self._sent(send)
            except RemoteError as error:
                wait_s = self._backoff.wait_s(attempt, error.retry_after_s)
                late_s = min(deadline_s or float("inf"), time.monotonic() + self._config.timeout_s)
                if error.kind in RETRIED and attempt < self._config.attempts and time.monotonic() + wait_s < late_s:
                    self._observer.request_retried(error.kind.value)
                    await asyncio.sleep(wait_s)
                    continue
                if error.kind in AWAY:
                    self._availability.failed(error, sent_s=first_s)
                raise RemoteError(error.kind, _with_hint(error.failure, wait_s)) from error

    async def _sent(self, send: _Send[T]) -> T:
        self._observer.requests_in_flight(1)
        started_s = time.monotonic()
        try:
            async with asyncio.timeout(self._config.timeout_s) as limit:
                result, answers = await send()
        except TimeoutError as error:
            if limit.expired():
                raise late(self._config.url, self._config.timeout_s) from error
            raise
        finally:
            self._observer.requests_in_flight(-1)
        if answers:
            self._availability.succeeded()
            self._observer.request_answered(self._usage(answers, time.monotonic() - started_s))
        return result

    def _usage(self, answers: Sequence[Answer], duration_s: float) -> RequestUsage:
        paid = Paid()
        for answer in answers:
            paid = paid.plus(answer)
        read, written = paid.prompt_tokens, paid.generated_tokens
        costs = (_priced(read, self._config.input_price), _priced(written, self._config.output_price))
        cost = None if costs[0] is None or costs[1] is None else costs[0] + costs[1]
        return RequestUsage(read, paid.cached_tokens, written, cost, duration_s)


def _priced(tokens: int | None, price: float | None) -> float | None:
    if tokens == 0:
        return 0.0
    return None if tokens is None or price is None else tokens * price / _MILLION


def _with_hint(failure: Failure, wait_s: float) -> Failure:
    if failure.status is not Status.UNAVAILABLE or failure.retry_after_s is not None:
        return failure
    return replace(failure, retry_after_s=round(wait_s, 3))
