"""What an OpenAI-compatible server can do, learnt from requests of our own: no user's item changes it for others."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.openai.answers import answer_of
from gradewire_server.judges.openai.dialect import Dialect
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault, rate_limited
from gradewire_server.judges.remote.http_client import Reply
from gradewire_server.judges.remote.replies import BAD_REQUEST, error_of, said
from gradewire_server.judges.remote.server import Paid, Question

_log = logging.getLogger(__name__)

OWN_QUESTION: Final = Question(
    JudgePrompt((), lead="Is water wet?", prediction="", opening="Answer:"), options=("yes", "no"), stop=("\n\n\n",)
)
"""It uses everything that a server can refuse, and holds nothing from users."""
_BELIEVED_S: Final = 60.0
_LOOK_AGAIN_S: Final = 600.0


class Features:
    """How one server is spoken to. Lives on one event loop.

    Args:
        name: Of the judge, for the log.
        full: With everything that its kind can do.
        send: Sends a question in a dialect; raises RemoteError where nothing comes back.
        clock: Monotonic, in seconds.
    """

    def __init__(
        self,
        name: str,
        full: Dialect,
        send: Callable[[Question, Dialect], Awaitable[Reply]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._full = full
        self._send = send
        self._clock = clock
        self._lock = asyncio.Lock()
        self._confirmed_s = float("-inf")
        self._doubted = False
        self._unanswered: Dialect | None = None
        self._not_before_s = float("-inf")
        self._paid = Paid()
        self.dialect = full

    def take_paid(self) -> Paid:
        """What our own questions have cost since it was taken last."""
        paid, self._paid = self._paid, Paid()
        return paid

    @property
    def lacks(self) -> str:
        """Names of what the server turned out not to do and what changes answers, or ""."""
        return self.dialect.lacks(self._full)

    def begin(self, full: Dialect) -> None:
        """Starts anew with everything that a kind can do."""
        self._full = self.dialect = full
        self._unanswered = None
        self._confirmed_s = float("-inf")
        self._doubted = False

    def doubt(self, full: Dialect) -> None:
        """The server was away and is back: what is known of it is checked again before the next question."""
        if full.kind is not self._full.kind:
            self.begin(full)
        self._doubted = bool(self.lacks)
        self._confirmed_s = float("-inf")

    async def confirm(self, asked: Dialect) -> bool:
        """Looks whether the server refuses our own question in a dialect too.

        Returns:
            Whether the dialect is another one now: the same question is worth another try.

        Raises:
            RemoteError: The server cannot be asked. One that takes no more requests for now is asked again before the
                next question, which is then asked once and in the right way.
        """
        async with self._lock:
            if self.dialect != asked:
                self._unanswered = None
                return True  # somebody else's question was first
            if self._clock() - self._confirmed_s < _BELIEVED_S:
                return False
            left_s = self._not_before_s - self._clock()
            if self._unanswered is not None and left_s > 0:
                raise rate_limited(left_s)
            self._unanswered = None
            try:
                await self._settle(asked)
            except RemoteError as error:
                if error.kind is RemoteFault.RATE_LIMITED:
                    self._unanswered = asked
                    self._not_before_s = self._clock() + (error.retry_after_s or 0.0)
                raise
            return self.dialect != asked

    async def look_again(self) -> None:
        """Asks from time to time whether the server can do by now what it could not.

        Raises:
            RemoteError: It takes no more requests for now, and how it is to be asked is not known yet.
        """
        if self._unanswered is not None:
            try:
                await self.confirm(self._unanswered)
            except RemoteError as error:
                if error.kind is RemoteFault.RATE_LIMITED:
                    raise
                # The question that comes next finds out for itself what is wrong.
        if not self._due():
            return
        async with self._lock:
            if not self._due():
                return
            try:
                await self._settle(self._full)
            except RemoteError as error:
                # The question that comes next finds out for itself what is wrong.
                _log.debug("judge %s: its features cannot be looked at (%s)", self._name, error.kind.value)
                self._confirmed_s = self._clock()

    def _due(self) -> bool:
        return self._doubted or (bool(self.lacks) and self._clock() - self._confirmed_s >= _LOOK_AGAIN_S)

    async def _settle(self, first: Dialect) -> None:
        """Leaves out what the server names, until it takes our question; where it never does, nothing changes."""
        dialect = first
        while True:
            reply = await self._send(OWN_QUESTION, dialect)
            error = error_of(reply, self._name)
            if error is not None and (reply.status not in BAD_REQUEST or error.kind is RemoteFault.TOO_LONG):
                raise error
            if error is not None:
                less = dialect.without(said(reply))
                if less == dialect:
                    break
                dialect = less
                continue
            answer = answer_of(reply, continued=dialect.continues, reasoning=bool(dialect.reasoning_tokens))
            self._paid = self._paid.plus(answer)
            if dialect.logprobs and answer.steps is None:
                # Where there is no text either, that proves nothing.
                dialect = replace(dialect, logprobs=not answer.text.strip() and self.dialect.logprobs)
            self._learn(dialect)
            break
        self._confirmed_s = self._clock()
        self._doubted = False

    def _learn(self, dialect: Dialect) -> None:
        if dialect.lacks(self._full) != self.lacks:
            lacking = dialect.consequences(self._full)
            if lacking:
                _log.warning("judge %s: its server does not do this: %s", self._name, lacking)
            else:
                _log.info("judge %s: its server does all that its kind can", self._name)
        self.dialect = dialect
