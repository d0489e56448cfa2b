"""Metrics that grade by the texts alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from typing_extensions import override

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import ModelMetadata, Parameters
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import Failure, MetricResult
from gradewire_server.metrics.checks import check_item, check_references

P = TypeVar("P", bound=Parameters)


class NothingToPrepare:
    """Base of metrics for which nothing has to be prepared."""

    def prepare(self, entry: ReferenceEntry, parameters: object) -> Preparation:
        """Asks for nothing; only checks the references."""
        del parameters
        yield from ()
        return check_references(entry.references)


class TextMetric(NothingToPrepare, ABC, Generic[P]):
    """Base of metrics that ask neither an encoder nor a judge."""

    def score(self, item: Item, parameters: P, metadata: ModelMetadata) -> Program:
        """Asks for nothing."""
        del metadata
        yield from ()
        failure = self.check(item, parameters)
        return self.grade(item, parameters) if failure is None else MetricResult.failed(failure)

    def check(self, item: Item, parameters: P) -> Failure | None:
        """Why an item cannot be graded, or None."""
        del parameters
        return check_item(item)

    @abstractmethod
    def grade(self, item: Item, parameters: P) -> MetricResult:
        """Grades an item that passes `check`."""


class MatchMetric(TextMetric[Parameters]):
    """Base of metrics without parameters: 1 if a reference matches, else 0; the first that does is named."""

    parameters_type = Parameters

    @override
    def grade(self, item: Item, parameters: Parameters) -> MetricResult:
        del parameters
        for index, matches in enumerate(self.matches(item)):
            if matches:
                return MetricResult(score=1.0, matched_reference=index, correct=True)
        return MetricResult(score=0.0, correct=False)

    @abstractmethod
    def matches(self, item: Item) -> Iterable[bool]:
        """Whether each reference matches the prediction, in their order."""
