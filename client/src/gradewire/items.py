"""Items to grade, their pictures, and the conversion of both to messages."""

import contextlib
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from gradewire._columns import AmbiguousColumnsError
from gradewire._rows import (
    LIST_FIELDS,
    TEXT_FIELDS,
    TRUTH_FIELDS,
    Table,
    UnreadableValueError,
    as_texts,
    column_of,
    default_references,
    field_values,
    is_missing,
    is_table,
)
from gradewire_proto.v1 import judging_pb2, types_pb2

_URI_STARTS = ("data:", "https:")
_JPEG_MODES = frozenset({"CMYK", "YCbCr"})
_DIGEST_BYTES = 16

M = TypeVar("M", types_pb2.Item, judging_pb2.Pair)


def image_messages(values: object) -> list[types_pb2.Image]:
    """Return an item's pictures as messages.

    Args:
        values: A picture or a list of pictures. Each is a file's bytes, a pathlib.Path, a data: URI, an https
            address, a Pillow image, or a mapping with `bytes` (the format of Hugging Face datasets). The server rejects
            other strings.

    Raises:
        UnreadableValueError: A picture cannot be sent. The message begins with the picture's index: "[1] is a float".
    """
    if isinstance(values, str) and not values.strip():
        return []
    listed = values if isinstance(values, list | tuple) else [values]
    return [_message(position, value) for position, value in enumerate(listed) if not is_missing(value)]


def local_picture(named: str, folder: Path) -> bytes | str:
    """Return the content to send for a picture named in a row.

    Return a URI unchanged. A file must be inside `folder`, so that downloaded rows cannot name other files on this
    machine.

    Raises:
        UnreadableValueError: The picture cannot be sent. The message says why but does not name the picture.
    """
    named = named.strip()
    if _is_uri(named):
        # Replace a lone surrogate, which cannot be encoded, so that the server rejects the address.
        return named.encode(errors="replace").decode()
    with _named_reasons():
        return _file_in(named, folder).read_bytes()


def picture_digest(named: str, folder: Path) -> str:
    """Return a digest (32 hex digits) of `local_picture`'s content, or "" if the picture cannot be read."""
    named = named.strip()
    if _is_uri(named):
        return hashlib.blake2b(named.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    try:
        with _named_reasons(), _file_in(named, folder).open("rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
    except UnreadableValueError:
        return ""


def _is_uri(named: str) -> bool:
    return named[:6].casefold().startswith(_URI_STARTS)


def _file_in(named: str, folder: Path) -> Path:
    path = (folder / named).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UnreadableValueError("the file is outside the folder of the rows: move the picture into that folder")
    if not path.is_file():
        raise UnreadableValueError("the file is not in the folder of the rows")
    return path


@contextlib.contextmanager
def _named_reasons() -> Iterator[None]:
    try:
        yield
    except UnreadableValueError:
        raise
    except OSError as error:
        raise UnreadableValueError(f"the file cannot be read: {error.strerror or error}") from None
    except (ValueError, RuntimeError):  # the name contains a NUL, or links form a loop
        raise UnreadableValueError("the file's name is not valid") from None


def _message(position: int, value: Any) -> types_pb2.Image:
    if isinstance(value, Mapping):
        # Ignore the mapping's path, because downloaded rows could name any file on this machine.
        value = value.get("bytes")
        if value is None:
            raise UnreadableValueError(f"[{position}] is a mapping without bytes: give the file's bytes")
    if isinstance(value, bytes | bytearray | memoryview):
        return types_pb2.Image(data=bytes(value))
    if isinstance(value, str):
        try:
            return types_pb2.Image(uri=value)
        except (TypeError, ValueError):
            raise UnreadableValueError(f"[{position}] is an address that cannot be encoded: give bytes") from None
    if isinstance(value, PathLike):
        try:
            return types_pb2.Image(data=Path(value).read_bytes())
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UnreadableValueError(f"[{position}] cannot be read: {why}") from None
    if callable(getattr(value, "save", None)) and hasattr(value, "mode"):  # a Pillow image; Pillow is not imported here
        return types_pb2.Image(data=_png(position, value))
    raise UnreadableValueError(f"[{position}] is a {type(value).__name__}: give bytes, a pathlib.Path or a URI")


def _png(position: int, picture: Any) -> bytes:
    file = io.BytesIO()
    try:
        (picture.convert("RGB") if picture.mode in _JPEG_MODES else picture).save(file, "PNG")
    # Pillow decodes the file only here, and its decoders may raise any exception.
    except Exception as error:
        raise UnreadableValueError(
            f"[{position}] is a picture of mode {picture.mode} that cannot be saved as PNG ({error}): convert it to "
            "RGB, or give the file's bytes"
        ) from error
    return file.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An answer to grade. A mapping with the same keys, or with keys that `gradewire score` accepts, works too.

    A mapping's values may also be numbers, arrays, or a single string instead of a list of references. Unknown keys are
    ignored.

    Attributes:
        references: One or more right answers; an empty list if `answerable` is False.
        prediction: The answer to grade. A blank answer gets the status EMPTY_PREDICTION, unless `answerable` is False.
        question: The question. sfve, correctness, judge metrics, and bertscore with `with_question=true` read it.
        id: Your id for the item, returned with the result; need not be unique.
        synthetic_answers: Each reference rewritten as a full sentence, in the order of `references`; may be empty.
        caption: A description of the picture, for judge metrics with `caption=true`.
        captions: More descriptions, which the judge reads after `caption`.
        group: A label for summaries; no metric reads it.
        images: Pictures that the question is about. They are sent only if a metric shows pictures to a judge
            (`judge_verdict?image=true`). Each picture is the bytes of a PNG, JPEG, WebP or GIF file, a pathlib.Path, a
            Pillow image, a mapping with `bytes`, a data: URI, or an https address on a host in the server's setting
            judge_image_hosts.
        choices: Texts of a multiple-choice question's options, in the order of the letters A, B, C, or an object with
            these letters as keys. Without texts, choice_match looks for options in the question.
        answerable: False if the question has no answer. An answer that abstains is then right, and any other is wrong.
        traceparent: W3C traceparent of the span that produced the answer. Result events become this span's children;
            the client never sends the value.
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
    choices: Sequence[str] = ()
    answerable: bool = True
    traceparent: str = ""


ItemLike = Item | Mapping[str, Any]
ItemsLike = Iterable[ItemLike] | Table
"""Items, or a pandas, polars or Arrow table with one item per row."""


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """The reason why an item cannot be sent. If `too_large` is set, the item may fit into a larger message."""

    id: str
    message: str
    too_large: bool = False


@dataclass(frozen=True, slots=True)
class RowFormat(Generic[M]):
    """The wire format of items or pairs, without pictures.

    `names` lists all fields, and `needed` lists the required fields.
    """

    plural: str
    kind: type
    message_type: type[M]
    names: tuple[str, ...]
    needed: tuple[str, ...]


_ITEMS: Final = RowFormat(
    "items", Item, types_pb2.Item, (*TEXT_FIELDS, *LIST_FIELDS, *TRUTH_FIELDS), ("references", "prediction")
)


def encode_item(index: int, item: object, *, max_bytes: int, images: bool = False) -> types_pb2.Item | ItemProblem:
    """Return an item's message of at most `max_bytes`, or the reason why the item cannot be sent. Never raise."""
    return encode_row(_ITEMS, index, item, max_bytes=max_bytes, images=images)


def encode_row(form: RowFormat[M], index: int, row: object, *, max_bytes: int, images: bool = False) -> M | ItemProblem:
    """Return the message of an item or a pair, or the reason why the row cannot be sent; see `encode_item`."""
    position = f"{form.plural}[{index}]"
    if isinstance(row, form.kind):
        row = {field.name: getattr(row, field.name) for field in fields(form.kind)}
    elif not isinstance(row, Mapping):
        way_out = (
            "give the table itself, or concatenate the tables"
            if is_table(row)
            else f"give a mapping or a gradewire.{form.kind.__name__}"
        )
        return ItemProblem("", f"{position} is a {type(row).__name__}: {way_out}")
    values: dict[str, Any] = {}
    try:
        values = field_values(row, form.names)
        pictures = image_messages(row.get("images")) if images else ()
    except (AmbiguousColumnsError, UnreadableValueError) as error:
        unclear = isinstance(error, AmbiguousColumnsError)
        problem = f": {error}: rename the right keys to references and prediction" if unclear else f".images{error}"
        return ItemProblem(_printable(values.get("id", row.get("id", ""))), f"{position}{_printable(problem)}")
    if values.get("answerable") is True:  # the default, which need not be sent
        del values["answerable"]
    message = None if "answerable" in values else _message_of(form, values)
    if message is None:
        try:
            values = _texts(form, row, values)
        except UnreadableValueError as error:
            return ItemProblem(_printable(values.get("id", "")), f"{position}.{_printable(error)}")
        message = _message_of(form, values)
    if message is None:
        return ItemProblem(_printable(values.get("id", "")), _find_problem(form, position, row, values))
    message.images.extend(pictures)
    if (size := message.ByteSize()) <= max_bytes:
        return message
    way_out = "send fewer or smaller pictures" if pictures else "shorten the text"
    problem = f"{position} has {size} bytes, but at most {max_bytes} fit into a message: {way_out}"
    return ItemProblem(message.id, problem, too_large=True)


def _texts(form: RowFormat[M], row: Mapping[Any, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    texts = as_texts(values)
    default_references(texts)
    if "prediction" in form.needed and column_of(row, form.names, "prediction") in row:
        texts.setdefault("prediction", "")  # null or NaN in a data set means that the model gave no answer
    return texts


def _message_of(form: RowFormat[M], values: Mapping[str, Any]) -> M | None:
    """Return a message if all values are strings or lists of strings, as they usually are. Otherwise, return None."""
    # protobuf would accept a string as a list of letters, and any iterable as a list.
    listed = all(isinstance(values.get(name, ()), list | tuple) for name in LIST_FIELDS)
    if not listed or any(name not in values for name in form.needed):
        return None
    try:
        message = form.message_type(**values)
    except (TypeError, ValueError):
        return None
    # protobuf accepts bytes that happen to be UTF-8, so the same data could pass or fail by chance.
    return None if holds_bytes(values) else message


def _find_problem(form: RowFormat[M], row_name: str, row: Mapping[Any, Any], values: Mapping[str, Any]) -> str:
    for name in form.needed:
        if name not in values:
            there = ", ".join(sorted(map(_printable, row))) or "nothing"
            found = column_of(row, form.names, name)
            problem = f"is {row[found]}" if found in row else f"is missing (found: {there})"
            hint = "give a list of strings" if name in LIST_FIELDS else 'write "" for an empty answer'
            return f"{row_name}.{found} {problem}: {hint}"
    for name, value in values.items():
        if name in TRUTH_FIELDS:
            continue
        for position, text in enumerate(value if isinstance(value, list | tuple) else [value]):
            field = f"{name}[{position}]" if name in LIST_FIELDS else name
            try:
                text.encode()
            except UnicodeEncodeError as error:
                return (
                    f"{row_name}.{field} has a lone surrogate (U+{ord(text[error.start]):04X} at character "
                    f"{error.start}), which is not valid text: decode the source as UTF-8"
                )
    return f"{row_name} cannot be encoded: check the types of its fields"


def holds_bytes(values: Mapping[str, Any]) -> bool:
    """Return True if any value, or any entry of a list, is bytes."""
    return any(
        isinstance(value, bytes) or (isinstance(value, list | tuple) and any(isinstance(text, bytes) for text in value))
        for value in values.values()
    )


def _printable(value: object) -> str:
    return str(value).encode(errors="replace").decode()
