"""Logs of Inspect (inspect-ai), as JSON or as .eval archives: a sample of each epoch in each entry."""

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
    row_id,
)

MAX_MEMBER_BYTES: Final = 1 << 28
"""Bound on one member unpacked: a sample with all its events has some MB."""
MAX_UNPACKED_BYTES: Final = 1 << 36
"""Bound on all members: anything larger is no log but a bomb."""
_LOCAL_HEADER_BYTES: Final = 30
_CONVERT: Final = "write the log as JSON by: inspect log convert LOG --to json --output-dir DIR"
_VALUES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Values of inspect's grades in its own means: correct, partial, incorrect, no answer."""
_ATTACHED: Final = "attachment://"
_PICTURE: Final = "data:image/"
_FINAL_ANSWER: Final = re.compile(r"^[ \t]*ANSWER[ \t]*:[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE)
"""The form in which inspect has models name letters."""
_NUMBER: Final = re.compile(r"\A[1-9][0-9]{0,3}\Z")
TYPE_COLUMNS: Final = ("task",)
PATTERNS: Final = ("*.eval", "*_*.json")
"""inspect writes TIME_TASK_ID; a folder may have eval-set.json and listing.json too."""
_MOST_EPOCHS: Final = 1000
"""Epochs for which missing samples are reported: a log can claim any number."""


class UnreadableMemberError(ValueError):
    """A member cannot be read; the message goes on from its name."""


def open_archive(path: str) -> zipfile.ZipFile:
    """Open the archive of a log; raises InputError where it is none, or claims to hold more than a log does."""
    return open_zip(path, kind="whole .eval log", most_bytes=MAX_UNPACKED_BYTES, way_out="score parts of it")


def load_member(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the document of a member.

    Raises:
        UnreadableMemberError: It is too large, damaged, or not JSON.
        InputError: What unpacks it is not installed.
        KeyError: There is no such member.
    """
    member = archive.getinfo(name)
    if member.file_size > MAX_MEMBER_BYTES:
        raise UnreadableMemberError(
            f"would unpack to {member.file_size >> 20} MiB, and members up to {MAX_MEMBER_BYTES >> 20} MiB are read"
        )
    try:
        with _unpacking(archive, member) as stream:
            # One more byte than it claims tells that it claims too little.
            content = stream.read(member.file_size + 1)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError) as error:
        raise UnreadableMemberError(f"cannot be unpacked: {error}") from error
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise UnreadableMemberError("is damaged: it is not what the archive says of it")
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
        import pyarrow as pa  # noqa: PLC0415 - optional and slow to import
    except ImportError as error:
        raise InputError(
            f"{archive.filename} is compressed by Zstandard, which Python 3.14 reads, or pyarrow: pip install "
            f"'gradewire[parquet]'; or {_CONVERT}"
        ) from error
    with Path(archive.filename or "").open("rb") as file:
        raw = _packed(file, member)
    return pa.CompressedInputStream(pa.BufferReader(raw), "zstd")


def _packed(file: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member as they stand in the archive, behind a header of its own."""
    file.seek(member.header_offset)
    header = file.read(_LOCAL_HEADER_BYTES)
    file.seek(sum(int.from_bytes(header[place : place + 2], "little") for place in (26, 28)), io.SEEK_CUR)
    # The archive can claim any size, for which memory would be taken.
    return file.read(min(member.compress_size, os.fstat(file.fileno()).st_size))


@dataclass(frozen=True, slots=True)
class InspectLog:
    """Facts of a log that hold of all its samples.

    Attributes:
        epochs: How often each sample was asked.
        samples: Ids of the samples that were to be asked; empty where the log does not say.
    """

    task: str
    model: str
    epochs: int
    samples: Sequence[Any]

    @classmethod
    def of(cls, path: str, spec: Any) -> "InspectLog":
        """Read the part that inspect calls eval; `path` is for messages."""
        if not isinstance(spec, Mapping):
            raise InputError(f"{path} is no log of inspect: its eval is missing")
        epochs = mapping(spec.get("config")).get("epochs")
        identifiers = mapping(spec.get("dataset")).get("sample_ids")
        return cls(
            str(spec.get("task") or ""),
            str(spec.get("model") or ""),
            epochs if isinstance(epochs, int) else 1,
            identifiers if isinstance(identifiers, list) else (),
        )

    def row_id(self, sample_id: Any, epoch: Any) -> str:
        """Return the id of a sample's row, unlike those of other samples, epochs and tasks."""
        return row_id(self.task, sample_id, epoch if self.epochs > 1 else "")


def sample_row(log: InspectLog, place: str, sample: Any) -> Record:
    """Return the row of a sample; it has a problem where the sample failed, is none, or is the error of who read it."""
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
        return "is no object"
    error = sample.get("error")
    # score_on_error grades what there was before the error.
    if error and not sample.get("scores"):
        message = error.get("message") if isinstance(error, Mapping) else error
        return f"of id {printable(str(sample.get('id')))} failed in inspect: {printable(str(message))[:200]}"
    lacking = [name for name in ("id", "input", "output") if sample.get(name) is None]
    if lacking:
        return f"has no {lacking[0]} (it has: {listed(sample)})"
    return "" if isinstance(sample["output"], Mapping) else "has an output that is no object"


def _chosen(sample: Mapping[str, Any], choices: Sequence[Any], completion: str) -> dict[str, Any]:
    """Return texts of the choices in the place of letters. Several right ones are one answer: all have to be named."""
    texts = [str(choice) for choice in choices]
    target = sample.get("target")
    letters = target if isinstance(target, list) else [target]
    row: dict[str, Any] = {"choices": texts}
    if right := _named(letters, texts):
        row["references"] = [", ".join(right)]
    elif target not in (None, "", []):
        row["references"] = target
    answers = [mapping(score).get("answer") for score in mapping(sample.get("scores")).values()]
    # A run without scores has the answer's last line only.
    said = _FINAL_ANSWER.findall(completion) or [completion]
    given = (answer.split(",") for answer in (*answers, said[-1]) if isinstance(answer, str))
    if named := next(filter(None, (_named(letters, texts) for letters in given)), None):
        row["prediction"] = ", ".join(named)
    return row


def _named(letters: Sequence[Any], texts: Sequence[str]) -> list[str]:
    """Return the texts of these letters in the order of the choices; empty where one is no letter of a choice."""
    places = [_position(str(letter).strip()) for letter in letters]
    known = sorted({place for place in places if place is not None and place < len(texts)})
    return [texts[place] for place in known] if len(known) == len(letters) else []


def _position(letter: str) -> int | None:
    """Return the place of a choice: behind Z inspect counts on by numbers from 1."""
    if _NUMBER.match(letter):
        return len(string.ascii_uppercase) - 1 + int(letter)
    return letter_position(letter)


def _completion(output: Mapping[str, Any]) -> Any:
    """Return what the model said: as inspect sums it up, else its first choice's message."""
    if output.get("completion") is not None:
        return output["completion"]
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return mapping(mapping(first).get("message")).get("content")


def _scores(scores: Any) -> dict[str, Any]:
    """Return a column for each of inspect's scores, and for the answer that its scorer read out of the text."""
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
    """Texts of one sample, of which long ones and pictures stand beside it."""

    attached: Mapping[str, Any]

    def of(self, content: Any) -> str:
        """Return the text of a content: a text, or parts of which some are texts."""
        if isinstance(content, str):
            name = content.removeprefix(_ATTACHED)
            return str(self.attached.get(name, content)) if name != content else content
        parts = content if isinstance(content, list) else ()
        texts = (part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text")
        return "\n".join(self.of(text) for text in texts if isinstance(text, str))

    def question(self, asked: Any) -> str:
        """Return what was asked: the input itself, or the last message of the user."""
        if not isinstance(asked, list):
            return self.of(asked)
        messages = [message for message in asked if isinstance(message, Mapping)]
        of_user = [message for message in messages if message.get("role") == "user"] or messages
        return self.of(of_user[-1].get("content")) if of_user else ""

    def pictures(self, asked: Any) -> list[str]:
        """Return the pictures that stand in the input itself, and none that a path or an address names."""
        contents = [mapping(message).get("content") for message in (asked if isinstance(asked, list) else ())]
        parts = [mapping(part) for content in contents if isinstance(content, list) for part in content]
        named = [self.of(part["image"]) for part in parts if isinstance(part.get("image"), str)]
        return [picture for picture in named if picture.startswith(_PICTURE)]


def inspect_records(path: str) -> Iterator[Record]:
    """Yield a row for each sample and epoch, in the order of the log, then one for each that the run did not reach.

    Raises:
        InputError: The file is not there, or no log of inspect.
    """
    yield from numbered(_archived(path) if path.lower().endswith(".eval") else _in_json(path))


def _in_json(path: str) -> Iterator[Record]:
    with open_bytes(path) as stream:
        content = stream.read()
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is no log of inspect, which is one JSON object: {error}{_harness_of(content)}"
        ) from error
    if not isinstance(document, Mapping) or not {"eval", "status"} <= document.keys():
        there = listed(document) if isinstance(document, Mapping) else type(document).__name__
        raise InputError(f"{path} is no log of inspect: it has no eval and status (it has: {there})")
    samples = document.get("samples")
    if not isinstance(samples, list):
        raise InputError(f"{path} has no samples: run inspect without --no-log-samples")
    log = InspectLog.of(path, document["eval"])
    yield from _all(log, ((f"sample {place}", sample) for place, sample in enumerate(samples, 1)))


def _archived(path: str) -> Iterator[Record]:
    with open_archive(path) as archive:
        names = dict.fromkeys(archive.namelist())
        head = next((name for name in ("header.json", "_journal/start.json") if name in names), "")
        if not head:
            raise InputError(f"{path} is no log of inspect: it has no header.json and no _journal/start.json")
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
                problem = "is not in the log: the run ended before it, and it is in no mean"
                yield Record(0, place, None, problem, place, id=log.row_id(identifier, epoch))


def _harness_of(content: bytes) -> str:
    """Name the harness whose file it is, where its first line is an object by itself."""
    try:
        return looks_like(json.loads(content.split(b"\n", 1)[0]))
    except (ValueError, RecursionError):
        return ""


FILES: Final = OfficialFiles("inspect", inspect_records, TYPE_COLUMNS, PATTERNS)
