"""Makes the logs in `lm_eval/` with lm-eval's own command and a model that answers from a table.

README.md beside this says how to run it.
"""

import sys
from typing import Any

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

SAID = {
    "goes round": [" The Moon"],
    "spider": [" eight legs"],
    "steel": [" Mostly carbon."],
    "apples": ["3 and 4 make 7. The answer is 7", "It is 7"],
    "eggs": ["6 times 5 is 30, so 30 eggs", "The answer is 11"],
}
LIKED = ("iron", "an owl", "steam", "A", "C", "the cup", "Tom", "the bag", "east")


@register_model("table")
class Table(LM):
    """Says what the table has; likes the continuations of a list."""

    def __init__(self, **_: Any) -> None:
        super().__init__()
        self._asked: dict[str, int] = {}

    def generate_until(self, requests: Any, **_: Any) -> list[str]:
        return [self._answer(request.args[0]) for request in requests]

    def loglikelihood(self, requests: Any, **_: Any) -> list[tuple[float, bool]]:
        likes = [any(context_and.strip().endswith(word) for word in LIKED) for context_and in map(_whole, requests)]
        return [(-1.0, True) if liked else (-2.5 - place / 16, False) for place, liked in enumerate(likes)]

    def loglikelihood_rolling(self, requests: Any, **_: Any) -> list[float]:
        return [-4.0 for _ in requests]

    def _answer(self, prompt: str) -> str:
        # Of few-shot prompts the last question counts.
        words = max(SAID, key=prompt.rfind)
        turn = self._asked.get(words, 0)
        self._asked[words] = turn + 1
        return SAID[words][turn % len(SAID[words])]


def _whole(request: Any) -> str:
    context, continuation = request.args
    # In a gap task the choices are contexts.
    return context if continuation.startswith((" was", " had")) else continuation


sys.exit(cli_evaluate())
