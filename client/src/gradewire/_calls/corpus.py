"""Metrics that count weights over the items of one request: their items must travel together."""

from collections.abc import Sequence

from gradewire.errors import InvalidRequest
from gradewire_proto.v1 import types_pb2

# What a metric takes when its message does not say; all others take no weights.
_TAKES_REQUEST = frozenset({"cider"})
_REMEDY = (
    "or prepare the references as a set (client.prepare or `gradewire prepare`, with the metric's corpus or idf set to "
    "prepared) and name it as reference_set"
)


def counting_over_request(specs: Sequence[types_pb2.MetricSpec]) -> list[str]:
    """Names of the metrics whose corpus is the request's items, each once."""
    found = (spec.WhichOneof("metric") or "" for spec in specs if _corpus(spec) == types_pb2.CORPUS_REQUEST)
    return list(dict.fromkeys(found))


def check_streamed(specs: Sequence[types_pb2.MetricSpec]) -> None:
    """Raises InvalidRequest where a metric needs all items at once, which a stream never has."""
    if names := counting_over_request(specs):
        raise InvalidRequest(
            f"{', '.join(names)}: corpus=request counts weights over the items of one call, and a stream has no such "
            f"call: score them with score(), {_REMEDY}"
        )


def too_many(specs: Sequence[types_pb2.MetricSpec], items: int, max_items: int) -> InvalidRequest:
    """What is said of items that do not fit into the one request that they need."""
    return InvalidRequest(
        f"{', '.join(counting_over_request(specs))}: corpus=request counts weights over the items of one request, and "
        f"these {items} do not fit into one: give at most {max_items} (and no more text than a message holds) in a "
        f"call, {_REMEDY}"
    )


def _corpus(spec: types_pb2.MetricSpec) -> int:
    """Value of the metric's parameter that names a corpus, with the server's default filled in."""
    name = spec.WhichOneof("metric")
    if name is None:
        return types_pb2.CORPUS_NONE
    message = getattr(spec, name)
    for field in message.DESCRIPTOR.fields:
        if field.enum_type is not None and field.enum_type.full_name == types_pb2.Corpus.DESCRIPTOR.full_name:
            value = int(getattr(message, field.name))
            return value or (types_pb2.CORPUS_REQUEST if name in _TAKES_REQUEST else types_pb2.CORPUS_NONE)
    return types_pb2.CORPUS_NONE
