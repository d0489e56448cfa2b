"""The features that one server accepts, learned by a small test question."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from gradewire_server.domain.judge import JudgePrompt, Role, Turn
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.endpoints import CHAT, Api
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault, Reply
from gradewire_server.judges.remote.openai_dialect import Dialect, ServerKind
from gradewire_server.judges.remote.server import Answer, Question, UncountedTokens

_log = logging.getLogger(__name__)

TEST_QUESTION: Final = Question(
    JudgePrompt((Turn(Role.SYSTEM, "Answer the question."),), lead="Is water wet?", prediction="", opening="Answer:"),
    options=("yes", "no"),
    stop=("\n###",),
)
"""A test question without user data, which uses every feature that a server can refuse."""
CONFIRMED_FOR_S: Final = 60.0
"""Seconds for which the test question's result stays valid, even if the server refuses other requests."""
_OF_SOME_SERVERS: Final = {"continues": "continued openings", "constrains": "a choice of labels"}
_LOOK_AGAIN_S: Final = 600.0
"""Seconds between tests for missing features."""
MAY_BE_GENERAL: Final = frozenset({RemoteFault.REFUSED, RemoteFault.REJECTED, RemoteFault.UNREADABLE})
"""Errors that may be about a single question, or about all questions. Only a test question can tell."""
OUT_OF_TOKENS: Final = Answer("", whole=False, steps=None, continued=False, exhausted=True)
"""The answer of a server that refuses instead of returning thoughts without an answer."""
_FEATURE_REFUSAL: Final = re.compile(
    r"unsupported|(?:\bnot|n't|\bno|\bonly)(?: \w+)? support|(?:\bnot|n't)(?: \w+)? (?:allow|permit|accept|enabled)"
    r"|(?:unknown|unrecogni[sz]ed|unexpected|invalid|extra)(?: \w+){0,2} (?:argument|parameter|field|key|option)"
    r"|deprecated|must alternate",
    re.IGNORECASE,
)
"""Words with which a server refuses a feature. A failure that only names a feature is a failure."""
_FAILED: Final = 500


class DialectLearner:
    """The features that one server accepts. For one event loop only.

    If the server refuses a caller's question, the learner sends a test question instead of parsing the refusal, which
    may quote a user's text.

    Args:
        send: Function that sends a question in a dialect, and raises RemoteError if there is no reply.
        api: The API of the questions.

    Attributes:
        uncounted: Tokens of the test questions.
        refused: The error and the reply if the server refused the last test question, otherwise None.
    """

    def __init__(
        self,
        name: str,
        full: Dialect,
        send: Callable[[Question, Dialect], Awaitable[Reply]],
        api: Api = CHAT,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._full = self.dialect = full
        self._send = send
        self._api = api
        self.uncounted = UncountedTokens()
        self._clock = clock
        self._lock = asyncio.Lock()
        self._tested_s = self._confirmed_s = self._not_before_s = float("-inf")
        self._unanswered: Dialect | None = None
        self._doubted = False
        self.refused: tuple[RemoteError, Reply] | None = None
        self._named: tuple[Dialect, Dialect, str, str] | None = None

    @property
    def lacks(self) -> str:
        """Names of missing features that change answers, or "" if no such feature is missing."""
        return self._names()[2]

    @property
    def uses(self) -> str:
        """Names of features that change answers and that only some servers have, or "" if the server has none."""
        return self._names()[3]

    def _names(self) -> tuple[Dialect, Dialect, str, str]:
        """Return the dialects with the names of what the first lacks and uses, which are read for every item."""
        dialect, full = self.dialect, self._full
        named = self._named
        if named is None or named[0] is not dialect or named[1] is not full:
            uses = ", ".join(name for field, name in _OF_SOME_SERVERS.items() if getattr(dialect, field))
            named = self._named = (dialect, full, ", ".join(dialect.lacking(full)), uses)
        return named

    @property
    def kind(self) -> ServerKind:
        """The server's type."""
        return self._full.kind

    def begin(self, full: Dialect) -> None:
        """Start with all features of a server type."""
        self._full = self.dialect = full
        self._unanswered = None
        self._doubted = False
        self._tested_s = self._confirmed_s = float("-inf")

    def doubt(self, full: Dialect) -> None:
        """Check the features again before the next question."""
        if full.kind is not self._full.kind:
            self.begin(full)
        self._doubted = bool(self.lacks)
        self._tested_s = self._confirmed_s = float("-inf")

    async def confirm(self, asked: Dialect) -> bool:
        """Check whether the server also refuses the test question in a dialect.

        Returns:
            True if the dialect has changed, so that the caller should send the question again.

        Raises:
            RemoteError: The server does not answer.
        """
        async with self._lock:
            # A concurrent question may have confirmed the dialect first.
            if self.dialect == asked and self._clock() - self._confirmed_s >= CONFIRMED_FOR_S:
                await self._find_out(asked)
            return self.dialect != asked

    async def refusal(self, asked: Dialect, since_s: float) -> tuple[RemoteError, Reply] | None:
        """Return the error and the reply with which the server also refuses the test question, or None.

        If the server accepted only a test question that was sent before `since_s`, a time of the clock, ask it again.

        Raises:
            RemoteError: The server does not answer now, so nothing is known.
        """
        async with self._lock:
            known_s = self._tested_s if self.refused is None else self._confirmed_s + CONFIRMED_FOR_S
            if known_s < since_s:
                # The dialect is known, so other questions need not wait for the test question.
                await self._tested(asked)
            return self.refused

    def now_s(self) -> float:
        """Return the time of the clock."""
        return self._clock()

    async def look_again(self) -> None:
        """Test from time to time whether the server has gained features.

        Raises:
            RemoteError: The server limits requests, and the server's dialect is not known yet.
        """
        if self._unanswered is None and not self._due():
            return
        async with self._lock:
            due = self._unanswered is None and self._due()
            try:
                if self._unanswered is not None:
                    await self._find_out(self._unanswered)
                elif due:
                    await self._settle(self._full)
            except RemoteError as error:
                if self._unanswered is not None:
                    raise
                # The next question will report the same problem.
                _log.debug("judge %s: cannot test its server's features (%s)", self._name, error.kind.value)
                if due:
                    self._confirmed_s = self._clock()

    def _due(self) -> bool:
        return self._doubted or (bool(self.lacks) and self._clock() - self._confirmed_s >= _LOOK_AGAIN_S)

    async def _find_out(self, asked: Dialect) -> None:
        """Ask the test question in a dialect that the server may not accept, before all other questions."""
        try:
            await self._tested(asked)
        except RemoteError as error:
            self._unanswered = asked if error.kind is RemoteFault.RATE_LIMITED else None
            raise
        self._unanswered = None

    async def _tested(self, asked: Dialect) -> None:
        left_s = self._not_before_s - self._clock()
        if left_s > 0:
            raise errors.rate_limited(left_s)
        try:
            await self._settle(asked)
        except RemoteError as error:
            if error.kind is RemoteFault.RATE_LIMITED:
                self._not_before_s = self._clock() + (error.failure.retry_after_s or 0.0)
            raise

    async def _settle(self, dialect: Dialect) -> None:
        """Remove refused features until the server accepts the test question, or until nothing is left to remove."""
        named: Dialect | None = None
        while True:
            tested_s = self._clock()
            reply = await self._send(TEST_QUESTION, dialect)
            error = errors.error_of(reply, self._name, self._api.wanted) or errors.no_json(reply)
            if error is None or errors.says_out_of_tokens(reply):
                self._learn(dialect, OUT_OF_TOKENS if error else self._api.answer_of(reply, TEST_QUESTION, dialect))
                self.refused = None
                break
            less = dialect.without(errors.server_message(reply)) if may_name_a_feature(reply, error) else dialect
            if less == dialect:
                if error.kind not in MAY_BE_GENERAL:
                    raise error
                general = error if error.kind is RemoteFault.REFUSED else errors.rejects_everything(reply)
                self.refused = general, reply
                break
            failed = reply.status == _FAILED
            if failed and named is None:
                named = less  # a failure that passes is no refusal, so ask twice
                continue
            if failed and less != named:
                raise error
            dialect, named = less, None
        self._tested_s, self._confirmed_s = tested_s, self._clock()
        self._doubted = False

    def _learn(self, dialect: Dialect, answer: Answer) -> None:
        if answer is not OUT_OF_TOKENS:  # an error has no usage, which would make the sum unknown
            self.uncounted.add(answer)
        if dialect.logprobs and answer.steps is None:
            # An answer without text proves nothing about log probabilities.
            dialect = replace(dialect, logprobs=not answer.text.strip() and self.dialect.logprobs)
        before, unused = self.lacks, self.dialect.unused(self._full)
        self.dialect = dialect
        refused = dialect.unused(self._full)
        if refused not in {"", unused}:
            _log.info("judge %s: its server refuses %s, so requests leave it out", self._name, refused)
        if self.lacks and self.lacks != before:
            consequences = dialect.consequences(self._full)
            _log.warning("judge %s: its server lacks features: %s", self._name, consequences)
        elif self.lacks != before:
            _log.info("judge %s: its server has all features of its type", self._name)


def may_name_a_feature(reply: Reply, error: RemoteError) -> bool:
    """Return True if an error may be the refusal of a feature. An item's own error never is, and rarely a failure."""
    if error.kind in {RemoteFault.TOO_LONG, RemoteFault.FILTERED} or reply.status not in errors.NAMING_A_FEATURE:
        return False
    return reply.status < _FAILED or _FEATURE_REFUSAL.search(errors.server_message(reply)) is not None
