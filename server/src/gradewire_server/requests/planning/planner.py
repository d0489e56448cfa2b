"""From a request's metric specs to what the scorer runs, with the models resolved and the provenance written."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from google.protobuf.message import Message

from gradewire_proto.conventions.string_bounds import MAX_SPEC_BYTES
from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.metric import Metric, MetricInfo, ModelMetadata, ParameterError
from gradewire_server.domain.ports import ModelIndex, ModelStatus, Ports
from gradewire_server.domain.quoting import shortened
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.judged.prompts import PromptLibrary
from gradewire_server.metrics.registry import COMPARISONS
from gradewire_server.requests.errors import InvalidRequestError, ModelReplacedError, NothingLoadedError
from gradewire_server.requests.metric_models import MetricModels, find_model
from gradewire_server.requests.model_states import USABLE_STATES
from gradewire_server.requests.parameters import read_parameters, write_line, write_spec
from gradewire_server.requests.planning.metric_plan import (
    MetricPlan,
    failed_plan,
    failed_provenance,
    with_model,
)
from gradewire_server.requests.string_bounds import LEAST_BOUND_BYTES, check_strings
from gradewire_server.scoring import MetricRequest

_CACHE_ENTRIES: Final = 256
_MAX_CACHE_BYTES: Final = 4 << 20
"""Of specs: an inline prompt file is worth remembering, for reading it takes longer than all the rest."""
_MAX_REASONS_CHARACTERS: Final = 700
"""Of an error of the call: what the metrics lack, so that what is here has room behind it."""


class Planner:
    """Resolves metric specs to plans, which it remembers.

    Args:
        ports: Say which encoders, judges and graders there are.
        metrics: By name.
        prompts: Where the prompts of judge metrics are looked up.
        comparisons: What grades pairs, by name.
    """

    def __init__(
        self,
        ports: Ports,
        metrics: Mapping[str, Metric[Any]],
        prompts: PromptLibrary,
        comparisons: Mapping[str, Metric[Any]] = COMPARISONS,
    ) -> None:
        self._encoders = ports.encoders
        self._judges = ports.judge_models
        self._graders = ports.grader_models
        self._metrics = metrics
        self._comparisons = comparisons
        self._prompts = prompts
        self._cache: OrderedDict[tuple[bytes, str, ModelMetadata], MetricPlan] = OrderedDict()
        self._cache_bytes = 0

    def plan(self, specs: Sequence[types_pb2.MetricSpec], path: str) -> list[MetricPlan]:
        """Resolves the metrics of a call.

        Args:
            specs: As sent; the same metric may come several times.
            path: Where they stand in the request, for messages.

        Raises:
            InvalidRequestError: A spec with no metric, or an enum number that is not known here.
            NothingLoadedError: Every metric fails, and at least one of them for want of its model.
        """
        return self._checked([self._plan_metric(spec, f"{path}[{index}]") for index, spec in enumerate(specs)])

    def plan_comparison(self, spec: types_pb2.MetricSpec, path: str) -> MetricPlan:
        """Resolves the comparison of a call; raises as `plan`.

        Args:
            spec: It, with its parameters.
            path: Where these stand in the request, for messages.
        """
        (plan,) = self._checked([self._plan(spec, self._comparisons[spec.WhichOneof("metric") or ""], path)])
        return plan

    def _checked(self, plans: list[MetricPlan]) -> list[MetricPlan]:
        failures = [plan.request for plan in plans if isinstance(plan.request, Failure)]
        if len(failures) == len(plans) and any(failure.status is Status.MODEL_UNAVAILABLE for failure in failures):
            known = (*self._encoders.statuses(), *self._graders.statuses(), *self._judges.statuses())
            usable = [model.name for model in known if model.state in USABLE_STATES]
            reasons = shortened("; ".join(failure.message for failure in failures), _MAX_REASONS_CHARACTERS)
            raise NothingLoadedError(
                f"nothing that the call asks for can be computed here: {reasons}. "
                f"Models that are here: {', '.join(usable) or 'none'}"
            )
        return plans

    def judge(self, written: str, path: str) -> ModelStatus | Failure:
        """The judge that NAME, NAME@DIGEST or "" stands for, or why it cannot be used.

        Args:
            written: As sent.
            path: Where it stands in the request, for messages.
        """
        try:
            return find_model(written, path, self._judges)
        except ParameterError as error:
            return Failure(Status.INVALID_PARAMETER, f"{path.removesuffix('.model')}.{error}")

    def check_models(self, plans: Sequence[MetricPlan]) -> None:
        """Raises ModelReplacedError where a model is not the one any more that a plan's provenance names."""
        for plan in plans:
            if isinstance(plan.request, Failure):
                continue
            provenance, info = plan.provenance, plan.request.metric.info
            named = (
                (provenance.model, provenance.model_digest, self._models_of(info)),
                (provenance.judge_model, provenance.judge_digest, self._judges),
                (provenance.grader_model, provenance.grader_digest, self._graders),
            )
            for name, digest, known in named:
                now = known.status(name) if digest else None
                if now is not None and not isinstance(now, Failure) and now.digest != digest:
                    raise ModelReplacedError(
                        f"model {name} was replaced: its digest was {digest}, it is {now.digest} now; results sent "
                        "so far stand, send the other items again on a new stream"
                    )

    def _plan_metric(self, spec: types_pb2.MetricSpec, path: str) -> MetricPlan:
        name = spec.WhichOneof("metric")
        metric = None if name is None else self._metrics.get(name)
        if name in self._comparisons:
            raise InvalidRequestError(f"{path}.{name}", "compares two answers and scores no item: call Judging.Compare")
        if name is None or metric is None:
            known = ", ".join(self._metrics)
            raise InvalidRequestError(path, f"no metric is set, or one that is not known here; this server has {known}")
        return self._plan(spec, metric, f"{path}.{name}")

    def _plan(self, spec: types_pb2.MetricSpec, metric: Metric[Any], path: str) -> MetricPlan:
        message: Message = getattr(spec, metric.info.name)
        size = spec.ByteSize()
        if size > LEAST_BOUND_BYTES:  # else none of its strings can be too long
            try:
                check_strings(message)
            except ParameterError as error:
                return failed_plan(error, path, types_pb2.MetricSpec(), metric)
        if size > MAX_SPEC_BYTES:
            raise InvalidRequestError(path, f"has {size} bytes, at most {MAX_SPEC_BYTES} are allowed")
        try:
            model = self._model(message, metric.info, f"{path}.model")
            judge = self._judge(message, metric.info, path)
            grader = self._grader(message, metric.info, path)
            if isinstance(model, Failure):
                return self._unusable(model, spec, metric, message, path)
            if isinstance(grader, Failure):
                return self._unusable(grader, spec, metric, message, path)
            if isinstance(judge, Failure):
                if not self._does_without_judge(metric, message, path, MetricModels(model, None)):
                    return self._unusable(judge, spec, metric, message, path)
                judge = None
            return self._cached(spec, metric, message, path, MetricModels(model, judge, grader))
        except ParameterError as error:
            return failed_plan(error, path, spec, metric)

    def _unusable(
        self, model: Failure, spec: types_pb2.MetricSpec, metric: Metric[Any], message: Message, path: str
    ) -> MetricPlan:
        """Of a metric whose model cannot be used; what is wrong with its parameters goes first."""
        read_parameters(message, metric, path, model=getattr(message, "model", ""), prompts=self._prompts)
        return MetricPlan(model, failed_provenance(spec, metric))

    def _cached(
        self, spec: types_pb2.MetricSpec, metric: Metric[Any], message: Message, path: str, models: MetricModels
    ) -> MetricPlan:
        key = (spec.SerializeToString(), models.digest, models.metadata)
        plan = self._cache.get(key)
        if plan is not None:
            self._cache.move_to_end(key)
            return plan
        plan = self._resolve(metric, message, path, models)
        self._cache[key] = plan
        self._cache_bytes += len(key[0])
        while len(self._cache) > _CACHE_ENTRIES or self._cache_bytes > _MAX_CACHE_BYTES:
            (spec_bytes, *_), _ = self._cache.popitem(last=False)
            self._cache_bytes -= len(spec_bytes)
        return plan

    def _resolve(self, metric: Metric[Any], message: Message, path: str, models: MetricModels) -> MetricPlan:
        name, digest, judge, grader = models.name, models.digest, models.judge, models.grader
        named = {metric.info.judge_parameter: judge, metric.info.grader_parameter: grader}
        beside = {parameter: each for parameter, each in named.items() if each}
        parameters = read_parameters(
            message,
            metric,
            path,
            model=name,
            beside={parameter: each.name for parameter, each in beside.items()},
            prompts=self._prompts,
        )
        metadata = models.metadata.seen_by(metric.info)
        parameters = parameters.resolved(metadata)
        provenance = types_pb2.Provenance(
            metric=write_spec(metric.info.name, parameters),
            name=metric.info.name,
            version=metric.info.version,
            model=name,
            model_digest=digest,
            prompt=parameters.prompt_name,
            prompt_digest=parameters.prompt_digest,
            line=write_line(
                metric, parameters, digest, beside={parameter: each.digest for parameter, each in beside.items()}
            ),
            calibration=parameters.calibration,
            judge_model=judge.name if judge else "",
            judge_digest=judge.digest if judge else "",
            grader_model=grader.name if grader else "",
            grader_digest=grader.digest if grader else "",
        )
        pinned = with_model(parameters, f"{name}@{digest}" if name else "")
        values: dict[str, Any] = {parameter: f"{each.name}@{each.digest}" for parameter, each in beside.items()}
        pinned = replace(pinned, **values) if values else pinned  # making it again may read a long prompt
        return MetricPlan(MetricRequest(metric=metric, parameters=pinned, metadata=metadata), provenance)

    def _model(self, message: Any, info: MetricInfo, path: str) -> ModelStatus | Failure | None:
        if info.needs_judge or info.needs_grader or info.needs_model:
            return find_model(message.model, path, self._models_of(info))
        return None

    def _models_of(self, info: MetricInfo) -> ModelIndex:
        if info.needs_judge:
            return self._judges
        return self._graders if info.needs_grader else self._encoders

    def _grader(self, message: Any, info: MetricInfo, path: str) -> ModelStatus | Failure | None:
        """The grader that a metric names beside its model; None where it names none."""
        name = info.grader_parameter
        written = getattr(message, name) if name else ""
        return find_model(written, f"{path}.{name}", self._graders) if written else None

    def _judge(self, message: Any, info: MetricInfo, path: str) -> ModelStatus | Failure | None:
        """The judge of a metric that names one beside its model."""
        name = info.judge_parameter
        return find_model(getattr(message, name), f"{path}.{name}", self._judges) if name else None

    def _does_without_judge(self, metric: Metric[Any], message: Message, path: str, models: MetricModels) -> bool:
        """Whether nobody named a judge, and none would be asked."""
        if getattr(message, metric.info.judge_parameter):
            return False
        parameters = read_parameters(message, metric, path, model=models.name, prompts=self._prompts)
        return parameters.asks_no_judge(models.metadata.seen_by(metric.info))
