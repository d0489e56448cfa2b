"""One question with all answers to a prompt, which a judge puts in order, for several orders of the answers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate
from typing import Final

from gradewire_proto.wire_rules import MAX_LISTED_ANSWERS
from gradewire_server.domain.items import Compared, Failure, ListVerdict, MetricResult, Pair, Status, quoted
from gradewire_server.domain.judge import Generate, Generated
from gradewire_server.domain.needs import Rounds
from gradewire_server.metrics.common import FailureError
from gradewire_server.metrics.judged.compared_texts import CompareParameters, ShownTexts, show_texts
from gradewire_server.metrics.judged.metric import Exchange
from gradewire_server.metrics.judged.prompt import judge_prompt, turns_before
from gradewire_server.metrics.prompts.neutralise import MAX_CHARACTERS, Delimiters

LIST_SCORE: Final = 0.5
_NAME: Final = "Answer"
_NUMBERS: Final = tuple(map(str, range(1, MAX_LISTED_ANSWERS + 1)))
_SIGN: Final = re.compile(r"\s*([>=])\s*")
_ANSWER: Final = re.compile(rf"(?:{_NAME} ?)?([1-9][0-9]?)", re.IGNORECASE)
_NAMES: Final = (_NAME, *(f"{_NAME} {number}" for number in _NUMBERS))
_PRAISE: Final = Delimiters(labels=("1 > 2",))
"""With numbers as labels, grades and scores that answers state would be praise: "her grade is 12"."""
_MIN_SHOWN_CHARACTERS: Final = 64


def list_orders(answers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the orders in which a judge sees the answers, as positions in `answers`: 4 orders, or 2 of two answers.

    Any two answers precede each other equally often. The orders depend on the texts, not on their positions, so that
    the same answers in another order need no new question.
    """
    base = tuple(sorted(range(len(answers)), key=lambda place: blake2b(answers[place].encode()).digest()))
    half = len(base) // 2
    turned = base[half:] + base[:half]
    return tuple(dict.fromkeys((base, base[::-1], turned, turned[::-1])))


def read_ranks(text: str, count: int) -> tuple[int, ...] | None:
    """Return the ranks of `count` numbered answers that a text like "2 > 1 = 3" states, or None if it is none.

    The text must contain each number once and nothing else, apart from "Answer" before a number and a final full stop.
    """
    first, *rest = _SIGN.split(text.strip().removesuffix(".").rstrip())
    found = [_ANSWER.fullmatch(piece) for piece in (first, *rest[1::2])]
    numbers = [int(match[1]) for match in found if match is not None]
    if len(numbers) < len(found) or sorted(numbers) != list(range(1, count + 1)):
        return None
    # An answer after "=" has the rank of the answer before it; any other one ranks after all answers before it.
    places = [0, *(place if sign == ">" else 0 for place, sign in enumerate(rest[::2], 1))]
    ranks = {number: place + 1 for number, place in zip(numbers, accumulate(places, max), strict=True)}
    return tuple(ranks[number] for number in range(1, count + 1))


@dataclass(slots=True)
class _ListRounds(Exchange):
    lists: tuple[ListVerdict, ...] = ()

    def compared(self, decided_by: str = "") -> Compared:
        return Compared(None, (), decided_by, *self.tokens, self.lists)

    def failed(self, failure: Failure) -> FailureError:
        result = MetricResult.failed(failure)
        if failure.status is Status.UNPARSABLE:
            result = replace(result, warnings=self.warnings, compared=self.compared())
        elif self.is_billed:
            result = replace(result, compared=replace(self.compared(), lists=()))
        return FailureError(failure, result)


def rank_by_rule(pair: Pair) -> MetricResult:
    """Return the result of a list whose answers look the same."""
    places = tuple(range(len(pair.answers)))
    lists = (ListVerdict(places, tuple(1 for _ in places)),)
    return MetricResult(LIST_SCORE, compared=Compared(decided_by="rule", lists=lists))


def rank_by_judge(pair: Pair, parameters: CompareParameters) -> Rounds[MetricResult]:
    """Ask a judge to order the answers of a list that passes `check_pair`, in all orders in the same round.

    If the list is too long for the judge, cut its answers to half of the longest answer's length and ask again.

    Raises:
        FailureError: The judge failed, or one of its orders cannot be read.
    """
    asked = _ListRounds(cut=False, masked=False)
    most = MAX_CHARACTERS
    given = parameters.judged_variant.delimiters
    delimiters = replace(given, names=(*given.names, *_NAMES), labels=_NUMBERS)
    while True:
        shown = show_texts(pair, parameters, delimiters, most, praise=_PRAISE)
        asked.cut, asked.masked = shown.cut, shown.masked
        failure = yield from _ask(asked, pair, shown, parameters)
        if failure is None:
            return MetricResult(LIST_SCORE, warnings=asked.warnings, compared=asked.compared("judge"))
        if failure.status is not Status.INVALID_INPUT or shown.characters < 2 * _MIN_SHOWN_CHARACTERS:
            raise asked.failed(failure)
        most = shown.characters // 2


def _ask(asked: _ListRounds, pair: Pair, shown: ShownTexts, parameters: CompareParameters) -> Rounds[Failure | None]:
    """Ask for all orders, and store the judge's rankings; return the first failure."""
    variant = parameters.judged_variant
    step, image = variant.last, parameters.image
    fixed = turns_before(variant, (), caption=parameters.caption, image=image)
    orders = list_orders(shown.answers)
    needs = []
    for order in orders:
        listed = "\n".join(f"{_NAME} {number}: {shown.answers[place]}" for number, place in enumerate(order, 1))
        rendered = variant.item.render({**shown.fields, "answers": listed})
        prompt = judge_prompt(fixed, rendered, variant, {}, pair.images if image else ())
        example = " > ".join(_NUMBERS[: len(order)])
        needs.append(Generate(parameters.model, prompt, step.max_tokens, ("\n",), example=example))
    answers: tuple[Generated | Failure, ...] = yield tuple(needs)
    failures: list[Failure] = []
    lists: list[ListVerdict] = []
    for order, answer in zip(orders, answers, strict=True):
        asked.count(answer)
        if isinstance(answer, Failure):
            failures.append(answer)
            lists.append(ListVerdict(order))
            continue
        asked.cut |= answer.truncated
        ranks = read_ranks(answer.text, len(order)) if answer.complete else None
        if ranks is None:
            failures.append(_unreadable(answer, len(order)))
        by_place = dict(zip(order, ranks or (), strict=False))
        lists.append(ListVerdict(order, tuple(by_place[place] for place in sorted(by_place))))
    asked.lists = tuple(lists)
    # A failure that may pass says more than an order that cannot be read.
    return min(failures, key=lambda each: each.status is Status.UNPARSABLE, default=None)


def _unreadable(answer: Generated, count: int) -> Failure:
    said = quoted(answer.text) if answer.complete else f"{quoted(answer.text)}, which its limit of tokens cut"
    return Failure(
        Status.UNPARSABLE, f"the judge's order is not the numbers 1 to {count} with > or = between them: {said}"
    )
