"""The rounds of a comparison: both orders at once, one need of each per step, and a last try at what cannot be read."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradewire_server.domain.item import Pair
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.domain.needs import Need
from gradewire_server.domain.result import (
    Compared,
    Failure,
    MetricResult,
    Status,
    Warning,  # noqa: A004 - as domain
    Winner,
)
from gradewire_server.metrics.checks import cut_warning
from gradewire_server.metrics.compared.order import Order
from gradewire_server.metrics.compared.parameters import CompareParameters
from gradewire_server.metrics.compared.shown_pair import fixed_turns, show_pair
from gradewire_server.metrics.judged.prompt import judge_prompt
from gradewire_server.metrics.judged.prompts import Step, Variant
from gradewire_server.metrics.judged.prompts.shapes import EXTRACT
from gradewire_server.metrics.judged.rounds import added


@dataclass(slots=True)
class Asked:
    """A pair on its way, in both orders.

    Attributes:
        orders: A first, then B first.
        cut: Something of it was left out.
        masked: Words of an answer were not shown.
        prompt_tokens: Over both orders; None where the judge does not tell.
        generated_tokens: Likewise.
    """

    orders: tuple[Order, Order]
    cut: bool
    masked: bool
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0

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

    Returns:
        What it said; the result where that is no verdict of both: a failure, or UNPARSABLE.
    """
    file, variant = parameters.file, parameters.file.variants[parameters.variant]
    shown = show_pair(pair, parameters)
    a_first, b_first = shown.orders
    asked = Asked((Order(Winner.A, a_first), Order(Winner.B, b_first)), shown.cut, shown.masked)
    fixed = fixed_turns(file, parameters.variant, caption=parameters.caption, image=parameters.image)
    images = pair.images if parameters.image else ()
    for step in variant.steps:
        open_orders = [order for order in asked.orders if order.unreadable is None]
        prompts = [judge_prompt(fixed, order.rendered, variant, order.answers, images) for order in open_orders]
        failure = yield from _round(asked, parameters.model, step, open_orders, prompts, variant)
        if failure is not None:
            return asked.failed(failure)
    if EXTRACT in file.variants:
        failure = yield from _extract(asked, parameters)
        if failure is not None:
            return asked.failed(failure)
    unread = next((order.unreadable for order in asked.orders if order.unreadable), None)
    return asked if unread is None else asked.failed(unread)


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
                return answer
            order.unreadable = answer
            continue
        asked.prompt_tokens = added(asked.prompt_tokens, answer.prompt_tokens)
        asked.generated_tokens = added(asked.generated_tokens, answer.generated_tokens)
        asked.cut |= answer.truncated
        if isinstance(answer, Choice):
            order.chose(step, answer)
        else:
            order.wrote(step, answer, variant.delimiters)
    return None
