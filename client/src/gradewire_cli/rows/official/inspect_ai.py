"""Read logs from Inspect (inspect-ai), which are JSON or .eval archives with an entry per sample and epoch."""

import io
import json
import lzma
import os
import re
import string
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from gradewire_cli.problems import InputError
from gradewire_cli.rows.files import open_bytes
from gradewire_cli.rows.formats import Record, printable
from gradewire_cli.rows.official.harness import (
    OfficialFiles,
    columns_of,
    letter_position,
    listed,
    looks_like,
    mapping,
    numbered,
    open_zip,
    option_shown,
    row_id,
)
from gradewire_proto import final_answer

MAX_MEMBER_BYTES: Final = 1 << 28
"""Maximum size of an archive member. A sample with all its events needs a few MB."""
MAX_UNPACKED_BYTES: Final = 1 << 36
_LOCAL_HEADER_BYTES: Final = 30
_CONVERT: Final = "convert the log to JSON: inspect log convert LOG --to json --output-dir DIR"
_VALUES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""The numbers that inspect uses for its grades (correct, partial, incorrect, no answer) when it computes a mean."""
_ATTACHED: Final = "attachment://"
_PICTURE: Final = "data:image/"
_FINAL_ANSWER: Final = re.compile(r"^[ \t]*ANSWER[ \t]*:[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE)
_LETTERS: Final = re.compile(r"\s*\(?[A-Z]\)?[.:]?(?:\s*,\s*[A-Z])*\s*")
_NUMBER: Final = re.compile(r"\A[1-9][0-9]{0,3}\Z")
TYPE_COLUMNS: Final = ("task",)
PATTERNS: Final = ("*.eval", "*_*.json")
"""Patterns of log names (TIME_TASK_ID), which exclude eval-set.json and listing.json."""
_MOST_EPOCHS: Final = 1000
"""Maximum number of epochs, because a log may claim any number."""


class UnreadableMemberError(ValueError):
    """Raised when an archive member is unreadable. The message is the end of a sentence about the member."""


def open_archive(path: str) -> zipfile.ZipFile:
    """Open a log's archive; raise InputError if the archive is invalid or claims to be too large."""
    return open_zip(path, kind="complete .eval log", most_bytes=MAX_UNPACKED_BYTES, way_out="Score the log in parts")


def load_member(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the JSON document in an archive member.

    Raises:
        UnreadableMemberError: The member is too large, damaged, or not JSON.
        InputError: The decompressor for the member is not installed.
        KeyError: The member does not exist.
    """
    member = archive.getinfo(name)
    if member.file_size > MAX_MEMBER_BYTES:
        raise UnreadableMemberError(
            f"would unpack to {member.file_size >> 20} MiB, more than the limit of {MAX_MEMBER_BYTES >> 20} MiB"
        )
    try:
        with _unpacking(archive, member) as stream:
            # An extra byte reveals a member that is larger than claimed.
            content = stream.read(member.file_size + 1)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError) as error:
        raise UnreadableMemberError(f"cannot be unpacked: {error}") from error
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise UnreadableMemberError("is damaged: its size or checksum is wrong")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableMemberError(f"is not JSON: {error}") from error


def _unpacking(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    try:
        return archive.open(member)
    except NotImplementedError:
        return _zstandard(archive, member)


def _zstandard(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
    except ImportError as error:
        raise InputError(
            f"{archive.filename} is compressed with Zstandard, which needs Python 3.14 or pyarrow. Run: pip install "
            f"'gradewire[parquet]'; or {_CONVERT}"
        ) from error
    with Path(archive.filename or "").open("rb") as file:
        raw = _compressed_bytes(file, member)
    return pa.CompressedInputStream(pa.BufferReader(raw), "zstd")


def _compressed_bytes(file: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    file.seek(member.header_offset)
    header = file.read(_LOCAL_HEADER_BYTES)
    file.seek(sum(int.from_bytes(header[place : place + 2], "little") for place in (26, 28)), io.SEEK_CUR)
    # Allocate at most the file's size, because the archive may claim any size.
    return file.read(min(member.compress_size, os.fstat(file.fileno()).st_size))


@dataclass(frozen=True, slots=True)
class InspectLog:
    """A log's task, model and plan, which apply to all its samples.

    Attributes:
        epochs: Number of times that the model answered each sample.
        samples: IDs of the planned samples, or () if the log does not list them.
    """

    task: str
    model: str
    epochs: int
    samples: Sequence[Any]

    @classmethod
    def of(cls, path: str, spec: Any) -> "InspectLog":
        """Parse the log's "eval" object. `path` is for messages."""
        if not isinstance(spec, Mapping):
            raise InputError(f"{path} is not a log from inspect: eval is missing")
        epochs = mapping(spec.get("config")).get("epochs")
        identifiers = mapping(spec.get("dataset")).get("sample_ids")
        return cls(
            str(spec.get("task") or ""),
            str(spec.get("model") or ""),
            epochs if isinstance(epochs, int) else 1,
            identifiers if isinstance(identifiers, list) else (),
        )

    def row_id(self, sample_id: Any, epoch: Any) -> str:
        """Return a row ID that is unique over samples, epochs and tasks."""
        return row_id(self.task, sample_id, epoch if self.epochs > 1 else "")


def sample_row(log: InspectLog, place: str, sample: Any) -> Record:
    """Return a sample's row, with a problem if the sample failed, is missing, or could not be read."""
    fields = mapping(sample)
    identifier, epoch = fields.get("id", ""), fields.get("epoch", 1)
    if problem := _problem(sample):
        raw = str(sample) if isinstance(sample, Exception) else json.dumps(sample, sort_keys=True, default=repr)
        return Record(0, place, None, problem, raw, id=log.row_id(identifier, epoch) if "id" in fields else "")
    texts = _Texts(mapping(fields.get("attachments")))
    answer = texts.of(_completion(sample["output"]))
    pictures = texts.pictures(sample["input"])
    row = {
        "id": log.row_id(identifier, epoch),
        "task": log.task,
        "model": log.model,
        "sample_id": identifier,
        "epoch": epoch,
        "question": texts.question(sample["input"]),
        "prediction": answer,
        "raw_response": answer,
        **_scores(sample.get("scores")),
        **columns_of("metadata", mapping(sample.get("metadata"))),
    }
    if len(pictures) == 1:
        row["image"] = pictures[0]
    choices = sample.get("choices")
    if isinstance(choices, list) and choices:
        row |= _chosen(sample, choices, answer)
    elif (target := sample.get("target")) not in (None, "", []):
        row["references"] = target
    return Record(0, place, row)


def _problem(sample: Any) -> str:
    if isinstance(sample, Exception):
        return str(sample)
    if not isinstance(sample, Mapping):
        return "is not an object"
    error = sample.get("error")
    # With score_on_error, inspect grades the text before the error.
    if error and not sample.get("scores"):
        message = error.get("message") if isinstance(error, Mapping) else error
        return f"(id {printable(str(sample.get('id')))}) failed in inspect: {printable(str(message))[:200]}"
    lacking = [name for name in ("id", "input", "output") if sample.get(name) is None]
    if lacking:
        return f"has no {lacking[0]} (its fields: {listed(sample)})"
    return "" if isinstance(sample["output"], Mapping) else "has an output that is not an object"


def _chosen(sample: Mapping[str, Any], choices: Sequence[Any], completion: str) -> dict[str, Any]:
    """Return columns with choices in words, not letters. If several choices are right, one reference lists them all.

    The prediction stays the whole answer, because inspect may have read a letter that the answer only discusses. If the
    answer is no more than "ANSWER: B", the prediction is that choice's text. `extracted` has the choice that inspect
    read.
    """
    texts = [str(choice) for choice in choices]
    target = sample.get("target")
    letters = target if isinstance(target, list) else [target]
    row: dict[str, Any] = {"choices": texts}
    if right := _choices_if_all_known(letters, texts):
        row["references"] = [", ".join(right)]
    elif target not in (None, "", []):
        row["references"] = target
    answers = [mapping(score).get("answer") for score in mapping(sample.get("scores")).values()]
    # Without scores, the last "ANSWER:" line contains the answer, or else the final answer is the letter of a choice.
    said = _FINAL_ANSWER.findall(completion) or [final_answer.find_final_answer(completion).text]
    given = (answer.split(",") for answer in (*answers, said[-1]) if isinstance(answer, str))
    if named := next(filter(None, (_choices_if_all_known(letters, texts) for letters in given)), None):
        row["extracted"] = ", ".join(named)
        if _FINAL_ANSWER.fullmatch(completion.strip()) or _LETTERS.fullmatch(completion):
            row["prediction"] = row["extracted"]
    return row


def _choices_if_all_known(letters: Sequence[Any], texts: Sequence[str]) -> list[str]:
    places = [_position(str(letter).strip()) for letter in letters]
    known = sorted({place for place in places if place is not None and place < len(texts)})
    return [option_shown(place, texts) for place in known] if len(known) == len(letters) else []


def _position(letter: str) -> int | None:
    """Return the position of the choice with this letter or number; inspect's labels continue with 1 after Z."""
    if _NUMBER.match(letter):
        return len(string.ascii_uppercase) - 1 + int(letter)
    return letter_position(letter)


def _completion(output: Mapping[str, Any]) -> Any:
    if output.get("completion") is not None:
        return output["completion"]
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return mapping(mapping(first).get("message")).get("content")


def _scores(scores: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, score in mapping(scores).items():
        if not isinstance(score, Mapping):
            continue
        value = score.get("value")
        parts = value if isinstance(value, Mapping) else {"": value}
        for part, each in parts.items():
            found[f"inspect_{name}" + (f"_{part}" if part else "")] = _number(each)
        found[f"inspect_{name}_answer"] = score.get("answer")
    return found


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, bool) else _VALUES.get(value, value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class _Texts:
    """A sample's texts and pictures, which inspect may store as attachments."""

    attached: Mapping[str, Any]

    def of(self, content: Any) -> str:
        """Return the text in a message's content, which is a string or a list with text parts."""
        if isinstance(content, str):
            name = content.removeprefix(_ATTACHED)
            return str(self.attached.get(name, content)) if name != content else content
        parts = content if isinstance(content, list) else ()
        texts = (part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text")
        return "\n".join(self.of(text) for text in texts if isinstance(text, str))

    def question(self, asked: Any) -> str:
        """Return the question: the input string, or the user's last message."""
        if not isinstance(asked, list):
            return self.of(asked)
        messages = [message for message in asked if isinstance(message, Mapping)]
        of_user = [message for message in messages if message.get("role") == "user"] or messages
        return self.of(of_user[-1].get("content")) if of_user else ""

    def pictures(self, asked: Any) -> list[str]:
        """Return the pictures that the input contains. Leave out pictures that are only named by a path or URL."""
        contents = [mapping(message).get("content") for message in (asked if isinstance(asked, list) else ())]
        parts = [mapping(part) for content in contents if isinstance(content, list) for part in content]
        named = [self.of(part["image"]) for part in parts if isinstance(part.get("image"), str)]
        return [picture for picture in named if picture.startswith(_PICTURE)]


def inspect_records(path: str) -> Iterator[Record]:
    """Yield a row for each sample and epoch in the log's order, then a row for each sample that the log lacks.

    Raises:
        InputError: The file is missing, or not a log from inspect.
    """
    yield from numbered(_archived(path) if path.lower().endswith(".eval") else _in_json(path))


def _in_json(path: str) -> Iterator[Record]:
    with open_bytes(path) as stream:
        content = stream.read()
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a log from inspect, which is one JSON object: {error}{_harness_of(content)}"
        ) from error
    if not isinstance(document, Mapping) or not {"eval", "status"} <= document.keys():
        there = listed(document) if isinstance(document, Mapping) else type(document).__name__
        raise InputError(f"{path} is not a log from inspect: eval or status is missing (its fields: {there})")
    samples = document.get("samples")
    if not isinstance(samples, list):
        raise InputError(f"{path} has no samples. Run inspect without --no-log-samples")
    log = InspectLog.of(path, document["eval"])
    yield from _all(log, ((f"sample {place}", sample) for place, sample in enumerate(samples, 1)))


def _archived(path: str) -> Iterator[Record]:
    with open_archive(path) as archive:
        names = dict.fromkeys(archive.namelist())
        head = next((name for name in ("header.json", "_journal/start.json") if name in names), "")
        if not head:
            raise InputError(f"{path} is not a log from inspect: header.json and _journal/start.json are missing")
        try:
            header = load_member(archive, head)
        except UnreadableMemberError as error:
            raise InputError(f"{path}: {head} {error}") from error
        log = InspectLog.of(path, mapping(header).get("eval"))

        def samples() -> Iterator[tuple[str, Any]]:
            for name in names:
                if name.startswith("samples/") and name.endswith(".json"):
                    try:
                        yield name, load_member(archive, name)
                    except UnreadableMemberError as error:
                        yield name, error

        yield from _all(log, samples())


def _all(log: InspectLog, samples: Iterator[tuple[str, Any]]) -> Iterator[Record]:
    there = set()
    for place, sample in samples:
        record = sample_row(log, place, sample)
        if isinstance(sample, Mapping):
            there.add((str(sample.get("id")), str(sample.get("epoch", 1))))
        yield record
    for epoch in range(1, min(log.epochs, _MOST_EPOCHS) + 1):
        for identifier in log.samples:
            if (str(identifier), str(epoch)) not in there:
                place = f"sample {printable(str(identifier))}" + (f" of epoch {epoch}" if log.epochs > 1 else "")
                problem = "is not in the log, because the run ended early, and is left out of the means"
                yield Record(0, place, None, problem, place, id=log.row_id(identifier, epoch))


def _harness_of(content: bytes) -> str:
    """Return the end of a message, which names the harness of a JSONL file, or "" if the harness is unknown."""
    try:
        return looks_like(json.loads(content.split(b"\n", 1)[0]))
    except (ValueError, RecursionError):
        return ""


FILES: Final = OfficialFiles("inspect", inspect_records, TYPE_COLUMNS, PATTERNS)
