"""The server's operations, for gRPC services and embedded clients."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from google.protobuf.message import Message

from gradewire_proto.v1 import judging_pb2, models_pb2, scoring_pb2
from gradewire_server.domain.items import Failure
from gradewire_server.domain.metric import Metric, MetricInfo, ParameterError
from gradewire_server.domain.ports import Lexicon, ModelIndex, ModelStatus
from gradewire_server.metrics.registry import COMPARISONS
from gradewire_server.metrics.smile.texts import MAX_WINDOWS
from gradewire_server.metrics.text.words import MAX_WORDS
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.convert import ITEMS, PAIRS
from gradewire_server.requests.judging import complete, decide
from gradewire_server.requests.plan import USABLE_STATES, pinned, unusable_reason, usual_grader
from gradewire_server.requests.prepare import prepare
from gradewire_server.requests.score import ScoreHandler
from gradewire_server.requests.stream import stream

_MAX_VIEWS: Final = 4096
"""The maximum number of namespaces with cached handlers."""


async def list_models(context: RequestContext) -> models_pb2.ListModelsResponse:
    """Return all models, metrics and limits."""
    ports, metrics = context.ports, context.metrics
    encoders, graders = ports.encoders.statuses(), ports.grader_models.statuses()
    judges = ports.judge_models.statuses()
    missing = {
        "asks_judge": _without_judge(ports.judge_models, judges),
        "needs_grader": _without_grader(graders),
        "needs_model": _without_encoder(encoders),
        "needs_synonyms": await without_synonyms(ports.lexicon),
    }
    return models_pb2.ListModelsResponse(
        models=[_model(status, metrics, ports.grader_models) for status in (*encoders, *graders, *judges)],
        metrics=[_metric(metric.info, missing) for metric in metrics.values()],
        limits=models_pb2.Limits(
            max_windows=MAX_WINDOWS, max_prediction_words=MAX_WORDS, **_common_fields(models_pb2.Limits, context.limits)
        ),
        server_version=version("gradewire"),
        comparisons=[_metric(comparison.info, missing) for comparison in COMPARISONS.values()],
    )


def _common_fields(message: type[Message], source: object) -> dict[str, Any]:
    names = [field.name for field in message.DESCRIPTOR.fields]
    return {name: getattr(source, name) for name in names if hasattr(source, name)}


def _model(status: ModelStatus, metrics: Mapping[str, Metric[Any]], graders: ModelIndex) -> models_pb2.Model:
    usable = status.state in USABLE_STATES
    beyond = _unsupported_metrics(status, metrics, graders) if status.kind == "encoder" and usable else {}
    fields = _common_fields(models_pb2.Model, status) | {
        "state": models_pb2.ModelState.Value(f"MODEL_STATE_{status.state.upper()}"),
        "message": unusable_reason(status),
        "how_to_get": "" if usable else status.how_to_get,
        "remarks": (*status.remarks, *_calibrations_for_other_versions(status, metrics)),
    }
    return models_pb2.Model(numeric_class=status.precision, without_metrics=beyond, **fields)


def _calibrations_for_other_versions(status: ModelStatus, metrics: Mapping[str, Metric[Any]]) -> Iterator[str]:
    for each in status.metadata.calibrations:
        info = metrics[each.metric].info if each.metric in metrics else None
        if info is not None and info.version != each.metric_version:
            yield (
                f"the calibration for {each.metric}/{each.metric_version} is not used, because this server has "
                f"{info.name}/{info.version}. To get the catalog's calibration, run: gradewire models build "
                f"{status.name}. To make a new one, run: gradewire calibrate FILE --metric {info.name}"
            )


def _unsupported_metrics(
    status: ModelStatus, metrics: Mapping[str, Metric[Any]], graders: ModelIndex
) -> dict[str, str]:
    """Return the metrics that the encoder cannot compute with default parameters, each with the reason."""
    found = {}
    for name, metric in metrics.items():
        if not metric.info.needs_model:
            continue
        grader = usual_grader(metric, status, graders)
        if isinstance(grader, Failure):
            found[name] = grader.message
            continue
        metadata = replace(status.metadata, grader=pinned(grader)).seen_by(metric.info)
        try:
            metric.parameters_type().resolved(metadata)
        except ParameterError as error:
            found[name] = error.message
    return found


def _without_encoder(models: Sequence[ModelStatus]) -> str:
    if any(model.state in USABLE_STATES for model in models):
        return ""
    hint = next((model.how_to_get for model in models if model.is_default), "")
    return f"no encoder is built. To get the default encoder, run: {hint}"


def _without_grader(graders: Sequence[ModelStatus]) -> str:
    default = next((model for model in graders if model.is_default), None)
    if default is not None and default.state in USABLE_STATES:
        return ""
    hint = default.how_to_get if default else "gradewire models build"
    return f"the default grader is not built. To get it, run: {hint}"


def _without_judge(index: ModelIndex, judges: Sequence[ModelStatus]) -> str:
    default = index.status("")
    if not isinstance(default, Failure) or any(judge.state in USABLE_STATES for judge in judges):
        return ""
    return default.message


async def without_synonyms(lexicon: Lexicon) -> str:
    """Return why synonyms are unavailable, with advice, or "" if they are available."""
    synonyms = await lexicon.synonyms(())
    return synonyms.message if isinstance(synonyms, Failure) else ""


def _metric(info: MetricInfo, missing: Mapping[str, str]) -> models_pb2.Metric:
    # `missing` maps each need (an attribute of MetricInfo) to the reason why the need is unmet, or to "".
    in_the_way = next((reason for need, reason in missing.items() if reason and getattr(info, need)), "")
    parameters = [models_pb2.MetricParameter(**asdict(parameter)) for parameter in info.parameters]
    fields = _common_fields(models_pb2.Metric, info) | {"parameters": parameters}
    return models_pb2.Metric(available=not in_the_way, missing=in_the_way, **fields)


class Handlers:
    """The server's operations, for one process and event loop.

    Every `deadline_s` is in seconds from now. None means the default. All calls may be cancelled.
    """

    def __init__(self, context: RequestContext) -> None:
        self.context = context
        self._score: ScoreHandler[scoring_pb2.ScoreRequest, scoring_pb2.ScoreResponse] = ScoreHandler(context, ITEMS)
        self._compare: ScoreHandler[judging_pb2.CompareRequest, judging_pb2.CompareResponse]
        self._compare = ScoreHandler(context, PAIRS)
        self.score = self._score.run
        self.compare = self._compare.run
        self.complete = partial(complete, context)
        self.decide = partial(decide, context)
        self.prepare = partial(prepare, context)
        self.list_models = partial(list_models, context)
        self.score_stream = partial(stream, context, ITEMS)
        self.compare_stream = partial(stream, context, PAIRS)
        self._views: OrderedDict[str, Handlers] = OrderedDict()

    def within(self, namespace: str) -> "Handlers":
        """Return the handlers for a tenant's namespace, or `self` if `namespace` is ""."""
        if not namespace:
            return self
        view = self._views.get(namespace)
        if view is None:
            self._drop_idle_views()
            view = self._views[namespace] = Handlers(self.context.within(namespace))
        self._views.move_to_end(namespace)
        return view

    async def close(self) -> None:
        """Wait until all cancelled work has ended. Do this before you close the scorer's ports."""
        await self._score.close()
        await self._compare.close()
        for view in self._views.values():
            await view.close()

    @property
    def _idle(self) -> bool:
        return self._score.idle and self._compare.idle

    def _drop_idle_views(self) -> None:
        idle = [name for name, view in self._views.items() if view._idle]  # noqa: SLF001 - of the same class
        for name in idle[: max(0, len(self._views) + 1 - _MAX_VIEWS)]:
            del self._views[name]
