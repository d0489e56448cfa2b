"""Questions whose answers are decided by their first token, so that the judge need not write more."""

from collections import OrderedDict
from dataclasses import replace
from typing import Final

from gradewire_server.judges.remote.labels import labels_of
from gradewire_server.judges.remote.openai_dialect import Dialect
from gradewire_server.judges.remote.server import Answer, Question

_ENOUGH: Final = 8
"""Number of answers in a row that the first token must have decided."""
_AFTER_A_REFUSAL: Final = 1000
"""Number of further answers before a server that refused such a question is asked again for one token."""
_MAX_KNOWN: Final = 256


class FirstTokens:
    """The kinds of questions that their answer's first token has decided lately. For one event loop only.

    A token that decides is a label's whole text or its beginning, so later tokens change no probability. If a single
    token does not decide, the question is sent again with room for more tokens. So the verdicts are the same.
    """

    def __init__(self) -> None:
        self._decided: OrderedDict[tuple[tuple[str, ...], str], int] = OrderedDict()

    def shortened(self, question: Question, dialect: Dialect) -> Question:
        """Return the question with a limit of one token if one token has decided such questions, else the same."""
        begins = dialect.continues or not question.prompt.opening
        if not (question.options and begins and dialect.logprobs) or dialect.reasoning_tokens:
            return question
        decided = self._decided.get(_key(question), 0) >= _ENOUGH
        return replace(question, one_token=True) if decided else question

    def is_enough(self, question: Question, answer: Answer) -> bool:
        """Learn from an answer of one token. Return False if the question must be sent again without this limit."""
        self.learn(question, answer)
        return _decides(question, answer)

    def learn(self, question: Question, answer: Answer) -> None:
        """Learn from an answer whether one token would have been enough."""
        if question.options:
            known = self._decided.get(_key(question), 0)
            self._keep(question, min(known + 1, _ENOUGH) if _decides(question, answer) else min(known, 0))

    def restart(self, question: Question) -> None:
        """Forget what decided such questions."""
        self._keep(question, min(self._decided.get(_key(question), 0), 0))

    def block(self, question: Question) -> None:
        """Ask such questions with room for more tokens for a long time, because the server refuses a single token."""
        self._keep(question, -_AFTER_A_REFUSAL)

    def _keep(self, question: Question, decided: int) -> None:
        key = _key(question)
        self._decided[key] = decided
        self._decided.move_to_end(key)
        if len(self._decided) > _MAX_KNOWN:
            self._decided.popitem(last=False)


def _decides(question: Question, answer: Answer) -> bool:
    return answer.steps is not None and labels_of(question.options).decides(answer.steps)


def _key(question: Question) -> tuple[tuple[str, ...], str]:
    return question.options, question.prompt.opening
