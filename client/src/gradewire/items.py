"""What is graded: items, and their check before they go on the wire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from gradewire_proto.v1 import types_pb2

TEXT_FIELDS = ("id", "question", "prediction", "caption", "group")
LIST_FIELDS = ("references", "synthetic_answers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One answer to grade. A mapping with the same keys does as well; further keys are not looked at.

    Attributes:
        references: One or more right answers.
        prediction: The answer to grade; blank is EMPTY_PREDICTION.
        question: What was asked; read by sfve, by bertscore with its question, and by judge metrics.
        id: Handed back beside the index; duplicates are allowed.
        synthetic_answers: Each reference written out as a sentence, in the order of `references`; or empty.
        caption: What the picture shows; read by judge metrics only.
        group: A label for summaries; never read by a metric.
    """

    references: Sequence[str]
    prediction: str
    question: str = ""
    id: str = ""
    synthetic_answers: Sequence[str] = ()
    caption: str = ""
    group: str = ""


ItemLike = Item | Mapping[str, Any]


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


def encode_item(index: int, item: object, *, max_bytes: int) -> types_pb2.Item | ItemProblem:
    """Makes the message of an item, or says what is wrong with it.

    Args:
        index: Position in the call, for the message.
        item: The item; anything else gives a problem, never an exception.
        max_bytes: Largest encoded size that fits into a message.
    """
    if isinstance(item, Item):
        item = {field.name: getattr(item, field.name) for field in fields(Item)}
    elif not isinstance(item, Mapping):
        return ItemProblem("", f"items[{index}] is a {type(item).__name__}: give a mapping or a gradewire.Item")
    values = {name: item[name] for name in (*TEXT_FIELDS, *LIST_FIELDS) if item.get(name) is not None}
    if isinstance(values.get("id"), int):
        values["id"] = str(values["id"])
    # protobuf would take a string for a list of letters, and any iterable for a list.
    listed = all(isinstance(values.get(name, ()), list | tuple) for name in LIST_FIELDS)
    if listed and "references" in values and "prediction" in values:
        try:
            message = types_pb2.Item(**values)
        except (TypeError, ValueError):
            message = None  # the look at each field below finds it, and names it
        # protobuf takes bytes that happen to be UTF-8 for text: then the same data would pass or fail by chance.
        if message is not None and not holds_bytes(values):
            if (size := message.ByteSize()) <= max_bytes:
                return message
            problem = f"items[{index}] takes {size} bytes, at most {max_bytes} fit into a message: shorten it"
            return ItemProblem(message.id, problem, too_large=True)
    return ItemProblem(_printable(values.get("id", "")), _find_problem(index, item, values))


def _find_problem(index: int, item: Mapping[Any, Any], values: Mapping[str, Any]) -> str:
    for name in ("references", "prediction"):
        if name not in values:
            there = ", ".join(sorted(map(_printable, item))) or "nothing"
            problem = "is None" if name in item else f"is missing (there is: {there})"
            hint = 'write "" for an empty answer' if name == "prediction" else "give a list of strings"
            return f"items[{index}].{name} {problem}: {hint}"
    for name in LIST_FIELDS:
        value = values.get(name, ())
        if not isinstance(value, list | tuple):
            return f"items[{index}].{name} is a {type(value).__name__}: give a list of strings"
        for position, text in enumerate(value):
            if problem := _text_problem(text):
                return f"items[{index}].{name}[{position}] {problem}"
    for name in TEXT_FIELDS:
        if problem := _text_problem(values.get(name, "")):
            return f"items[{index}].{name} {problem}"
    return f"items[{index}] cannot be encoded: check the types of its fields"


def holds_bytes(values: Mapping[str, Any]) -> bool:
    """Whether bytes stand in the place of a text, or among texts."""
    return any(
        isinstance(value, bytes) or (isinstance(value, list | tuple) and any(isinstance(text, bytes) for text in value))
        for value in values.values()
    )


def _text_problem(text: object) -> str:
    if isinstance(text, bytes):
        return "is bytes: give a string"
    if not isinstance(text, str):
        return f"is a {type(text).__name__}: give a string"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return (
            f"holds a lone surrogate (U+{ord(text[error.start]):04X} at character {error.start}), which is no text: "
            "decode the source as UTF-8"
        )
    return ""


def _printable(value: object) -> str:
    return str(value).encode(errors="replace").decode()
