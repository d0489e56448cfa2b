"""What is graded: items, and their check before they go on the wire."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from gradewire._input.aliases import LIST_FIELDS, TEXT_FIELDS
from gradewire._input.fields import as_texts, found_under, found_values
from gradewire._input.images import image_messages
from gradewire._input.tables import Table, is_table
from gradewire._input.values import UnreadableValueError
from gradewire_proto.v1 import types_pb2

_FIELDS = (*TEXT_FIELDS, *LIST_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One answer to grade. A mapping with the same keys does as well, or with other usual ones (`gradewire score`'s).

    A field of a mapping may hold what table libraries have in the place of a text or a list: one text as the only
    reference, numbers, arrays. Further keys are not looked at.

    Attributes:
        references: One or more right answers.
        prediction: The answer to grade; blank is EMPTY_PREDICTION.
        question: What was asked; read by sfve, by bertscore with its question, and by judge metrics.
        id: Handed back beside the index; duplicates are allowed.
        synthetic_answers: Each reference written out as a sentence, in the order of `references`; or empty.
        caption: What the picture shows; read by judge metrics that are asked to (`caption=true`).
        captions: Further captions of it, read after `caption`.
        group: A label for summaries; never read by a metric.
        images: What the question is about; sent where a metric shows them (`judge_verdict?image=true`). Each is the
            bytes of a PNG, JPEG, WebP or GIF file, a pathlib.Path, a picture of Pillow's, a mapping with `bytes`, a
            data: URI, or an https address of a host that the server's setting judge_image_hosts has.
    """

    references: Sequence[str]
    prediction: str
    question: str = ""
    id: str = ""
    synthetic_answers: Sequence[str] = ()
    caption: str = ""
    group: str = ""
    captions: Sequence[str] = ()
    images: Sequence[object] = ()


ItemLike = Item | Mapping[str, Any]
ItemsLike = Iterable[ItemLike] | Table
"""Items, or a table with a row for each: of pandas, polars or Arrow."""


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """Why an item cannot be sent.

    Attributes:
        id: The item's id as far as it can be shown.
        message: Names the item and the field.
        too_large: Nothing else is wrong with it: it may fit where messages may be larger.
    """

    id: str
    message: str
    too_large: bool = False


def encode_item(index: int, item: object, *, max_bytes: int, images: bool = False) -> types_pb2.Item | ItemProblem:
    """Makes the message of an item, or says what is wrong with it.

    Args:
        index: Position in the call, for the message.
        item: The item; anything else gives a problem, never an exception.
        max_bytes: Largest encoded size that fits into a message.
        images: Whether its pictures are sent.
    """
    if isinstance(item, Item):
        item = {field.name: getattr(item, field.name) for field in fields(Item)}
    elif not isinstance(item, Mapping):
        way_out = (
            "give the table itself, or one of all (concat)" if is_table(item) else "give a mapping or a gradewire.Item"
        )
        return ItemProblem("", f"items[{index}] is a {type(item).__name__}: {way_out}")
    values = found_values(item, _FIELDS)
    try:
        pictures = image_messages(item.get("images")) if images else ()
    except UnreadableValueError as error:
        return ItemProblem(_printable(values.get("id", "")), f"items[{index}].images{_printable(error)}")
    message = _message_of(values)
    if message is None:
        try:
            values = as_texts(values)
        except UnreadableValueError as error:
            return ItemProblem(_printable(values.get("id", "")), f"items[{index}].{_printable(error)}")
        message = _message_of(values)
    if message is None:
        return ItemProblem(_printable(values.get("id", "")), _find_problem(index, item, values))
    message.images.extend(pictures)
    if (size := message.ByteSize()) <= max_bytes:
        return message
    way_out = "send fewer or smaller pictures" if pictures else "shorten it"
    problem = f"items[{index}] takes {size} bytes, at most {max_bytes} fit into a message: {way_out}"
    return ItemProblem(message.id, problem, too_large=True)


def _message_of(values: Mapping[str, Any]) -> types_pb2.Item | None:
    """The message of values that are texts and lists of texts already, as they nearly always are; else None."""
    # protobuf would take a string for a list of letters, and any iterable for a list.
    listed = all(isinstance(values.get(name, ()), list | tuple) for name in LIST_FIELDS)
    if not listed or "references" not in values or "prediction" not in values:
        return None
    try:
        message = types_pb2.Item(**values)
    except (TypeError, ValueError):
        return None
    # protobuf takes bytes that happen to be UTF-8 for text: then the same data would pass or fail by chance.
    return None if holds_bytes(values) else message


def _find_problem(index: int, item: Mapping[Any, Any], values: Mapping[str, Any]) -> str:
    for name in ("references", "prediction"):
        if name not in values:
            there = ", ".join(sorted(map(_printable, item))) or "nothing"
            found = found_under(item, name)
            problem = f"is {item[found]}" if found in item else f"is missing (there is: {there})"
            hint = 'write "" for an empty answer' if name == "prediction" else "give a list of strings"
            return f"items[{index}].{found} {problem}: {hint}"
    for name, value in values.items():
        for position, text in enumerate(value if isinstance(value, list | tuple) else [value]):
            place = f"{name}[{position}]" if name in LIST_FIELDS else name
            try:
                text.encode()
            except UnicodeEncodeError as error:
                return (
                    f"items[{index}].{place} holds a lone surrogate (U+{ord(text[error.start]):04X} at character "
                    f"{error.start}), which is no text: decode the source as UTF-8"
                )
    return f"items[{index}] cannot be encoded: check the types of its fields"


def holds_bytes(values: Mapping[str, Any]) -> bool:
    """Whether bytes stand in the place of a text, or among texts."""
    return any(
        isinstance(value, bytes) or (isinstance(value, list | tuple) and any(isinstance(text, bytes) for text in value))
        for value in values.values()
    )


def _printable(value: object) -> str:
    return str(value).encode(errors="replace").decode()
