"""Makes the logs in `lmms_eval/` with lmms-eval's own command; its dummy model answers from a table.

README.md beside this says how to run it.
"""

from typing import Any

from lmms_eval.__main__ import cli_evaluate
from lmms_eval.models.simple.dummy import Dummy

SAID = {
    "colour": "<think>It looks red.</think>red",
    "blue": "No",
    "many": "one",
    "shown": "B. a square",
    "bright": "It is bright (B)",
}


def answers(_: Dummy, requests: Any) -> list[str]:
    """What the table says of words of the question."""
    return [next(text for words, text in SAID.items() if words in request.args[0]) for request in requests]


def likelihoods(_: Dummy, requests: Any) -> list[tuple[float, bool]]:
    """The later, the likelier."""
    return [(place - 3.0, False) for place, _ in enumerate(requests)]


Dummy.generate_until = answers
Dummy.loglikelihood = likelihoods
cli_evaluate()
