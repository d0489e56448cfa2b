"""Names and bytes of results that the server processes of one machine share."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Final, NamedTuple, get_origin, get_type_hints

from gradewire_proto.parts import PART_TYPES, Parts
from gradewire_server.domain.items import Item, MetricResult, ResultWarning

NAME_BYTES: Final = 16
_MARK: Final = b"\0"
"""The last byte of a value in the shared table is not checked, so it must mean nothing."""
_NAMES: Final = {kind: name for name, kind in PART_TYPES.items()}


class FoundResult(NamedTuple):
    """A shared result, and the number of its texts."""

    result: MetricResult
    texts: int


def recipe_digest(*recipe: object) -> bytes:
    """Return a digest of everything but the item that decides a result: metric, parameters and models.

    Equal representations must mean equal values. The package's version counts, because the processes of a server may
    have different versions during a restart.
    """
    return blake2b(repr((version("gradewire"), *recipe)).encode(errors="surrogatepass"), digest_size=32).digest()


def result_name(recipe: bytes, namespace: str, item: Item) -> bytes:
    """Return the name of an item's result in the shared table, from the digest of `recipe_digest`."""
    texts = (
        namespace,
        item.question,
        item.prediction,
        item.references,
        item.synthetic_answers,
        item.captions,
        item.choices,
        item.answerable,
    )
    return blake2b(repr(texts).encode(errors="surrogatepass"), key=recipe, digest_size=NAME_BYTES).digest()


def encode_result(result: MetricResult, texts: int) -> bytes:
    """Return the bytes of a result with a score."""
    parts = result.parts
    fields = None if parts is None else [_plain(getattr(parts, name)) for name in type(parts).__slots__]
    row = (
        texts,
        result.score,
        result.correct,
        result.matched_reference,
        [int(warning) for warning in result.warnings],
        result.message,
        None if parts is None else _NAMES[type(parts)],
        fields,
    )
    return (
        json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_number).encode("utf-8", "surrogatepass")
        + _MARK
    )


def decode_result(value: bytes) -> FoundResult:
    """Return the result in the bytes of `encode_result`."""
    row = json.loads(value[: -len(_MARK)].decode("utf-8", "surrogatepass"))
    texts, score, correct, matched_reference, warnings, message, kind, fields = row
    result = MetricResult(
        score,
        message=message,
        warnings=tuple(map(ResultWarning, warnings)),
        matched_reference=matched_reference,
        parts=None if kind is None else _reader(kind)(fields),
        correct=correct,
    )
    return FoundResult(result, texts)


@cache
def _reader(name: str) -> Callable[[list[Any]], Parts]:
    kind = PART_TYPES[name]
    hints = get_type_hints(kind)
    tuples = [position for position, field in enumerate(kind.__slots__) if get_origin(hints[field]) is tuple]

    def read(fields: list[Any]) -> Parts:
        for position in tuples:
            fields[position] = tuple(fields[position])
        return kind(*fields)

    return read


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _number(value: Any) -> Any:
    """Return the Python number in a number of numpy."""
    return value.item()
