"""What the logs of evaluation harnesses have in common: samples with a document of the data set in each."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gradewire.cli.input.official.files import NoSuchFilterError
from gradewire.cli.input.record import Record, printable
from gradewire.cli.problems import InputError

QUESTIONS: Final = ("question", "query", "problem", "question_text", "question_stem", "input", "instruction", "prompt")
"""Where a document has its question; the first with a text counts, capitals do not matter."""
REFERENCES: Final = ("answers", "answer", "references", "reference", "target", "targets", "label")
"""Where a document has what is right."""
_CATEGORIES: Final = ("category", "question_type", "subdomain", "sub_category", "subject", "task_type")
_PEEKED: Final = 64
_MARKS: Final = (
    ("inspect", {"eval", "plan"}),
    ("lmms-eval", {"doc_id", "filtered_resps", "submission"}),
    ("lmms-eval", {"doc_id", "filtered_resps", "input"}),
    ("lm-eval", {"doc_id", "filtered_resps", "arguments"}),
    ("vlmevalkit", {"index", "prediction"}),
)
"""What a row or a document of these has, and those before it in the list do not."""


def question_of(doc: Mapping[str, Any]) -> str:
    """The question of a document; "" where none of its fields is one."""
    return next((value for value in _values(doc, QUESTIONS) if isinstance(value, str) and value.strip()), "")


def references_of(doc: Mapping[str, Any]) -> Any:
    """What a document says is right, as it stands there; None without."""
    return next((value for value in _values(doc, REFERENCES) if value not in (None, "", [])), None)


def category_of(*objects: Any) -> str:
    """The kind of question by which a data set's own figures are told; "" where none of these objects says one."""
    found = (each.get(name) for each in objects if isinstance(each, Mapping) for name in _CATEGORIES)
    return next((value for value in found if isinstance(value, str) and value), "")


def _values(doc: Mapping[str, Any], names: Sequence[str]) -> Iterator[Any]:
    alike = {str(name).casefold(): value for name, value in reversed(list(doc.items()))}
    return (alike[name] for name in names if name in alike)


def columns_of(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an object as columns: `doc.topic` for the topic of a doc."""
    return {f"{prefix}.{name}": value for name, value in fields.items()}


def numbered(rows: Iterator[Record]) -> Iterator[Record]:
    """The same with row numbers from 0."""
    for index, row in enumerate(rows):
        yield replace(row, index=index)


def checked(
    path: str, harness: str, records: Iterator[Record], lack: Callable[[Mapping[str, Any]], str]
) -> Iterator[Record]:
    """The records of a log; one that is no sample has a problem.

    Args:
        path: For messages.
        harness: As --from calls it.
        records: Objects of the file.
        lack: What an object lacks to be a sample, in words; "" for nothing.

    Raises:
        InputError: None of the first is a sample: the file is another's.
    """
    first = list(itertools.islice(records, _PEEKED))
    told = [record.problem if record.fields is None else lack(record.fields) for record in first]
    if first and all(told):
        raise InputError(f"{path} is no log of {harness}: {first[0].place} {told[0]}{_rather(first[0], harness)}")
    for record in itertools.chain(first, records):
        problem = "" if record.fields is None else lack(record.fields)
        yield Record(record.index, record.place, None, problem, repr(record.fields)) if problem else record


def filtered(path: str, samples: Iterator[Record], filter_: str) -> Iterator[Record]:
    """The samples as one filter of the harness saw them, of all filters where none is named, and what is no sample.

    Raises:
        NoSuchFilterError: No sample is of this filter.
    """
    others: dict[str, None] = {}
    found = not filter_
    for sample in samples:
        name = "" if sample.fields is None else str(sample.fields.get("filter"))
        if not filter_ or sample.fields is None or name == filter_:
            found = found or sample.fields is not None
            yield sample
        else:
            others[name] = None
    if not found and others:
        raise NoSuchFilterError(f"{path}: no sample is of the filter {filter_}; --filter can be {', '.join(others)}")


def _rather(record: Record, harness: str) -> str:
    if record.raw.strip() in {"{", "["}:
        return " (the file is one JSON document of many lines, as inspect writes it: --from inspect)"
    name = named_by(record.fields or {})
    return f"; it looks like one of {name}: give --from {name}" if name and name != harness else ""


def named_by(fields: Mapping[str, Any]) -> str:
    """Whose row or document has these fields, as --from calls it; "" for nobody's."""
    return next((name for name, marks in _MARKS if marks <= fields.keys()), "")


def listed(fields: Mapping[str, Any]) -> str:
    """Names of fields, for people."""
    return ", ".join(map(printable, map(str, fields))) or "nothing"
