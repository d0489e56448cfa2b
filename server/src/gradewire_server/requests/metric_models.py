"""The models that one metric of a request runs on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gradewire_server.domain.metric import NO_MODEL, ModelMetadata, ParameterError
from gradewire_server.domain.ports import ModelIndex, ModelStatus
from gradewire_server.domain.quoting import quoted
from gradewire_server.domain.result import Failure, Status
from gradewire_server.requests.model_states import why_unusable

_MODEL: Final = re.compile(r"(?P<name>[^@]*)(?:@(?P<digest>[0-9a-fA-F]{8,64}))?")


@dataclass(frozen=True, slots=True)
class MetricModels:
    """What a metric runs on: its model, if it takes one, and the judge and the grader that it names beside it."""

    model: ModelStatus | None
    judge: ModelStatus | None
    grader: ModelStatus | None = None

    @property
    def name(self) -> str:
        """Of the model, "" for none."""
        return self.model.name if self.model else ""

    @property
    def digest(self) -> str:
        """Of the model, "" for none."""
        return self.model.digest if self.model else ""

    @property
    def metadata(self) -> ModelMetadata:
        """Of the model, with judge and grader."""
        metadata = self.model.metadata if self.model else NO_MODEL
        return replace(metadata, judge=_pinned(self.judge), grader=_pinned(self.grader))


def _pinned(model: ModelStatus | None) -> str:
    return f"{model.name}@{model.digest}" if model else ""


def find_model(written: str, path: str, known: ModelIndex) -> ModelStatus | Failure:
    """The model that NAME, NAME@DIGEST or "" stands for, or why it cannot be used.

    Args:
        written: As sent.
        path: Where it stands in the request, for messages.
        known: Encoders, graders or judges.

    Raises:
        ParameterError: It is no model's name.
    """
    match = _MODEL.fullmatch(written)
    if match is None:
        raise ParameterError("model", f"{quoted(written)} is not a model name, nor NAME@DIGEST with 8 to 64 hex digits")
    model = known.status(match["name"])
    if isinstance(model, Failure):
        return Failure(model.status, f"{path}: {_why_unusable(match['name'], model, known.statuses())}")
    wanted = (match["digest"] or "").lower()
    if not model.digest.startswith(wanted):
        return Failure(
            Status.MODEL_UNAVAILABLE,
            f"{path}: {model.name} has the digest {model.digest} here, {wanted} is asked for",
        )
    return model


def _why_unusable(name: str, failure: Failure, known: Sequence[ModelStatus]) -> str:
    for status in known:
        if status.name == name or (status.is_default and not name):
            return why_unusable(status) or failure.message
    return failure.message
