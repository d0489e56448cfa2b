"""Plan a request: find its metrics' models, check its parameters, and create the provenance."""

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
from gradewire_proto.wire_rules import MAX_SPEC_BYTES, NO_GRADER, PARAMETER_BYTES, byte_count, with_digest
from gradewire_server.domain.items import Failure, Status, quoted, shortened
from gradewire_server.domain.metric import (
    NO_MODEL,
    Metric,
    MetricInfo,
    ModelMetadata,
    ParameterError,
    Parameters,
    preferred_grader,
)
from gradewire_server.domain.ports import ModelIndex, ModelStatus, Ports
from gradewire_server.metrics.prompts.library import PromptLibrary
from gradewire_server.metrics.registry import COMPARISONS
from gradewire_server.requests.errors import InvalidRequestError, ModelReplacedError, NothingLoadedError
from gradewire_server.requests.parameters import read_parameters, write_line, write_spec
from gradewire_server.scoring import MetricRequest

LEAST_BOUND_BYTES: Final = min(PARAMETER_BYTES.values())
"""Messages up to this size cannot contain a string that is too long."""
_MAX_UTF8_BYTES_PER_CHAR: Final = 4

USABLE_STATES: Final = frozenset({"loaded", "built"})

_MODEL: Final = re.compile(r"(?P<name>[^@]*)(?:@(?P<digest>[0-9a-fA-F]{8,64}))?")

_NO_REQUEST: Final = (
    "corpus=request cannot be used in a stream, whose items are scored as they arrive. Prepare a reference set "
    "(References.Prepare with this metric and corpus=prepared) and set reference_set to its name, or send all items in "
    "one Score call"
)

_CACHE_ENTRIES: Final = 256
_MAX_CACHE_BYTES: Final = 4 << 20
"""The maximum total size of the cached specs, which may contain prompt files."""
_MAX_REASONS_CHARACTERS: Final = 700
"""The maximum total length of the metrics' failures in an error message."""

Models: TypeAlias = Mapping[str, ModelStatus]
"""A metric's models by parameter: encoder, judge and grader."""


def check_strings(message: Message) -> None:
    """Raise ParameterError if a string in the message is too long."""
    for name, bound in _bounds(message.DESCRIPTOR):
        text = getattr(message, name)
        if len(text) * _MAX_UTF8_BYTES_PER_CHAR > bound and (size := byte_count(text)) > bound:
            raise ParameterError(name, f"has {size} bytes, but at most {bound} are allowed")


@cache
def _bounds(descriptor: Descriptor) -> tuple[tuple[str, int], ...]:
    strings = [field.name for field in descriptor.fields if field.type == FieldDescriptor.TYPE_STRING]
    return tuple((name, PARAMETER_BYTES[name]) for name in strings)


def unusable_reason(status: ModelStatus) -> str:
    """Return why a model cannot be used, with advice, or "" if the model can be used."""
    return "" if status.state in USABLE_STATES else status.unusable_message


def _metadata(info: MetricInfo, models: Models) -> ModelMetadata:
    own = models["model"].metadata if "model" in models else NO_MODEL
    judge, grader = models.get(info.judge_parameter), models.get(info.grader_parameter)
    return replace(own, judge=pinned(judge), grader=pinned(grader))


def pinned(model: ModelStatus | None) -> str:
    """Return NAME@DIGEST, or "" without a model."""
    return f"{model.name}@{model.digest}" if model else ""


def find_model(written: str, path: str, known: ModelIndex) -> ModelStatus | Failure:
    """Return a model's status, or a failure if the model cannot be used.

    `written` is NAME, NAME@DIGEST, or "" for the default model.

    Raises:
        ParameterError: `written` is invalid.
    """
    match = _MODEL.fullmatch(written)
    if match is None:
        raise ParameterError("model", f"{quoted(written)} must be NAME or NAME@DIGEST; DIGEST has 8 to 64 hex digits")
    model = known.status(match["name"])
    if isinstance(model, Failure):
        return Failure(model.status, f"{path}: {_unusable_reason(match['name'], model, known.statuses())}")
    wanted = (match["digest"] or "").lower()
    if not model.digest.startswith(wanted):
        return Failure(
            Status.MODEL_UNAVAILABLE,
            f"{path}: {model.name} has the digest {model.digest} on this server, not {wanted}",
        )
    return model


def usual_grader(
    metric: Metric[Any], encoder: ModelStatus, graders: ModelIndex, path: str = "", *, fit: str = ""
) -> ModelStatus | Failure | None:
    """Return the grader for requests that name none, or None if the encoder's fit needs no grader.

    Of several, the default grader has precedence. For the parameters, see `Parameters.usual_graders` and `find_model`.
    """
    names = metric.parameters_type.usual_graders(encoder.metadata.seen_by(metric.info), fit)
    if not names:
        return None
    default = graders.status("")
    name = preferred_grader(names, default.name if isinstance(default, ModelStatus) else "")
    found = graders.status(name)
    if not isinstance(found, Failure):
        return found
    info, reason = metric.info, _unusable_reason(name, found, graders.statuses())
    needs = f"the fit of {encoder.name} for {info.name} needs a grader (to do without: grader={NO_GRADER}). {reason}"
    return replace(found, message=f"{path}.{info.grader_parameter}: {needs}" if path else needs)


def _unusable_reason(name: str, failure: Failure, known: Sequence[ModelStatus]) -> str:
    for status in known:
        if status.name == name or (status.is_default and not name):
            return unusable_reason(status) or failure.message
    return failure.message


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """A requested metric, with the scorer's input (or the failure for every item) and the provenance of its scores."""

    request: MetricRequest | Failure
    provenance: types_pb2.Provenance

    @property
    def judged(self) -> bool:
        """True if the metric may ask a judge."""
        return isinstance(self.request, MetricRequest) and self.request.metric.info.asks_judge

    def streamed(self) -> MetricRequest | Failure:
        """Return the scorer's input for a stream, or INVALID_PARAMETER if the metric needs all items at once."""
        request = self.request
        if isinstance(request, Failure) or request.parameters.corpus is not Corpus.REQUEST:
            return request
        return Failure(Status.INVALID_PARAMETER, f"{self.provenance.name}: {_NO_REQUEST}")

    @property
    def counts_prepared(self) -> bool:
        """True if the metric's weights come from the corpus of a reference set."""
        return not isinstance(self.request, Failure) and self.request.parameters.corpus is Corpus.PREPARED

    def provenance_in(self, reference_set: str, corpus_digest: str = "") -> types_pb2.Provenance:
        """Return the provenance for a call with this reference set. Leave out the set if the metric does not use it."""
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
    """Return a copy of the parameters with this model, or the same parameters if `model` is ""."""
    return replace(parameters, model=model) if model else parameters  # type: ignore[call-arg]


def extra_digests(info: MetricInfo, provenance: types_pb2.Provenance) -> dict[str, str]:
    """Return the digests of the metric's judge and grader by parameter."""
    return {info.judge_parameter: provenance.judge_digest, info.grader_parameter: provenance.grader_digest}


def failed_plan(error: ParameterError, path: str, spec: types_pb2.MetricSpec, metric: Metric[Any]) -> MetricPlan:
    """Return a plan for a metric that fails with INVALID_PARAMETER for every item."""
    return MetricPlan(Failure(Status.INVALID_PARAMETER, f"{path}.{error}"), failed_provenance(spec, metric))


def failed_provenance(spec: types_pb2.MetricSpec, metric: Metric[Any]) -> types_pb2.Provenance:
    """Return the provenance of a metric that cannot be computed."""
    provenance = types_pb2.Provenance(metric=spec, name=metric.info.name, version=metric.info.version)
    provenance.metric.DiscardUnknownFields()
    getattr(provenance.metric, metric.info.name).SetInParent()
    return provenance


class Planner:
    """A cache of metric plans, which also creates missing plans."""

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
        """Return plans for a call's metrics. `path` is the path of `specs` for error messages.

        Raises:
            InvalidRequestError: A spec has no metric or an unknown enum number.
            NothingLoadedError: All metrics fail, at least one because a model is not available.
        """
        return self._checked([self._plan_metric(spec, f"{path}[{index}]") for index, spec in enumerate(specs)])

    def plan_comparison(self, spec: types_pb2.MetricSpec, path: str) -> MetricPlan:
        """Return a plan for a call's comparison. For the errors, see `plan`."""
        (plan,) = self._checked([self._plan(spec, self._comparisons[spec.WhichOneof("metric") or ""], path)])
        return plan

    def _checked(self, plans: list[MetricPlan]) -> list[MetricPlan]:
        failures = [plan.request for plan in plans if isinstance(plan.request, Failure)]
        if len(failures) == len(plans) and any(failure.status is Status.MODEL_UNAVAILABLE for failure in failures):
            known = (*self._encoders.statuses(), *self._graders.statuses(), *self._judges.statuses())
            usable = [model.name for model in known if model.state in USABLE_STATES]
            reasons = shortened("; ".join(failure.message for failure in failures), _MAX_REASONS_CHARACTERS)
            beginning = "none of the requested metrics can be computed: " if len(failures) > 1 else ""
            # A reason may end with a command, which users copy.
            end = "" if "Run: " in reasons else f". Available models: {', '.join(usable) or 'none'}"
            raise NothingLoadedError(f"{beginning}{reasons}{end}")
        return plans

    def check_models(self, plans: Sequence[MetricPlan]) -> None:
        """Raise ModelReplacedError if a model in the plans has been replaced."""
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
                        f"model {name} was replaced: its digest was {digest} and is now {now.digest}. The results so "
                        "far remain valid; send the remaining items on a new stream"
                    )

    def _plan_metric(self, spec: types_pb2.MetricSpec, path: str) -> MetricPlan:
        name = spec.WhichOneof("metric")
        metric = None if name is None else self._metrics.get(name)
        if name in self._comparisons:
            raise InvalidRequestError(f"{path}.{name}", "grades pairs of answers, not items; call Judging.Compare")
        if name is None or metric is None:
            known = ", ".join(self._metrics)
            raise InvalidRequestError(path, f"has no metric, or has an unknown metric; use one of {known}")
        if spec.version and spec.version != metric.info.version:
            raise InvalidRequestError(
                f"{path}.version",
                f"{name} has version {metric.info.version} here, not {spec.version}; leave the version out, or use a "
                "different server",
            )
        return self._plan(spec, metric, f"{path}.{name}")

    def _plan(self, spec: types_pb2.MetricSpec, metric: Metric[Any], path: str) -> MetricPlan:
        message: Message = getattr(spec, metric.info.name)
        size = spec.ByteSize()
        if size > LEAST_BOUND_BYTES:
            try:
                check_strings(message)
            except ParameterError as error:
                return failed_plan(error, path, types_pb2.MetricSpec(), metric)
        if size > MAX_SPEC_BYTES:
            raise InvalidRequestError(path, f"has {size} bytes, but at most {MAX_SPEC_BYTES} are allowed")
        try:
            models = {}
            for parameter, found in self._find_models(message, metric, path).items():
                if not isinstance(found, Failure):
                    models[parameter] = found
                elif parameter != metric.info.judge_parameter or self._needs_judge(metric, message, path, models):
                    # An error in the parameters has precedence over a missing model.
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
        exact = with_model(parameters, pinned(model))
        values: dict[str, Any] = {parameter: pinned(each) for parameter, each in beside.items()}
        exact = replace(exact, **values) if values else exact  # do not copy needlessly: this may parse a long prompt
        return MetricPlan(MetricRequest(metric=metric, parameters=exact, metadata=metadata), provenance)

    def _find_models(self, message: Message, metric: Metric[Any], path: str) -> dict[str, ModelStatus | Failure]:
        # The judge comes last, because the other models determine whether the metric needs the judge.
        info, found = metric.info, dict[str, ModelStatus | Failure | None]()

        def find(parameter: str, known: ModelIndex) -> ModelStatus | Failure:
            return find_model(getattr(message, parameter), f"{path}.{parameter}", known)

        if info.needs_judge or info.needs_grader or info.needs_model:
            found["model"] = find("model", self._models_of(info))
        if info.grader_parameter:
            written, encoder = getattr(message, info.grader_parameter), found["model"]
            if not written and isinstance(encoder, ModelStatus):
                fit = getattr(message, "fit", "")
                found[info.grader_parameter] = usual_grader(metric, encoder, self._graders, path, fit=fit)
            elif written and written != NO_GRADER:
                found[info.grader_parameter] = find(info.grader_parameter, self._graders)
        if info.judge_parameter:
            found[info.judge_parameter] = find(info.judge_parameter, self._judges)
        return {parameter: each for parameter, each in found.items() if each is not None}

    def _models_of(self, info: MetricInfo) -> ModelIndex:
        if info.needs_judge:
            return self._judges
        return self._graders if info.needs_grader else self._encoders

    def _needs_judge(self, metric: Metric[Any], message: Message, path: str, models: Models) -> bool:
        if getattr(message, metric.info.judge_parameter):
            return True
        name = models["model"].name if "model" in models else ""
        parameters = read_parameters(message, metric, path, model=name, prompts=self._prompts)
        return not parameters.asks_no_judge(_metadata(metric.info, models).seen_by(metric.info))
