"""The plan of a request: its metric specs with models resolved, strings bounded and provenance written."""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from gradewire_proto.choices import Corpus
from gradewire_proto.v1 import types_pb2
from gradewire_proto.wire_rules import MAX_SPEC_BYTES, PARAMETER_BYTES, byte_count, with_digest
from gradewire_server.domain.items import Failure, Status, quoted, shortened
from gradewire_server.domain.metric import NO_MODEL, Metric, MetricInfo, ModelMetadata, ParameterError, Parameters
from gradewire_server.domain.ports import ModelIndex, ModelStatus, Ports
from gradewire_server.metrics.prompts.library import PromptLibrary
from gradewire_server.metrics.registry import COMPARISONS
from gradewire_server.requests.errors import InvalidRequestError, ModelReplacedError, NothingLoadedError
from gradewire_server.requests.parameters import read_parameters, write_line, write_spec
from gradewire_server.scoring import MetricRequest

LEAST_BOUND_BYTES: Final = min(PARAMETER_BYTES.values())
"""In a message of no more than this nothing is too long."""
_MAX_UTF8_BYTES_PER_CHAR: Final = 4

USABLE_STATES: Final = frozenset({"loaded", "built"})

_MODEL: Final = re.compile(r"(?P<name>[^@]*)(?:@(?P<digest>[0-9a-fA-F]{8,64}))?")

_NO_REQUEST: Final = (
    "a stream has no request corpus, for its items are scored as they come; prepare a set (References.Prepare with "
    "this metric and a prepared corpus) and name it as reference_set, or use Score with all items in one call"
)

_CACHE_ENTRIES: Final = 256
_MAX_CACHE_BYTES: Final = 4 << 20
"""Bytes of remembered specs: an inline prompt file is worth remembering, for reading it takes longest."""
_MAX_REASONS_CHARACTERS: Final = 700
"""Characters of what the metrics lack in an error of the call, so that what is here has room behind it."""

Models: TypeAlias = Mapping[str, ModelStatus]
"""Models that a metric runs on by the parameters that name them: its own by "model", judge and grader by theirs."""


def check_strings(message: Message) -> None:
    """Raise ParameterError where a string is longer than its kind may be; it names field, size and bound."""
    for name, bound in _bounds(message.DESCRIPTOR):
        text = getattr(message, name)
        if len(text) * _MAX_UTF8_BYTES_PER_CHAR > bound and (size := byte_count(text)) > bound:
            raise ParameterError(name, f"has {size} bytes, at most {bound} are allowed")


@cache
def _bounds(descriptor: Descriptor) -> tuple[tuple[str, int], ...]:
    """Names of a message's strings with their bounds; a string without one is a defect, which a test finds."""
    strings = [field.name for field in descriptor.fields if field.type == FieldDescriptor.TYPE_STRING]
    return tuple((name, PARAMETER_BYTES[name]) for name in strings)


def unusable_reason(status: ModelStatus) -> str:
    """Return why a model cannot be used and what to do, without the server's paths; empty when it can."""
    if status.state in USABLE_STATES:
        return ""
    if status.message:
        return status.message
    state = "not built here; get it" if status.state == "missing" else f"{status.state} here; replace it"
    return f"model {status.name} is {state} with: {status.how_to_get}"


def _metadata(info: MetricInfo, models: Models) -> ModelMetadata:
    """Return what a metric knows of its models."""
    own = models["model"].metadata if "model" in models else NO_MODEL
    judge, grader = models.get(info.judge_parameter), models.get(info.grader_parameter)
    return replace(own, judge=_pinned(judge), grader=_pinned(grader))


def _pinned(model: ModelStatus | None) -> str:
    return f"{model.name}@{model.digest}" if model else ""


def find_model(written: str, path: str, known: ModelIndex) -> ModelStatus | Failure:
    """Return the model that NAME, NAME@DIGEST or "" stands for, or why it cannot be used.

    Raises:
        ParameterError: It is no model's name.
    """
    match = _MODEL.fullmatch(written)
    if match is None:
        raise ParameterError("model", f"{quoted(written)} is not a model name, nor NAME@DIGEST with 8 to 64 hex digits")
    model = known.status(match["name"])
    if isinstance(model, Failure):
        return Failure(model.status, f"{path}: {_unusable_reason(match['name'], model, known.statuses())}")
    wanted = (match["digest"] or "").lower()
    if not model.digest.startswith(wanted):
        return Failure(
            Status.MODEL_UNAVAILABLE,
            f"{path}: {model.name} has the digest {model.digest} here, {wanted} is asked for",
        )
    return model


def _unusable_reason(name: str, failure: Failure, known: Sequence[ModelStatus]) -> str:
    for status in known:
        if status.name == name or (status.is_default and not name):
            return unusable_reason(status) or failure.message
    return failure.message


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """One metric of a request, with what a reader needs to get the same numbers again.

    Attributes:
        request: What the scorer runs, or what becomes the result of every item. Its model is NAME@DIGEST, so that
            the engine computes with the model that the provenance names, or not at all.
    """

    request: MetricRequest | Failure
    provenance: types_pb2.Provenance

    @property
    def judged(self) -> bool:
        """Return whether it may ask a judge."""
        return isinstance(self.request, MetricRequest) and self.request.metric.info.asks_judge

    def streamed(self) -> MetricRequest | Failure:
        """Return what a stream runs: INVALID_PARAMETER for a metric that counts over the items of one request."""
        request = self.request
        if isinstance(request, Failure) or request.parameters.corpus is not Corpus.REQUEST:
            return request
        return Failure(Status.INVALID_PARAMETER, f"{self.provenance.name}: {_NO_REQUEST}")

    @property
    def counts_prepared(self) -> bool:
        """Return whether its weights are counted over the corpus of the call's reference set."""
        return not isinstance(self.request, Failure) and self.request.parameters.corpus is Corpus.PREPARED

    def provenance_in(self, reference_set: str, corpus_digest: str = "") -> types_pb2.Provenance:
        """Return the provenance in a call with a reference set, named where the metric reads of it.

        The digest of its corpus is named where the metric counts over it; empty where it is not known.
        """
        request = self.request
        if not reference_set or isinstance(request, Failure) or not request.parameters.reads_prepared:
            return self.provenance
        digest = corpus_digest if self.counts_prepared else ""
        named = types_pb2.Provenance(reference_set=reference_set, corpus_digest=digest)
        named.MergeFrom(self.provenance)
        info = request.metric.info
        parameters = with_model(request.parameters, named.model)
        written = with_digest(reference_set, digest) if digest else reference_set
        named.line = write_line(
            request.metric, parameters, named.model_digest, beside=extra_digests(info, named), reference_set=written
        )
        return named


def with_model(parameters: Parameters, model: str) -> Parameters:
    """The parameters of that model; as they are where it is empty."""
    # Whoever takes a model has a field of that name.
    return replace(parameters, model=model) if model else parameters  # type: ignore[call-arg]


def extra_digests(info: MetricInfo, provenance: types_pb2.Provenance) -> dict[str, str]:
    """Digests of judge and grader that a metric names beside its model, by parameter."""
    return {info.judge_parameter: provenance.judge_digest, info.grader_parameter: provenance.grader_digest}


def failed_plan(error: ParameterError, path: str, spec: types_pb2.MetricSpec, metric: Metric[Any]) -> MetricPlan:
    """Every item gets INVALID_PARAMETER, with what is wrong with which parameter."""
    return MetricPlan(Failure(Status.INVALID_PARAMETER, f"{path}.{error}"), failed_provenance(spec, metric))


def failed_provenance(spec: types_pb2.MetricSpec, metric: Metric[Any]) -> types_pb2.Provenance:
    """Return the parameters as sent of a metric that cannot be computed, or none where a text is too long."""
    provenance = types_pb2.Provenance(metric=spec, name=metric.info.name, version=metric.info.version)
    # What this server knows nothing of it does not send back.
    provenance.metric.DiscardUnknownFields()
    getattr(provenance.metric, metric.info.name).SetInParent()
    return provenance


class Planner:
    """Resolves metric specs to plans, which it remembers."""

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
        """Resolve the metrics of a call, the same one possibly several times; `path` is for messages.

        Raises:
            InvalidRequestError: A spec with no metric, or an enum number that is not known here.
            NothingLoadedError: Every metric fails, and at least one of them for want of its model.
        """
        return self._checked([self._plan_metric(spec, f"{path}[{index}]") for index, spec in enumerate(specs)])

    def plan_comparison(self, spec: types_pb2.MetricSpec, path: str) -> MetricPlan:
        """Resolve the comparison of a call; raise as `plan`."""
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
            models = {}
            for parameter, found in self._find_models(message, metric.info, path).items():
                if not isinstance(found, Failure):
                    models[parameter] = found
                elif parameter != metric.info.judge_parameter or self._needs_judge(metric, message, path, models):
                    # What is wrong with its parameters goes first.
                    written = getattr(message, "model", "")
                    read_parameters(message, metric, path, model=written, prompts=self._prompts)
                    return MetricPlan(found, failed_provenance(spec, metric))
            return self._cached(spec, metric, message, path, models)
        except ParameterError as error:
            return failed_plan(error, path, spec, metric)

    def _cached(
        self, spec: types_pb2.MetricSpec, metric: Metric[Any], message: Message, path: str, models: Models
    ) -> MetricPlan:
        digest = models["model"].digest if "model" in models else ""
        key = (spec.SerializeToString(), digest, _metadata(metric.info, models))
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

    def _resolve(self, metric: Metric[Any], message: Message, path: str, models: Models) -> MetricPlan:
        info, model = metric.info, models.get("model")
        name, digest = (model.name, model.digest) if model else ("", "")
        judge, grader = models.get(info.judge_parameter), models.get(info.grader_parameter)
        beside = {parameter: each for parameter, each in models.items() if each is not model}
        parameters = read_parameters(
            message,
            metric,
            path,
            model=name,
            beside={parameter: each.name for parameter, each in beside.items()},
            prompts=self._prompts,
        )
        metadata = _metadata(info, models).seen_by(info)
        parameters = parameters.resolved(metadata)
        provenance = types_pb2.Provenance(
            metric=write_spec(info.name, parameters),
            name=info.name,
            version=info.version,
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
        pinned = with_model(parameters, _pinned(model))
        values: dict[str, Any] = {parameter: _pinned(each) for parameter, each in beside.items()}
        pinned = replace(pinned, **values) if values else pinned  # making it again may read a long prompt
        return MetricPlan(MetricRequest(metric=metric, parameters=pinned, metadata=metadata), provenance)

    def _find_models(self, message: Message, info: MetricInfo, path: str) -> dict[str, ModelStatus | Failure]:
        """Look up the models that a metric runs on by their parameters; a judge last, which it may do without."""
        known: dict[str, ModelIndex] = {}
        if info.needs_judge or info.needs_grader or info.needs_model:
            known["model"] = self._models_of(info)
        if info.grader_parameter and getattr(message, info.grader_parameter):
            known[info.grader_parameter] = self._graders
        if info.judge_parameter:
            known[info.judge_parameter] = self._judges
        return {name: find_model(getattr(message, name), f"{path}.{name}", index) for name, index in known.items()}

    def _models_of(self, info: MetricInfo) -> ModelIndex:
        if info.needs_judge:
            return self._judges
        return self._graders if info.needs_grader else self._encoders

    def _needs_judge(self, metric: Metric[Any], message: Message, path: str, models: Models) -> bool:
        """Return whether somebody named a judge, or one would be asked."""
        if getattr(message, metric.info.judge_parameter):
            return True
        name = models["model"].name if "model" in models else ""
        parameters = read_parameters(message, metric, path, model=name, prompts=self._prompts)
        return not parameters.asks_no_judge(_metadata(metric.info, models).seen_by(metric.info))
