"""Logs of Inspect (inspect-ai), as JSON or as .eval archives: a sample of each epoch in each entry."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gradewire.cli.input.official.inspect_archive import UnreadableMemberError, loaded_member, opened_archive
from gradewire.cli.input.official.inspect_samples import InspectLog, sample_row
from gradewire.cli.input.official.samples import listed, named_by, numbered
from gradewire.cli.input.opening import opened
from gradewire.cli.input.record import Record, printable
from gradewire.cli.problems import InputError

TYPE_COLUMNS: Final = ("task",)
PATTERNS: Final = ("*.eval", "*_*.json")
"""inspect writes TIME_TASK_ID; a folder may have eval-set.json and listing.json too."""
_MOST_EPOCHS: Final = 1000
"""What is missing is told for no more: a log can claim any number."""


def inspect_records(path: str) -> Iterator[Record]:
    """A row for each sample and epoch, in the order of the log, then one for each that the run did not reach.

    Raises:
        InputError: The file is not there, or no log of inspect.
    """
    yield from numbered(_archived(path) if path.lower().endswith(".eval") else _in_json(path))


def _in_json(path: str) -> Iterator[Record]:
    with opened(path) as stream:
        content = stream.read()
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no log of inspect, which is one JSON object: {error}{_rather(content)}") from error
    if not isinstance(document, Mapping) or not {"eval", "status"} <= document.keys():
        there = listed(document) if isinstance(document, Mapping) else type(document).__name__
        raise InputError(f"{path} is no log of inspect: it has no eval and status (it has: {there})")
    samples = document.get("samples")
    if not isinstance(samples, list):
        raise InputError(f"{path} has no samples: run inspect without --no-log-samples")
    log = InspectLog.of(path, document["eval"])
    yield from _all(log, ((f"sample {place}", sample) for place, sample in enumerate(samples, 1)))


def _archived(path: str) -> Iterator[Record]:
    with opened_archive(path) as archive:
        names = dict.fromkeys(archive.namelist())
        head = next((name for name in ("header.json", "_journal/start.json") if name in names), "")
        if not head:
            raise InputError(f"{path} is no log of inspect: it has no header.json and no _journal/start.json")
        try:
            header = loaded_member(archive, head)
        except UnreadableMemberError as error:
            raise InputError(f"{path}: {head} {error}") from error
        log = InspectLog.of(path, header.get("eval") if isinstance(header, Mapping) else None)

        def samples() -> Iterator[tuple[str, Any]]:
            for name in names:
                if name.startswith("samples/") and name.endswith(".json"):
                    try:
                        yield name, loaded_member(archive, name)
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


def _rather(content: bytes) -> str:
    """Whose file it is where its first line is an object by itself."""
    try:
        fields = json.loads(content.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return ""
    name = named_by(fields) if isinstance(fields, Mapping) else ""
    return f"; it looks like one of {name}: give --from {name}" if name else ""
