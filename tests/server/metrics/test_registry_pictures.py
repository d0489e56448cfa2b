"""Which metrics read an item's pictures: judge_verdict?image=true, and no other."""

from dataclasses import replace
from typing import Any

import pytest

from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.items import Image, Item, MetricResult
from gradewire_server.domain.judge import Choose
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.parameters import read_parameters

ITEM = Item("1", "What is on the mat?", ("a cat", "cat"), "a grey cat")
SEEN = replace(ITEM, images=(Image(data=b"no picture at all"), Image(uri="file:///nowhere")))


def begun(name: str, item: Item, **written: Any) -> Any:
    """What a metric asks for first, or its result where it asks for nothing."""
    message = getattr(types_pb2.MetricSpec(**{name: written}), name)
    parameters = read_parameters(message, REGISTRY[name], name, model="")
    try:
        return REGISTRY[name].score(item, parameters, NO_MODEL).send(None)
    except StopIteration as stop:
        return stop.value


@pytest.mark.parametrize("name", REGISTRY)
def test_a_metric_that_is_not_asked_to_show_pictures_leaves_them_alone(name: str) -> None:
    asked = begun(name, SEEN)
    assert asked == begun(name, ITEM)
    if isinstance(asked, MetricResult):
        assert asked.warnings == ()
    elif REGISTRY[name].info.needs_judge:
        assert [need.prompt.images for need in asked] == [()]


def test_judge_verdict_shows_them_where_it_is_asked_to() -> None:
    (need,) = begun("judge_verdict", SEEN, image=True)
    assert isinstance(need, Choose)
    assert need.prompt.images == SEEN.images


def test_one_metric_has_the_parameter() -> None:
    having = [name for name, metric in REGISTRY.items() if "image" in {each.name for each in metric.info.parameters}]
    assert having == ["judge_verdict"]
