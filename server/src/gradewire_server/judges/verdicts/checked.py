"""Checks what a judge answers: an exception or an invalid answer fails this need alone."""

import logging
from dataclasses import replace
from typing import Any, Final

from typing_extensions import override

from gradewire_server.domain.judge import JudgeNeed
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.judges.verdicts.codec import why_no_answer
from gradewire_server.judges.verdicts.wrapper import Ask, JudgeWrapper

_log = logging.getLogger(__name__)
_DEFECT: Final = Failure(Status.INTERNAL, "the judge failed on this item; the server's log has the details")
_NONSENSE: Final = Failure(Status.INTERNAL, "the judge's answer makes no sense; the server's log says why")


class CheckedJudge(JudgeWrapper):
    """A judge whose answers are always valid: right number of probabilities, sum 1, Unicode text."""

    @override
    async def _answer(self, need: JudgeNeed, ask: Ask, deadline_s: float | None) -> JudgeReply[Any]:
        try:
            reply = await ask(deadline_s)
        except Exception as error:  # noqa: BLE001 - judges answer with failures; one that raises fails this need alone
            # Not the error's own words, which may hold a user's text.
            _log.error("judge %s raised %s", self.status.name, type(error).__qualname__)
            return JudgeReply(_DEFECT, AnswerSource.COMPUTED, Timing())
        wrong = "" if isinstance(reply.answer, Failure) else why_no_answer(need, reply.answer)
        if wrong:
            _log.error("judge %s: %s", self.status.name, wrong)
            return replace(reply, answer=_NONSENSE)
        return reply
