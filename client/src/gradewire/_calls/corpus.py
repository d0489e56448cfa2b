"""Metrics that count weights over the items of one request: their items must travel together."""

from collections.abc import Sequence

from gradewire.errors import InvalidRequest
from gradewire_proto.conventions.parameters import corpus_of
from gradewire_proto.v1 import types_pb2

_REMEDY = (
    "or prepare the references as a set (client.prepare or `gradewire prepare`, with the metric's corpus or idf set to "
    "prepared) and name it as reference_set"
)


def counting_over_request(specs: Sequence[types_pb2.MetricSpec]) -> list[str]:
    """Names of the metrics whose corpus is the request's items, each once."""
    found = (spec.WhichOneof("metric") or "" for spec in specs if corpus_of(spec) == types_pb2.CORPUS_REQUEST)
    return list(dict.fromkeys(found))


def check_streamed(specs: Sequence[types_pb2.MetricSpec]) -> None:
    """Refuses metrics that need all items at once, which a stream never has; raises InvalidRequest."""
    if names := counting_over_request(specs):
        raise InvalidRequest(
            f"{', '.join(names)}: corpus=request counts weights over the items of one call, and a stream has no such "
            f"call: score them with score(), {_REMEDY}"
        )


def too_many(specs: Sequence[types_pb2.MetricSpec], items: int, max_items: int) -> InvalidRequest:
    """The error for items that do not fit into the one request that they need."""
    return InvalidRequest(
        f"{', '.join(counting_over_request(specs))}: corpus=request counts weights over the items of one request, and "
        f"these {items} do not fit into one: give at most {max_items} (and no more text than a message holds) in a "
        f"call, {_REMEDY}"
    )
