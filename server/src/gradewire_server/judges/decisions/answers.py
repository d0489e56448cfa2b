"""Reads what a decision server answered; nothing in it is trusted."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gradewire_server.judges.decisions.asked import Asked
from gradewire_server.judges.decisions.forms import OTHER_LABELS, Form, Given
from gradewire_server.judges.remote.errors import RemoteError, unreadable
from gradewire_server.judges.remote.http_client import Reply
from gradewire_server.judges.remote.replies import count, json_object
from gradewire_server.judges.remote.server import Answer

_ROUNDING: Final = 0.005
"""Of one probability: servers round to four digits (sparrow-decider), or at worst to two."""
_ARITHMETIC: Final = 1e-9


def answer_of(reply: Reply, form: Form, asked: Asked) -> Answer:
    """The probabilities of the options of the one question of a request; raises RemoteError where they are none.

    They are those of exactly the labels, finite, 0 to 1 each, and sum to 1 but for what rounding to two digits leaves,
    0.005 a label, which is divided out.
    """
    (answer,) = answers_of(reply, form, (asked,))
    if isinstance(answer, RemoteError):
        raise answer
    return answer


def answers_of(reply: Reply, form: Form, asked: Sequence[Asked]) -> list[Answer | RemoteError]:
    """Likewise for each question of a request; what is wrong with one answer stands in its place.

    The tokens of the request are shared out evenly among the answers, the first ones getting one more where that leaves
    some over. Raises RemoteError where the questions are not answered each.
    """
    read = json_object(reply.content)
    checked = [_checked(form, given, one) for one, given in zip(asked, form.answers(read, len(asked)), strict=True)]
    usage = read.get("usage")
    counts = _counts(usage if isinstance(usage, dict) else {})
    good = sum(not isinstance(each, RemoteError) for each in checked)
    shares = zip(*(_shared(tokens, good) for tokens in counts), strict=True)
    return [each if isinstance(each, RemoteError) else _answer(each, *next(shares)) for each in checked]


def _answer(probabilities: tuple[float, ...], prompt_tokens: int | None, generated_tokens: int | None) -> Answer:
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


def _shared(tokens: int | None, count: int) -> list[int | None]:
    return [None if tokens is None else tokens // count + (place < tokens % count) for place in range(count)]


def _checked(form: Form, answer: object, asked: Asked) -> tuple[float, ...] | RemoteError:
    try:
        return _distribution(form.given(answer), tuple(asked.options))
    except RemoteError as error:
        return error


def _distribution(given: Given, labels: tuple[str, ...]) -> tuple[float, ...]:
    if given.keys() != set(labels):
        raise unreadable(OTHER_LABELS)
    shares = [_probability(given[label]) for label in labels]
    total = math.fsum(shares)
    if not abs(total - 1) <= _ROUNDING * len(shares) + _ARITHMETIC:
        raise unreadable(f"probabilities that sum to {total:.3g} in place of 1")
    return tuple(share / total for share in shares)


def _probability(value: object) -> float:
    # Written so that a NaN is refused too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise unreadable("a probability that is none: each must be a number from 0 to 1")
    return float(value)


def _counts(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    # No question has no token: a server that says 0 does not count (sparrow-decider).
    read = count(usage.get("input_tokens", usage.get("prompt_tokens"))) or None
    written = count(usage.get("output_tokens", usage.get("completion_tokens")))
    return read, written if read is not None else None
