"""What is graded: items, and their check before they go on the wire."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Generic, TypeVar

from gradewire._input.aliases import LIST_FIELDS, TEXT_FIELDS
from gradewire._input.fields import as_texts, found_under, found_values
from gradewire._input.images import image_messages
from gradewire._input.tables import Table, is_table
from gradewire._input.values import UnreadableValueError
from gradewire_proto.v1 import judging_pb2, types_pb2

M = TypeVar("M", types_pb2.Item, judging_pb2.Pair)


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
        traceparent: W3C name of the span that made the answer: events of its results belong to it. Never sent.
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
    traceparent: str = ""


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


@dataclass(frozen=True, slots=True)
class RowForm(Generic[M]):
    """How rows of one kind go on the wire.

    Attributes:
        plural: What they are called in messages.
        kind: Their dataclass; a mapping with the same keys does as well.
        message_type: Their message.
        names: Fields that are read of them, but for pictures.
        needed: Those among them that must be there.
    """

    plural: str
    kind: type
    message_type: type[M]
    names: tuple[str, ...]
    needed: tuple[str, ...]


_ITEMS: Final = RowForm("items", Item, types_pb2.Item, (*TEXT_FIELDS, *LIST_FIELDS), ("references", "prediction"))


def encode_item(index: int, item: object, *, max_bytes: int, images: bool = False) -> types_pb2.Item | ItemProblem:
    """Makes the message of an item, or says what is wrong with it.

    Args:
        index: Position in the call, for the message.
        item: The item; anything else gives a problem, never an exception.
        max_bytes: Largest encoded size that fits into a message.
        images: Whether its pictures are sent.
    """
    return encode_row(_ITEMS, index, item, max_bytes=max_bytes, images=images)


def encode_row(form: RowForm[M], index: int, row: object, *, max_bytes: int, images: bool = False) -> M | ItemProblem:
    """As `encode_item`, for rows of any form."""
    place = f"{form.plural}[{index}]"
    if isinstance(row, form.kind):
        row = {field.name: getattr(row, field.name) for field in fields(form.kind)}
    elif not isinstance(row, Mapping):
        way_out = (
            "give the table itself, or one of all (concat)"
            if is_table(row)
            else f"give a mapping or a gradewire.{form.kind.__name__}"
        )
        return ItemProblem("", f"{place} is a {type(row).__name__}: {way_out}")
    values = found_values(row, form.names)
    try:
        pictures = image_messages(row.get("images")) if images else ()
    except UnreadableValueError as error:
        return ItemProblem(_printable(values.get("id", "")), f"{place}.images{_printable(error)}")
    message = _message_of(form, values)
    if message is None:
        try:
            values = as_texts(values)
        except UnreadableValueError as error:
            return ItemProblem(_printable(values.get("id", "")), f"{place}.{_printable(error)}")
        message = _message_of(form, values)
    if message is None:
        return ItemProblem(_printable(values.get("id", "")), _find_problem(form, place, row, values))
    message.images.extend(pictures)
    if (size := message.ByteSize()) <= max_bytes:
        return message
    way_out = "send fewer or smaller pictures" if pictures else "shorten it"
    problem = f"{place} takes {size} bytes, at most {max_bytes} fit into a message: {way_out}"
    return ItemProblem(message.id, problem, too_large=True)


def _message_of(form: RowForm[M], values: Mapping[str, Any]) -> M | None:
    """The message of values that are texts and lists of texts already, as they nearly always are; else None."""
    # protobuf would take a string for a list of letters, and any iterable for a list.
    listed = all(isinstance(values.get(name, ()), list | tuple) for name in LIST_FIELDS)
    if not listed or any(name not in values for name in form.needed):
        return None
    try:
        message = form.message_type(**values)
    except (TypeError, ValueError):
        return None
    # protobuf takes bytes that happen to be UTF-8 for text: then the same data would pass or fail by chance.
    return None if holds_bytes(values) else message


def _find_problem(form: RowForm[M], place: str, row: Mapping[Any, Any], values: Mapping[str, Any]) -> str:
    for name in form.needed:
        if name not in values:
            there = ", ".join(sorted(map(_printable, row))) or "nothing"
            found = found_under(row, name)
            problem = f"is {row[found]}" if found in row else f"is missing (there is: {there})"
            hint = "give a list of strings" if name in LIST_FIELDS else 'write "" for an empty answer'
            return f"{place}.{found} {problem}: {hint}"
    for name, value in values.items():
        for position, text in enumerate(value if isinstance(value, list | tuple) else [value]):
            field = f"{name}[{position}]" if name in LIST_FIELDS else name
            try:
                text.encode()
            except UnicodeEncodeError as error:
                return (
                    f"{place}.{field} holds a lone surrogate (U+{ord(text[error.start]):04X} at character "
                    f"{error.start}), which is no text: decode the source as UTF-8"
                )
    return f"{place} cannot be encoded: check the types of its fields"


def holds_bytes(values: Mapping[str, Any]) -> bool:
    """Whether bytes stand in the place of a text, or among texts."""
    return any(
        isinstance(value, bytes) or (isinstance(value, list | tuple) and any(isinstance(text, bytes) for text in value))
        for value in values.values()
    )


def _printable(value: object) -> str:
    return str(value).encode(errors="replace").decode()
