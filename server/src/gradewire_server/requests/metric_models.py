"""The models that one metric of a request runs on."""

from dataclasses import dataclass, replace

from gradewire_server.domain.metric import NO_MODEL, ModelMetadata
from gradewire_server.domain.ports import ModelStatus


@dataclass(frozen=True, slots=True)
class MetricModels:
    """What a metric runs on: its model, if it takes one, and the judge that it names beside it."""

    model: ModelStatus | None
    judge: ModelStatus | None

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
        """Of the model, with the judge."""
        metadata = self.model.metadata if self.model else NO_MODEL
        return replace(metadata, judge=f"{self.judge.name}@{self.judge.digest}") if self.judge else metadata
