"""Reads what a decision server answered; nothing in it is trusted."""

import math
from collections.abc import Mapping
from typing import Any, Final

from gradewire_server.judges.decisions.asked import Asked
from gradewire_server.judges.decisions.forms import OTHER_LABELS, Form, Given
from gradewire_server.judges.remote.errors import unreadable
from gradewire_server.judges.remote.http_client import Reply
from gradewire_server.judges.remote.replies import count, json_object
from gradewire_server.judges.remote.server import Answer

_ROUNDING: Final = 0.005
"""Of one probability: servers round to four digits (sparrow-decider), or at worst to two."""
_ARITHMETIC: Final = 1e-9


def answer_of(reply: Reply, form: Form, asked: Asked) -> Answer:
    """The probabilities of the options; raises RemoteError where they are none.

    They are those of exactly the labels, finite, 0 to 1 each, and sum to 1 but for what rounding to two digits leaves,
    0.005 a label, which is divided out.
    """
    read = json_object(reply.content)
    probabilities = _checked(form.given(read), tuple(asked.options))
    usage = read.get("usage")
    prompt_tokens, generated_tokens = _counts(usage if isinstance(usage, dict) else {})
    return Answer(
        text="",
        whole=True,
        steps=None,
        continued=False,
        prompt_tokens=prompt_tokens,
        generated_tokens=generated_tokens,
        probabilities=probabilities,
        demonstrated=False,
    )


def _checked(given: Given, labels: tuple[str, ...]) -> tuple[float, ...]:
    if given.keys() != set(labels):
        raise unreadable(OTHER_LABELS)
    shares = [_share(given[label]) for label in labels]
    total = math.fsum(shares)
    if not abs(total - 1) <= _ROUNDING * len(shares) + _ARITHMETIC:
        raise unreadable(f"probabilities that sum to {total:.3g} in place of 1")
    return tuple(share / total for share in shares)


def _share(value: object) -> float:
    # Written so that a NaN is refused too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise unreadable("a probability that is none: each must be a number from 0 to 1")
    return float(value)


def _counts(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    # No question has no token: a server that says 0 does not count (sparrow-decider).
    read = count(usage.get("input_tokens", usage.get("prompt_tokens"))) or None
    written = count(usage.get("output_tokens", usage.get("completion_tokens")))
    return read, written if read is not None else None
