"""What the handlers of all requests share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.metric import Metric
from gradewire_server.domain.ports import Ports
from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS, PromptLibrary
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.admission.admission import Admission
from gradewire_server.requests.counters import CountResult, CountSynthetic, count_no_answers, count_no_results
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.requests.planning.metric_plan import MetricPlan
from gradewire_server.requests.planning.planner import Planner
from gradewire_server.requests.prompts.inline import read_ahead
from gradewire_server.scoring import Scorer
from gradewire_server.settings.limits import Capacity, Deadlines, Limits


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One per server; handlers get it and nothing else.

    Attributes:
        scorer: Runs metrics.
        ports: For requests that ask for models or words without scoring.
        prompts: Prompt files that requests may name.
        metrics: By name.
        limits: Of one request.
        deadlines: Of one request.
        admission: Permits of what is in flight.
        count_result: Called for every result.
        count_synthetic: Called when references have got a synthetic answer.
        planner: Resolves metrics, models and prompts.
    """

    scorer: Scorer
    ports: Ports
    prompts: PromptLibrary = PACKAGE_PROMPTS
    metrics: Mapping[str, Metric[Any]] = field(default_factory=lambda: REGISTRY)
    limits: Limits = field(default_factory=Limits)
    deadlines: Deadlines = field(default_factory=Deadlines)
    admission: Admission = field(default_factory=lambda: Admission(Capacity()))
    count_result: CountResult = count_no_results
    count_synthetic: CountSynthetic = count_no_answers
    planner: Planner = field(init=False)

    def __post_init__(self) -> None:
        planner = Planner(self.ports, self.metrics, self.prompts)
        object.__setattr__(self, "planner", planner)

    def within(self, namespace: str) -> Self:
        """The same over the sets, verdicts and cache entries of a tenant's namespace."""
        ports = self.ports.within(namespace)
        view = replace(self, ports=ports, scorer=self.scorer.within(ports, namespace))
        # Plans depend on specs and models, which all tenants share.
        object.__setattr__(view, "planner", self.planner)
        return view

    def check_count(self, count: int, path: str) -> None:
        """Raises InvalidRequestError where one message brings too many items or entries."""
        if count > self.limits.max_items_per_request:
            raise InvalidRequestError(
                path, f"{count} of them, at most {self.limits.max_items_per_request} are allowed in one message"
            )

    async def plan_comparison(self, parameters: types_pb2.CompareParameters, path: str) -> MetricPlan:
        """Resolves the comparison of a call; raises as `plan`."""
        spec = types_pb2.MetricSpec(compare=parameters)
        await read_ahead(self.prompts, (spec,))
        return self.planner.plan_comparison(spec, path)

    async def plan(self, metrics: Sequence[types_pb2.MetricSpec], path: str = "metrics") -> list[MetricPlan]:
        """Resolves the metrics of a request that names at least one.

        Raises:
            InvalidRequestError: None or too many, or the planner cannot understand one.
            NothingLoadedError: No metric of the request can be computed here.
        """
        if not metrics:
            raise InvalidRequestError(path, "at least one is needed")
        if len(metrics) > self.limits.max_metrics_per_request:
            raise InvalidRequestError(
                path,
                f"{len(metrics)} of them, at most {self.limits.max_metrics_per_request} are allowed in one request",
            )
        await read_ahead(self.prompts, metrics)
        return self.planner.plan(metrics, path)
