"""Metric `compare`: a judge's choice between two answers in both orders.

Source: Bitton et al. 2023, "VisIT-Bench", section 4.3 and appendix F. The judge may see references, and may choose a
tie.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from gradewire_proto.choices import CompareDecision, CompareMode, ShownReferences
from gradewire_server.domain.items import (
    Compared,
    Failure,
    Item,
    MetricResult,
    OrderVerdict,
    Pair,
    Status,
    Winner,
)
from gradewire_server.domain.judge import Choice, Generated, JudgePrompt, Turn
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Program, Rounds
from gradewire_server.metrics.common import (
    FailureError,
    NothingToPrepare,
    scoring,
    stop_at,
)
from gradewire_server.metrics.judged.compared_texts import CompareParameters, check_pair, look_the_same, show_texts
from gradewire_server.metrics.judged.listwise import rank_by_judge, rank_by_rule
from gradewire_server.metrics.judged.metric import (
    WRITTEN,
    Answer,
    Chosen,
    Exchange,
    ask_for_text,
    ask_step,
    read_answer,
    read_text,
)
from gradewire_server.metrics.judged.prompt import judge_prompt, turns_before
from gradewire_server.metrics.judged.references import (
    count_references,
    shown_references,
    write_references,
)
from gradewire_server.metrics.prompts.neutralise import (
    MAX_CHARACTERS,
    Delimiters,
    neutralise,
)
from gradewire_server.metrics.prompts.prompt_file import (
    EXTRACT,
    PAIR_SETS,
    Demonstration,
    NoVerdict,
    PromptFile,
    Step,
    Variant,
)
from gradewire_server.metrics.prompts.reading import spoken_text
from gradewire_server.metrics.prompts.template import Rendered


def winner_of(probabilities: tuple[float, float, float]) -> Winner:
    """Return the answer that is more probable than the other answer and than a tie; if neither is, return a tie."""
    a, b, tie = probabilities
    if a > b and a > tie:
        return Winner.A
    return Winner.B if b > a and b > tie else Winner.TIE


def decide(said: Sequence[Winner], decision: CompareDecision) -> Winner | None:
    """Return a pair's winner from the winners in both orders; None if the orders contradict each other.

    BOTH requires the same winner in both orders. With MAJORITY, a win and a tie together also count as a win.
    """
    found = set(said)
    if len(found) == 1:
        return found.pop()
    found.discard(Winner.TIE)
    return found.pop() if decision is CompareDecision.MAJORITY and len(found) == 1 else None


_FIRST, _SECOND, _TIE = 1.0, 0.0, 0.5


@dataclass(slots=True)
class Order:
    """A pair in one order, with the judge's answers by step name.

    `probabilities` are for answer A, answer B and a tie. `extracted` is True if they were extracted from the reason.
    """

    first: Winner
    rendered: Rendered
    answers: dict[str, str] = field(default_factory=dict)
    probabilities: tuple[float, float, float] | None = None
    label_mass: float | None = None
    extracted: bool = False
    unreadable: Failure | None = None

    @property
    def reason(self) -> str:
        """The judge's reason, or "" if the judge wrote no reason."""
        return self.answers.get("reason", "")

    @property
    def verdict(self) -> OrderVerdict:
        """The judge's verdict in this order."""
        winner = None if self.probabilities is None else winner_of(self.probabilities)
        return OrderVerdict(
            self.first, winner, self.probabilities, self.label_mass, self.reason, extracted=self.extracted
        )

    def take(self, step: Step, answer: Answer, delimiters: Delimiters) -> None:
        """Store the judge's answer to a step. A label's value is the score of the answer that the judge saw first."""
        read = read_answer(step, answer, delimiters)
        self.unreadable = read if isinstance(read, Failure) else None
        if isinstance(read, Failure):
            return
        self.answers[step.name] = read
        if isinstance(answer, Choice):
            self._choose(Chosen(step, answer))

    def take_text(self, variant: Variant, answer: Generated | Failure) -> None:
        """Store the judge's one text, with the reason and the winner."""
        if isinstance(answer, Generated):
            self.answers[WRITTEN] = spoken_text(answer.text)
        chosen = read_text(variant, answer)
        self.unreadable = chosen if isinstance(chosen, Failure) else None
        if isinstance(chosen, Mapping):
            self._choose(chosen[variant.last.name])

    def _choose(self, chosen: Chosen) -> None:
        weighted = chosen.step.weighted(chosen.choice.probabilities)
        first, second, tie = (
            sum(share for share, value in weighted if value == wanted) for wanted in (_FIRST, _SECOND, _TIE)
        )
        a, b = (first, second) if self.first is Winner.A else (second, first)
        self.probabilities, self.label_mass = (a, b, tie), chosen.choice.mass


_SCORE_BY_WINNER: Final = {Winner.A: 1.0, Winner.B: 0.0, Winner.TIE: 0.5}
_WINNER_LABELS: Final = {Winner.A: "answer A", Winner.B: "answer B", Winner.TIE: "a tie"}
_MIN_SHOWN_CHARACTERS: Final = 64


@dataclass(slots=True)
class PairRounds(Exchange):
    """A pair that a judge sees in both orders, first with A before B.

    `characters` is the shown length of the longer answer. `too_long` is True if the judge cut or rejected an answer
    because of its length.
    """

    orders: tuple[Order, Order]
    characters: int
    too_long: bool = False

    @property
    def alike(self) -> bool:
        """True if the judge would see the same text for both answers."""
        return self.orders[0].rendered == self.orders[1].rendered

    def compared(self, winner: Winner | None = None) -> Compared:
        """Return the outcome so far."""
        verdicts = tuple(order.verdict for order in self.orders)
        return Compared(winner, verdicts, "judge" if winner else "", *self.tokens)

    def tied(self) -> MetricResult:
        """Return the result of a pair that is `alike`."""
        compared = replace(self.compared(Winner.TIE), orders=(), decided_by="rule")
        return MetricResult(_SCORE_BY_WINNER[Winner.TIE], warnings=self.warnings, compared=compared)

    def failed(self, failure: Failure) -> MetricResult:
        """Return a result without a winner. If the judge answered without a clear verdict, include its answers."""
        result = MetricResult.failed(failure)
        if failure.status not in {Status.UNPARSABLE, Status.INCONSISTENT}:
            return replace(result, compared=replace(self.compared(), orders=())) if self.is_billed else result
        return replace(result, warnings=self.warnings, compared=self.compared())


def show_pair(pair: Pair, parameters: CompareParameters, most_characters: int = MAX_CHARACTERS) -> PairRounds:
    """Fill a checked pair into its variant's template, with at most `most_characters` of each answer.

    If a pair's answers are swapped, the new pair has the same two orders and shares the old pair's cached verdicts.
    """
    variant = parameters.judged_variant
    shown = show_texts(pair, parameters, variant.delimiters, most_characters)
    orders = (
        Order(Winner.A, _rendered(variant, shown.fields, shown.answers)),
        Order(Winner.B, _rendered(variant, shown.fields, shown.answers[::-1])),
    )
    return PairRounds(shown.cut, shown.masked, orders, shown.characters)


@lru_cache(maxsize=64)
def fixed_turns(file: PromptFile, variant_name: str, *, caption: bool, image: bool) -> tuple[Turn, ...]:
    """Return the turns before a pair's turn: the instructions, and two turns for each demonstration."""
    variant = file.variants[variant_name]
    solved = file.demonstrations.get(PAIR_SETS[0], ()) if variant.demonstrations else ()
    written = [_demonstrated(file, variant, demonstration, caption=caption) for demonstration in solved]
    return turns_before(variant, zip(written, solved, strict=True), caption=caption, image=image)


def _demonstrated(file: PromptFile, variant: Variant, solved: Demonstration, *, caption: bool) -> Rendered:
    references = ""
    if solved.references:
        counted = count_references(solved.references)
        shown = shown_references(solved.references, counted, "", file.references, ShownReferences.ALL)
        references = write_references(shown.counted, file.references, variant.delimiters)
    fields = {
        "question": neutralise(solved.question, variant.delimiters),
        "caption": neutralise(solved.caption, variant.delimiters) if caption else "",
        "references": references,
    }
    answers = tuple(neutralise(answer, variant.delimiters) for answer in (solved.prediction, solved.second))
    return _rendered(variant, fields, answers)


def _rendered(variant: Variant, fields: Mapping[str, str], answers: tuple[str, ...]) -> Rendered:
    first, second = answers
    return variant.item.render({**fields, "first": first, "second": second})


def ask_both_orders(pair: Pair, parameters: CompareParameters) -> Rounds[PairRounds]:
    """Ask a judge about a pair that passes `check_pair`, with both orders in the same round.

    If the judge cuts or rejects a long answer, cut both answers to half of the longer answer's length and ask again. If
    the answers look the same after cutting, do not ask the judge.

    Raises:
        FailureError: An order has no verdict.
    """
    asked: PairRounds | None = None
    while True:
        most = MAX_CHARACTERS if asked is None else asked.characters // 2
        before, asked = asked, show_pair(pair, parameters, most)
        if before is not None:
            asked.count(before)
        if asked.alike:
            return asked
        shortens = asked.characters >= 2 * _MIN_SHOWN_CHARACTERS
        failure = yield from _ask(asked, pair, parameters, shortens=shortens)
        if shortens and asked.too_long:
            continue
        if failure is not None:
            raise FailureError(failure, asked.failed(failure))
        return asked


def _ask(asked: PairRounds, pair: Pair, parameters: CompareParameters, *, shortens: bool) -> Rounds[Failure | None]:
    """Ask the judge all steps in both orders, then try to extract missing verdicts; return a failure or None.

    If `shortens` is True, stop if an answer is too long, because the caller will ask again with shorter answers.
    """
    file, variant = parameters.file, parameters.file.variants[parameters.variant]
    fixed = fixed_turns(file, parameters.variant, caption=parameters.caption, image=parameters.image)
    images = pair.images if parameters.image else ()
    try:
        for step in variant.steps:
            asking = [
                (order, judge_prompt(fixed, order.rendered, variant, order.answers, images))
                for order in asked.orders
                if order.unreadable is None
            ]
            if variant.max_tokens:  # such a variant has one step
                yield from _ask_for_texts(asked, parameters.model, variant, asking)
            else:
                yield from _ask_step_in_orders(asked, parameters.model, step, asking, variant.delimiters)
            if shortens and asked.too_long:
                return None
        if EXTRACT in file.variants:
            yield from _extract_missing_verdicts(asked, parameters)
    except FailureError as error:
        return error.failure
    return next((order.unreadable for order in asked.orders if order.unreadable), None)


def _extract_missing_verdicts(asked: PairRounds, parameters: CompareParameters) -> Rounds[None]:
    file, variant = parameters.file, parameters.file.variants[EXTRACT]
    fixed = fixed_turns(file, EXTRACT, caption=False, image=False)
    asking = [
        (order, judge_prompt(fixed, _rendered_reason(variant, order.reason), variant, {}))
        for order in asked.orders
        if order.unreadable is not None and order.reason
    ]
    yield from _ask_step_in_orders(asked, parameters.model, variant.last, asking, variant.delimiters)
    for order, _ in asking:
        order.extracted = order.unreadable is None


def _rendered_reason(variant: Variant, reason: str) -> Rendered:
    # A reason from a judge's one text has all its lines, and may repeat an attack from an answer.
    return variant.item.render({"reason": neutralise(reason, variant.delimiters)})


def _ask_for_texts(
    asked: PairRounds, model: str, variant: Variant, asking: Sequence[tuple[Order, JudgePrompt]]
) -> Rounds[None]:
    answers = yield from ask_for_text(model, variant, [prompt for _, prompt in asking])
    _count(asked, answers)
    for (order, _), answer in zip(asking, answers, strict=True):
        order.take_text(variant, answer)
    _stop_without_verdict(asking)


def _ask_step_in_orders(
    asked: PairRounds, model: str, step: Step, asking: Sequence[tuple[Order, JudgePrompt]], delimiters: Delimiters
) -> Rounds[None]:
    if not asking:
        return
    answers = yield from ask_step(model, step, [prompt for _, prompt in asking])
    _count(asked, answers)
    for (order, _), answer in zip(asking, answers, strict=True):
        order.take(step, answer, delimiters)
    _stop_without_verdict(asking)


def _count(asked: PairRounds, answers: Sequence[Answer]) -> None:
    """Count the tokens of all answers, then raise FailureError if the judge failed."""
    for answer in answers:
        asked.count(answer)
    for answer in answers:
        if not isinstance(answer, Failure):
            asked.cut |= answer.truncated
            asked.too_long |= answer.truncated
        elif answer.status is not Status.UNPARSABLE:
            asked.too_long |= answer.status is Status.INVALID_INPUT
            raise FailureError(answer)


def _stop_without_verdict(asking: Sequence[tuple[Order, JudgePrompt]]) -> None:
    """Raise FailureError if the judge chose a label that is no verdict, because its reason has no verdict either."""
    failure = next((order.unreadable for order, _ in asking if isinstance(order.unreadable, NoVerdict)), None)
    if failure is not None:
        raise FailureError(failure)


class Compare(NothingToPrepare):
    """A judge's choice between two answers. Answers that look alike are a tie without the judge."""

    info = MetricInfo(
        name="compare",
        version=1,
        description="A language model's choice between two answers, which are shown in both orders.",
        citation="Bitton et al. 2023, VisIT-Bench, NeurIPS",
        needs_judge=True,
        advice="For short answers with references, smile and correctness choose better and need no judge. A small "
        "judge prefers the first answer. See docs/research/ratings.md#pairs-of-answers-by-the-default-judge.",
    )
    parameters_type = CompareParameters

    @scoring
    def score(self, item: Item, parameters: CompareParameters, metadata: ModelMetadata) -> Program:
        """Compare a pair's answers. Each step of the prompt's variant takes one round.

        Raises:
            TypeError: The item is not a pair.
        """
        del metadata
        if not isinstance(item, Pair):
            raise TypeError(f"compare needs a pair of answers, not {type(item).__name__}")
        stop_at(check_pair(item, parameters))
        if parameters.mode is CompareMode.LISTWISE:
            return rank_by_rule(item) if look_the_same(item) else (yield from rank_by_judge(item, parameters))
        if look_the_same(item):
            return MetricResult(score=_SCORE_BY_WINNER[Winner.TIE], compared=Compared(Winner.TIE, decided_by="rule"))
        asked = yield from ask_both_orders(item, parameters)
        return asked.tied() if asked.alike else _decided(asked, parameters.decision)


def _decided(asked: PairRounds, decision: CompareDecision) -> MetricResult:
    said = [order.verdict.winner or Winner.TIE for order in asked.orders]
    winner = decide(said, decision)
    if winner is None:
        verdicts = ", and ".join(
            f"{_WINNER_LABELS[each]} if it sees {_WINNER_LABELS[order.first]} first"
            for each, order in zip(said, asked.orders, strict=True)
        )
        return asked.failed(Failure(Status.INCONSISTENT, f"the judge chooses {verdicts}"))
    return MetricResult(_SCORE_BY_WINNER[winner], warnings=asked.warnings, compared=asked.compared(winner))
