"""The rounds of a comparison: both orders at once, one need of each per step, and a last try at what cannot be read."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gradewire_server.domain.comparison import Compared, Winner
from gradewire_server.domain.item import Pair
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.domain.needs import Need
from gradewire_server.domain.result import Failure, MetricResult, Status, Warning  # noqa: A004 - as domain
from gradewire_server.metrics.checks import cut_warning
from gradewire_server.metrics.compared.order import Order
from gradewire_server.metrics.compared.parameters import CompareParameters
from gradewire_server.metrics.compared.shown_pair import ShownPair, fixed_turns, show_pair
from gradewire_server.metrics.judged.neutralise import MAX_CHARACTERS
from gradewire_server.metrics.judged.prompt import judge_prompt
from gradewire_server.metrics.judged.prompts import Step, Variant
from gradewire_server.metrics.judged.prompts.shapes import EXTRACT
from gradewire_server.metrics.judged.rounds import added

TIE_POINTS: Final = 0.5
"""Score of a tie; a win of answer A has 1, one of answer B 0."""
_LEAST_CHARACTERS: Final = 64
"""Of an answer that is cut for a judge: with less of it there is nothing to compare."""
_NO_TOKENS: Final[int | None] = 0


@dataclass(slots=True)
class Asked:
    """A pair on its way, in both orders.

    Attributes:
        orders: A first, then B first.
        cut: Something of it was left out.
        masked: Words of an answer were not shown.
        prompt_tokens: Over both orders; None where the judge does not tell.
        generated_tokens: Likewise.
        too_long: The judge cut an answer, or has no room for one.
    """

    orders: tuple[Order, Order]
    cut: bool
    masked: bool
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0
    too_long: bool = False

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What was not shown as it was written."""
        return (*cut_warning(self.cut), *((Warning.MASKED,) if self.masked else ()))

    def compared(self, winner: Winner | None = None) -> Compared:
        """What there is to say of it."""
        told = self.prompt_tokens is not None and self.generated_tokens is not None
        return Compared(
            winner,
            tuple(order.verdict for order in self.orders),
            "judge" if winner else "",
            self.prompt_tokens if told else None,
            self.generated_tokens if told else None,
        )

    def tied(self) -> MetricResult:
        """The result where both answers are shown alike."""
        compared = replace(self.compared(Winner.TIE), orders=(), decided_by="rule")
        return MetricResult(TIE_POINTS, warnings=self.warnings, compared=compared)

    def failed(self, failure: Failure) -> MetricResult:
        """The result where there is no winner; what was read of an answer that cannot be read stands beside it."""
        result = MetricResult.failed(failure)
        if failure.status not in {Status.UNPARSABLE, Status.INCONSISTENT}:
            return result
        return replace(result, warnings=self.warnings, compared=self.compared())


def ask_both_orders(
    pair: Pair, parameters: CompareParameters
) -> Generator[tuple[Need, ...], Any, Asked | MetricResult]:
    """Asks a judge about a pair that passes `check_pair`, in both orders in the same round.

    A judge cuts what is too long for it at the end, and so the answer that it is shown last. Where it does, both
    answers are cut to half of the longer one, as often as it takes, and shown again. Answers that differ in nothing
    that would be shown are a tie, for which it is not asked.

    Returns:
        What it said; the result where that is no verdict of both: a tie by rule, a failure, or UNPARSABLE.
    """
    most, read, written = MAX_CHARACTERS, _NO_TOKENS, _NO_TOKENS
    while True:
        shown = show_pair(pair, parameters, most)
        asked = Asked(_orders(shown), shown.cut, shown.masked, read, written)
        if shown.alike:
            return asked.tied()
        shortens = shown.characters >= 2 * _LEAST_CHARACTERS
        failure = yield from _ask(asked, pair, parameters, shortens=shortens)
        if not (shortens and asked.too_long):
            return asked if failure is None else asked.failed(failure)
        most, read, written = shown.characters // 2, asked.prompt_tokens, asked.generated_tokens


def _orders(shown: ShownPair) -> tuple[Order, Order]:
    a_first, b_first = shown.orders
    return Order(Winner.A, a_first), Order(Winner.B, b_first)


def _ask(
    asked: Asked, pair: Pair, parameters: CompareParameters, *, shortens: bool
) -> Generator[tuple[Need, ...], Any, Failure | None]:
    """All steps of both orders, and a last try at what cannot be read.

    Args:
        asked: Takes what the judge says.
        pair: The pair.
        parameters: Say how it is asked.
        shortens: Whether it is asked again where an answer is too long, so that going on is of no use.

    Returns:
        Why there is no verdict of both.
    """
    file, variant = parameters.file, parameters.file.variants[parameters.variant]
    fixed = fixed_turns(file, parameters.variant, caption=parameters.caption, image=parameters.image)
    images = pair.images if parameters.image else ()
    for step in variant.steps:
        orders = [order for order in asked.orders if order.unreadable is None]
        prompts = [judge_prompt(fixed, order.rendered, variant, order.answers, images) for order in orders]
        failure = yield from _round(asked, parameters.model, step, orders, prompts, variant)
        if failure is not None or (shortens and asked.too_long):
            return failure
    if EXTRACT in file.variants:
        failure = yield from _extract(asked, parameters)
        if failure is not None:
            return failure
    return next((order.unreadable for order in asked.orders if order.unreadable), None)


def _extract(asked: Asked, parameters: CompareParameters) -> Generator[tuple[Need, ...], Any, Failure | None]:
    """Reads the verdicts that cannot be read behind a reason from the reason alone."""
    file, variant = parameters.file, parameters.file.variants[EXTRACT]
    unread = [order for order in asked.orders if order.unreadable is not None and order.reason]
    fixed = fixed_turns(file, EXTRACT, caption=False, image=False)
    prompts = [judge_prompt(fixed, variant.item.render({"reason": order.reason}), variant, {}) for order in unread]
    failure = yield from _round(asked, parameters.model, variant.last, unread, prompts, variant)
    for order in unread:
        order.extracted = order.unreadable is None
    return failure


def _round(  # noqa: PLR0913, PLR0917 - whom to ask what, of which orders
    asked: Asked, model: str, step: Step, orders: Sequence[Order], prompts: Sequence[JudgePrompt], variant: Variant
) -> Generator[tuple[Need, ...], Any, Failure | None]:
    """One step of some orders; what fails for another reason than that it cannot be read."""
    if not orders:
        return None
    if step.labels:
        needs: tuple[Need, ...] = tuple(Choose(model, prompt, step.labels) for prompt in prompts)
    else:
        needs = tuple(Generate(model, prompt, step.max_tokens, ("\n",)) for prompt in prompts)
    answers: tuple[Choice | Generated | Failure, ...] = yield needs
    for order, answer in zip(orders, answers, strict=True):
        if isinstance(answer, Failure):
            if answer.status is not Status.UNPARSABLE:
                asked.too_long |= answer.status is Status.INVALID_INPUT
                return answer
            order.unreadable = answer
            continue
        asked.prompt_tokens = added(asked.prompt_tokens, answer.prompt_tokens)
        asked.generated_tokens = added(asked.generated_tokens, answer.generated_tokens)
        asked.cut |= answer.truncated
        asked.too_long |= answer.truncated
        if isinstance(answer, Choice):
            order.chose(step, answer)
        else:
            order.wrote(step, answer, variant.delimiters)
    return None
