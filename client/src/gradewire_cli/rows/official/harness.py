"""Files that other programs wrote (`--from`): the reader of harnesses' logs, their fields, and choices by letter."""

import itertools
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from gradewire._rows import is_of_numbers, unpacked_list
from gradewire_cli.options.common import written_options
from gradewire_cli.problems import InputError, named_errors, tell
from gradewire_cli.rows.files import STDIN, open_bytes
from gradewire_cli.rows.formats import Record, jsonl_records, printable

_PEEKED: Final = 64
_MARKS: Final = (
    ("inspect", {"eval", "plan"}),
    ("lmms-eval", {"doc_id", "filtered_resps", "submission"}),
    ("lmms-eval", {"doc_id", "filtered_resps", "input"}),
    ("lm-eval", {"doc_id", "filtered_resps", "arguments"}),
    ("vlmevalkit", {"index", "prediction"}),
)
"""Fields by which a row or a document of a harness is known, where those before it in the list do not fit."""
_LETTER: Final = re.compile(r"\A\(?([A-Z])\)?[.:]?\Z")
_OPTION: Final = re.compile(r"^[ \t]*\(?([A-Z])[).:][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
QUESTIONS: Final = ("question", "query", "problem", "question_text", "question_stem", "input", "instruction", "prompt")
"""Names of a document's question; the first with a text counts, capitals do not matter."""
REFERENCES: Final = ("answers", "answer", "references", "reference", "target", "targets", "label")
"""Names of what a document says is right."""
_CATEGORIES: Final = ("category", "question_type", "subdomain", "sub_category", "subject", "task_type")


class NoSuchFilterError(InputError):
    """A log has no sample of the filter that was asked for."""


@dataclass(frozen=True, slots=True)
class OfficialFiles:
    """Files as one program writes them.

    Attributes:
        type_columns: Columns that all rows have, by which means are grouped.
        patterns: Names of the files with samples in the folder of a run; empty where names do not tell them.
        several: Whether FILE may be more than one.
        has_filters: Whether the logs have the answers once for each filter, and `records` takes `filter_`.
        companions: Files that are read beside FILE, by the option that names them; "" where it is not given.
        options: Further options and what they say.
    """

    name: str
    records: Callable[..., Iterator[Record]]
    type_columns: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    several: bool = True
    has_filters: bool = False
    companions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options as they are written."""
        return ("--from", self.name, *written_options({**self.companions, **self.options}))

    def files_in(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return these files, and in the place of a folder those with samples in it, in the order of their names.

        Of several, those of tasks that have no such filter are left out, which stderr says.

        Raises:
            InputError: A folder has none, a file is named twice, or there are several where one is read.
        """
        files = [file for path in paths for file in self._in(path)]
        first: dict[str, str] = {}
        for file in files:
            # "logs/a.json" and "./logs/../logs/a.json" are one file.
            place = os.path.realpath(file)
            if place in first:
                also = "" if first[place] == file else f" (as {first[place]} too)"
                raise InputError(f"{file} is named twice{also}: leave one out")
            first[place] = file
        if len(files) > 1 and not self.several:
            raise InputError(f"--from {self.name} reads one file of results: score the others by runs of their own")
        return tuple(self._of_filter(files) if len(files) > 1 and self.options else files)

    def _of_filter(self, files: list[str]) -> list[str]:
        left_out: list[NoSuchFilterError] = []
        kept: list[str] = []
        for file in files:
            try:
                next(self.records(file), None)
                kept.append(file)
            except NoSuchFilterError as error:
                left_out.append(error)
        if not kept:
            raise left_out[0]
        tell(f"{printable(missing.format_message())}: left out" for missing in left_out)
        return kept

    def _in(self, path: str) -> list[str]:
        if path == STDIN or not Path(path).is_dir():
            return [path]
        if not self.patterns:
            raise InputError(f"{path} is a folder: name its files for --from {self.name} themselves")
        found = {str(file) for pattern in self.patterns for file in Path(path).rglob(pattern) if file.is_file()}
        if not found:
            raise InputError(f"{path}: no {' or '.join(self.patterns)} is in this folder: name the files themselves")
        return sorted(found)


def jsonl_samples(path: str) -> Iterator[Record]:
    """Yield the objects of a file with one a line; raises InputError where it cannot be read."""
    with open_bytes(path) as stream:
        yield from jsonl_records(stream)


@dataclass(frozen=True, slots=True)
class SampleLog:
    """A harness whose logs are objects of samples, one after the other.

    Attributes:
        file_name: Names of its logs, with the task as first group.
        lack: What an object lacks to be a sample, in words; "" for nothing.
        rows: Rows of a sample of the task with this name, which is "" where the file's name does not say it.
        with_filters: Names the filter of each sample, where the log does not.
    """

    name: str
    file_name: re.Pattern[str]
    lack: Callable[[Mapping[str, Any]], str]
    rows: Callable[[Record, str], Iterable[Record]]
    samples: Callable[[str], Iterator[Record]] = jsonl_samples
    with_filters: Callable[[Iterator[Record]], Iterator[Record]] = iter

    def read(self, path: str, filter_: str = "") -> Iterator[Record]:
        """Yield the rows of a log, numbered from 0; an object that is no sample is a row with a problem.

        Raises:
            InputError: The file is not there, holds no samples of the harness, or none of the filter.
        """
        samples = _filtered(path, self.with_filters(self._checked(path)), filter_)
        named = self.file_name.match(Path(path).name)
        task = named[1] if named else ""
        yield from numbered(
            row for sample in samples for row in ([sample] if sample.fields is None else self.rows(sample, task))
        )

    def _checked(self, path: str) -> Iterator[Record]:
        """Yield the objects; raises InputError where none of the first is a sample, for the file is another's."""
        records = self.samples(path)
        first = list(itertools.islice(records, _PEEKED))
        lacks = [record.problem if record.fields is None else self.lack(record.fields) for record in first]
        if first and all(lacks):
            other = _other_harness(first[0], self.name)
            raise InputError(f"{path} is no log of {self.name}: {first[0].position} {lacks[0]}{other}")
        for record in itertools.chain(first, records):
            problem = "" if record.fields is None else self.lack(record.fields)
            yield Record(record.index, record.position, None, problem, repr(record.fields)) if problem else record


def _filtered(path: str, samples: Iterator[Record], filter_: str) -> Iterator[Record]:
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


def numbered(rows: Iterable[Record]) -> Iterator[Record]:
    """Yield the same with row numbers from 0."""
    for index, row in enumerate(rows):
        yield replace(row, index=index)


def answer_rows(
    sample: Record, identifier: str, columns: Mapping[str, Any], answers: Sequence[tuple[Any, Any]]
) -> Iterator[Record]:
    """Yield a row for each answer of a sample, each given with what the model said in full."""
    several = len(answers) > 1
    for place, (answer, raw) in enumerate(answers, 1):
        row_id = f"{identifier}/{place}" if several else identifier
        position = f"{sample.position} answer {place}" if several else sample.position
        yield Record(0, position, {"id": row_id, **columns, "prediction": answer, "raw_response": raw})


def without_answer(sample: Record, identifier: str, problem: str) -> Record:
    """Return the row of a sample that cannot be scored."""
    return Record(0, sample.position, None, problem, repr(sample.fields), id=identifier)


def row_id(*parts: Any) -> str:
    """Return the id of a row by what tells it from those of other samples, filters and tasks."""
    return "/".join(str(part) for part in parts if part != "")


def columns_of(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of an object as columns: `doc.topic` for the topic of a doc."""
    return {f"{prefix}.{name}": value for name, value in fields.items()}


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object of a log; an empty one where something else stands there."""
    return value if isinstance(value, Mapping) else {}


def stripped(value: Any) -> Any:
    """Return a text without blanks at its ends; anything else as it is."""
    return value.strip() if isinstance(value, str) else value


def open_zip(path: str, *, kind: str, most_bytes: int, way_out: str) -> zipfile.ZipFile:
    """Open an archive, which the caller closes.

    Raises:
        InputError: It is not there, no archive, or claims to hold more.
    """
    with named_errors(path):
        try:
            archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise InputError(f"{path} is no {kind}: {error}") from error
    claimed = sum(member.file_size for member in archive.infolist())
    if claimed > most_bytes:
        archive.close()
        size = f"{claimed >> 20} MiB, and up to {most_bytes >> 20} MiB are read"
        raise InputError(f"{path} would unpack to {size}: {way_out}")
    return archive


def _other_harness(record: Record, harness: str) -> str:
    if record.raw.strip() in {"{", "["}:
        return " (the file is one JSON document of many lines, as inspect writes it: --from inspect)"
    return looks_like(record.fields or {}, but=harness)


def looks_like(fields: Any, *, but: str = "") -> str:
    """Say whose row or document has these fields, for a message that goes on with it; "" for nobody's or `but`'s."""
    keys = mapping(fields).keys()
    name = next((name for name, marks in _MARKS if marks <= keys), "")
    return f"; it looks like one of {name}: give --from {name}" if name not in {"", but} else ""


def listed(fields: Mapping[str, Any]) -> str:
    """Return names of fields, for people."""
    return ", ".join(map(printable, map(str, fields))) or "nothing"


def letter_position(text: str) -> int | None:
    """Return the place of the choice that a text names by its letter alone: "B", "(B)", "B."; None without one."""
    found = _LETTER.match(text.strip())
    return ord(found[1]) - ord("A") if found else None


def choice_texts(offered: Sequence[str], choices: Any, prompt: str = "") -> list[str]:
    """Return what a model could choose as texts: those of the document, else of the prompt, where it chose letters."""
    texts = choices.get("text") if isinstance(choices, Mapping) else choices
    if [letter_position(text) for text in offered] != list(range(len(offered))):
        return list(offered)
    if isinstance(texts, list) and len(texts) == len(offered):
        return list(map(str, texts))
    listed = options_in(prompt)
    return listed if len(listed) == len(offered) else list(offered)


def options_in(prompt: str) -> list[str]:
    """Return the options that a prompt lists, a line each: "A. red", "(A) red", "A: red"; empty without A and B."""
    options: list[str] = []
    for letter, text in _OPTION.findall(prompt):
        if ord(letter) - ord("A") == len(options):
            options.append(text)
        elif letter == "A":  # of few-shot prompts the last question counts
            options = [text]
    return options if len(options) > 1 else []


def option_position(answer: str, options: Sequence[str]) -> int | None:
    """Return the place of the option that an answer names by its letter and nothing else; None without one.

    A small letter names one too, where it is no option itself.
    """
    place = letter_position(answer if answer in options else answer.upper())
    return place if place is not None and place < len(options) else None


def option_named(answer: Any, options: Sequence[str]) -> Any:
    """Return the text of the option that an answer names, by its letter, or by both; any other answer as it is."""
    if not isinstance(answer, str):
        return answer
    place = option_position(answer, options)
    if place is not None:
        return options[place]
    both = _OPTION.fullmatch(answer.strip())
    named = letter_position(both[1]) if both else None
    is_option = both and named is not None and named < len(options) and both[2] == options[named]
    return both[2] if both and is_option else answer


def named_texts(target: Any) -> Any:
    """Return the texts of a target that is a list as a text; one of numbers, and any other target, as it is."""
    listed = unpacked_list(target) if isinstance(target, str) else None
    return target if listed is None or is_of_numbers(listed) else listed


def question_of(doc: Mapping[str, Any]) -> str:
    """Return the question of a document; "" where none of its fields is one."""
    return next((value for value in _values_of(doc, QUESTIONS) if isinstance(value, str) and value.strip()), "")


def references_of(doc: Mapping[str, Any]) -> Any:
    """Return what a document says is right, as it stands there; None without."""
    return next((value for value in _values_of(doc, REFERENCES) if value not in (None, "", [])), None)


def category_of(*objects: Any) -> str:
    """Return the kind of question by which a data set groups its means; "" where no object says one."""
    found = (each.get(name) for each in objects if isinstance(each, Mapping) for name in _CATEGORIES)
    return next((value for value in found if isinstance(value, str) and value), "")


def _values_of(doc: Mapping[str, Any], names: Sequence[str]) -> Iterator[Any]:
    alike = {str(name).casefold(): value for name, value in reversed(list(doc.items()))}
    return (alike[name] for name in names if name in alike)
