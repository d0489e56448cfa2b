"""What this server can do, as Models.List tells it."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from gradewire_proto.v1 import models_pb2
from gradewire_server.domain.engine import ModelStatus
from gradewire_server.domain.metric import Metric, MetricInfo
from gradewire_server.metrics.windows import MAX_WINDOWS, MAX_WORDS
from gradewire_server.rpc.limits import Limits

USABLE_STATES = frozenset({"loaded", "built"})


def list_models(
    models: Sequence[ModelStatus], metrics: Mapping[str, Metric[Any]], limits: Limits, *, without_synonyms: str = ""
) -> models_pb2.ListModelsResponse:
    """Models with how to get the missing ones, metrics with whether they can run now, and limits.

    Args:
        models: Of the engine.
        metrics: By name.
        limits: Of one request.
        without_synonyms: Why synonyms cannot be looked up and what to do; empty when they can.
    """
    return models_pb2.ListModelsResponse(
        models=map(_model, models),
        metrics=[_metric(metric.info, models, without_synonyms) for metric in metrics.values()],
        limits=models_pb2.Limits(
            max_items_per_request=limits.max_items_per_request,
            max_metrics_per_request=limits.max_metrics_per_request,
            max_references_per_item=limits.max_references_per_item,
            max_item_bytes=limits.max_item_bytes,
            max_message_bytes=limits.max_message_bytes,
            stream_window_items=limits.stream_window_items,
            max_windows=MAX_WINDOWS,
            max_prediction_words=MAX_WORDS,
        ),
        server_version=version("gradewire"),
    )


def why_unusable(status: ModelStatus) -> str:
    """Why a model cannot be used and what to do; without the server's paths, which its log has. Empty when it can."""
    if status.state in USABLE_STATES:
        return ""
    if status.message:
        return status.message
    state = "not built here; get it" if status.state == "missing" else f"{status.state} here; replace it"
    return f"model {status.name} is {state} with: {status.how_to_get}"


def _model(status: ModelStatus) -> models_pb2.Model:
    return models_pb2.Model(
        name=status.name,
        digest=status.digest,
        state=models_pb2.ModelState.Value(f"MODEL_STATE_{status.state.upper()}"),
        message=why_unusable(status),
        how_to_get="" if status.state in USABLE_STATES else status.how_to_get,
        is_default=status.is_default,
        dims=status.dims,
        max_tokens=status.max_tokens,
        licence=status.licence,
        numeric_class=status.numeric_class,
    )


def _metric(info: MetricInfo, models: Iterable[ModelStatus], without_synonyms: str) -> models_pb2.Metric:
    missing = without_synonyms if info.needs_synonyms else ""
    if info.needs_model and not any(model.state in USABLE_STATES for model in models):
        hint = next((model.how_to_get for model in models if model.is_default), "")
        missing = f"no encoder is here; get the default one with: {hint}"
    return models_pb2.Metric(
        name=info.name,
        version=info.version,
        description=info.description,
        minimum=info.minimum,
        maximum=info.maximum,
        higher_is_better=info.higher_is_better,
        citation=info.citation,
        parameters=[
            models_pb2.MetricParameter(
                name=parameter.name,
                description=parameter.description,
                default_value=parameter.default_value,
                allowed=parameter.allowed,
            )
            for parameter in info.parameters
        ],
        needs_model=info.needs_model,
        available=not missing,
        missing=missing,
    )
