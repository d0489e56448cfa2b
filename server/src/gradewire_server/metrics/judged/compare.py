"""The better of two answers in a judge's eyes, asked in both orders.

Source: Bitton et al. 2023, "VisIT-Bench", section 4.3 and appendix F: reference-free and reference-backed, either
answer first, a tie where the judge says so.
"""

from dataclasses import dataclass, replace
from typing import Final

from gradewire_server.domain.items import Compared, Failure, Item, MetricResult, Pair, ReferenceEntry, Status, Winner
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.metrics.common import check_references, scoring, stop_at
from gradewire_server.metrics.judged.pairs import (
    TIE_POINTS,
    CompareDecision,
    CompareParameters,
    PairRounds,
    ask_both_orders,
    check_pair,
    decide,
    look_the_same,
)

_POINTS: Final = {Winner.A: 1.0, Winner.B: 0.0, Winner.TIE: TIE_POINTS}
_WINNER_LABELS: Final = {Winner.A: "answer A", Winner.B: "answer B", Winner.TIE: "a tie"}


COMPARE_INFO: Final = MetricInfo(
    name="compare",
    version=1,
    description="Which of two answers a language model prefers, asked with either answer first.",
    citation="Bitton et al. 2023, VisIT-Bench, NeurIPS",
    needs_judge=True,
    advice="On short answers with references smile and correctness choose better and cost nothing; a small judge "
    "prefers what it is shown first: docs/research/comparisons.md.",
)
"""Its public face."""


@dataclass(frozen=True, slots=True)
class Compare:
    """Asks a judge which answer of a pair is the better one; answers that look the same are a tie without one."""

    info: MetricInfo = COMPARE_INFO
    parameters_type: type[CompareParameters] = CompareParameters

    @scoring
    def score(self, item: Item, parameters: CompareParameters, metadata: ModelMetadata) -> Program:
        """Two needs in one round for each step of the prompt's variant.

        Args:
            item: A Pair.
            parameters: Say how it is asked.
            metadata: Not looked at.

        Raises:
            TypeError: The item is no pair.
        """
        del metadata
        if not isinstance(item, Pair):
            raise TypeError(f"two answers are compared, not an {type(item).__name__}")
        stop_at(check_pair(item, parameters))
        if look_the_same(item):
            return MetricResult(score=TIE_POINTS, compared=Compared(Winner.TIE, decided_by="rule"))
        asked = yield from ask_both_orders(item, parameters)
        return asked if isinstance(asked, MetricResult) else _decided(asked, parameters.decision)

    def prepare(self, entry: ReferenceEntry, parameters: CompareParameters) -> Preparation:
        """Asks for nothing; only checks the references."""
        del parameters
        yield from ()
        return check_references(entry.references)


def _decided(asked: PairRounds, decision: CompareDecision) -> MetricResult:
    said = [order.verdict.winner or Winner.TIE for order in asked.orders]
    winner = decide(said, decision)
    if winner is None:
        told = ", and ".join(
            f"{_WINNER_LABELS[each]} where it is shown {_WINNER_LABELS[order.first]} first"
            for each, order in zip(said, asked.orders, strict=True)
        )
        return asked.failed(Failure(Status.INCONSISTENT, f"the judge says {told}"))
    result = MetricResult(score=_POINTS[winner], warnings=asked.warnings)
    return replace(result, compared=asked.compared(winner))


COMPARE: Final = Compare()
"""The comparison as VisIT-Bench has it, reference-free unless told otherwise."""
