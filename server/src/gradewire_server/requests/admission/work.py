"""What is to be admitted."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from gradewire_server.domain.caller import Caller
from gradewire_server.requests.planning.metric_plan import MetricPlan


@dataclass(frozen=True, slots=True)
class Work:
    """A request, or a part of one.

    Attributes:
        caller: For whom.
        kind: Requests of one kind cost alike: the names of the metrics.
        size_bytes: How large it is.
        items: How many.
        judged: A judge is asked. It takes its turn in the judge's queue, for as long as that takes.
    """

    caller: Caller
    kind: Hashable
    size_bytes: int
    items: int
    judged: bool = False


def work_of(caller: Caller, plans: Sequence[MetricPlan], size_bytes: int, items: int) -> Work:
    """What a request with these metrics is, or a part of it."""
    kind = frozenset(plan.provenance.name for plan in plans)
    return Work(caller, kind, size_bytes, items, judged=any(plan.judged for plan in plans))
