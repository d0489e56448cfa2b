"""Metrics that grade by the texts alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import ModelFacts, Parameters
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import Failure, MetricResult
from gradewire_server.metrics.checks import check_item, check_references

P = TypeVar("P", bound=Parameters)


class TextMetric(ABC, Generic[P]):
    """Asks neither an encoder nor a judge, for scores as little as for references that are prepared."""

    def score(self, item: Item, parameters: P, facts: ModelFacts) -> Program:
        """Asks for nothing."""
        del facts
        yield from ()
        failure = self.check(item, parameters)
        return self.grade(item, parameters) if failure is None else MetricResult.failed(failure)

    def prepare(self, entry: ReferenceEntry, parameters: P) -> Preparation:
        """Asks for nothing."""
        del parameters
        yield from ()
        return check_references(entry.references)

    def check(self, item: Item, parameters: P) -> Failure | None:
        """Why an item cannot be graded, or None."""
        del parameters
        return check_item(item)

    @abstractmethod
    def grade(self, item: Item, parameters: P) -> MetricResult:
        """Grades an item that passes `check`."""


def first_match(found: Iterable[bool]) -> MetricResult:
    """1 for the first reference that matches, else 0."""
    for index, matches in enumerate(found):
        if matches:
            return MetricResult(score=1.0, matched_reference=index, correct=True)
    return MetricResult(score=0.0, correct=False)
