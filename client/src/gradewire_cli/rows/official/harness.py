"""Read the logs of evaluation harnesses (`--from`): their rows, their fields, and choices named by letter."""

import itertools
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
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
    ("verifierbench", {"gold_answer", "llm_response", "gold_judgment"}),
    ("bem", {"reference", "candidate", "score", "gold_index"}),
    ("evouna", {"golden_answer", "improper"}),
    ("visit-bench", {"instruction", "answers", "caption"}),
    ("visit-bench", {"instruction", "A_model", "B_model"}),
    ("visit-bench", {"instruction", "instruction_category", "image"}),
)
"""Fields that show which program wrote a row, or which data set has it. The first match counts."""
_LETTER: Final = re.compile(r"\A\(?([A-Z])\)?[.:]?\Z")
_OPTION: Final = re.compile(r"^[ \t]*\(?([A-Z])[).:][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
QUESTIONS: Final = ("question", "query", "problem", "question_text", "question_stem", "input", "instruction", "prompt")
"""Field names for a document's question, in any letter case. The first non-empty field counts."""
REFERENCES: Final = ("answers", "answer", "references", "reference", "target", "targets", "label")
_CATEGORIES: Final = ("category", "question_type", "subdomain", "sub_category", "subject", "task_type")


class NoSuchFilterError(InputError):
    """Raised when a log has no sample with the requested filter."""


@dataclass(frozen=True, slots=True)
class OfficialFiles:
    """A type of file that another program writes.

    Attributes:
        type_columns: Columns that group the mean scores. Every row has these columns.
        patterns: Name patterns for sample files in a run's folder, or () if names do not identify sample files.
        has_filters: True if logs repeat the answers for each filter. `records` then accepts `filter_`.
        companions: Additional files by their option. "" means an unused option.
        pairs: A reader of the judged pairs in a file, or None if the program judges no pairs. It yields no row for a
            file without verdicts.
    """

    name: str
    records: Callable[..., Iterator[Record]]
    type_columns: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    several: bool = True
    has_filters: bool = False
    companions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    pairs: Callable[[str], Iterator[Record]] | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options as command-line arguments."""
        return ("--from", self.name, *written_options({**self.companions, **self.options}))

    def files_in(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return these files, with each folder replaced by its sample files in sorted order.

        Skip and report files without the requested filter if there are several files.

        Raises:
            InputError: A folder has no samples, a file is named twice, or there are several files but only one is
                allowed.
        """
        files = [file for path in paths for file in self._in(path)]
        first: dict[str, str] = {}
        for file in files:
            # "logs/a.json" and "./logs/../logs/a.json" are the same file.
            place = os.path.realpath(file)
            if place in first:
                also = "" if first[place] == file else f" (also as {first[place]})"
                raise InputError(f"{file} is named twice{also}. Leave one out")
            first[place] = file
        if len(files) > 1 and not self.several:
            raise InputError(f"--from {self.name} reads a single file of results. Score other files in separate runs")
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
        tell(f"left out a file: {printable(missing.format_message())}" for missing in left_out)
        return kept

    def _in(self, path: str) -> list[str]:
        if path == STDIN or not Path(path).is_dir():
            return [path]
        if not self.patterns:
            raise InputError(f"{path} is a folder. With --from {self.name}, name the folder's files")
        found = {str(file) for pattern in self.patterns for file in Path(path).rglob(pattern) if file.is_file()}
        if not found:
            raise InputError(f"{path}: this folder has no file named {' or '.join(self.patterns)}. Name the files")
        return sorted(found)


def jsonl_samples(path: str) -> Iterator[Record]:
    """Yield the JSON object on each line of a file; raise InputError if the file cannot be read."""
    with open_bytes(path) as stream:
        yield from jsonl_records(stream)


@dataclass(frozen=True, slots=True)
class SampleLog:
    """A harness with logs that are sequences of sample objects.

    Attributes:
        file_name: Pattern of log names. Its first group is the task.
        lack: A function that returns the reason why an object is not a sample, or "" for samples.
        rows: A function that returns a sample's rows. Its second argument is the task, or "" if unknown.
        with_filters: A function that adds filter numbers to the samples of a log that does not name the filters.
        kind: The word for such a file in messages.
    """

    name: str
    file_name: re.Pattern[str]
    lack: Callable[[Mapping[str, Any]], str]
    rows: Callable[[Record, str], Iterable[Record]]
    samples: Callable[[str], Iterator[Record]] = jsonl_samples
    with_filters: Callable[[Iterator[Record]], Iterator[Record]] = iter
    kind: str = "log"

    def read(self, path: str, filter_: str = "") -> Iterator[Record]:
        """Yield a log's rows, numbered from 0. An object that is not a sample becomes a row with a problem.

        Raises:
            InputError: The file is missing, or has no samples from this harness or with this filter.
        """
        samples = _filtered(path, self.with_filters(self._checked_samples(path)), filter_)
        named = self.file_name.match(Path(path).name)
        task = named[1] if named else ""
        yield from numbered(
            row for sample in samples for row in ([sample] if sample.fields is None else self.rows(sample, task))
        )

    def _checked_samples(self, path: str) -> Iterator[Record]:
        records = self.samples(path)
        first = list(itertools.islice(records, _PEEKED))
        lacks = [record.problem if record.fields is None else self.lack(record.fields) for record in first]
        if first and all(lacks):
            other = _other_harness(first[0], self.name)
            raise InputError(f"{path} is not a {self.kind} from {self.name}: {first[0].position} {lacks[0]}{other}")
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
        raise NoSuchFilterError(f"{path}: no sample has filter {filter_}. Use --filter with one of {', '.join(others)}")


def numbered(rows: Iterable[Record]) -> Iterator[Record]:
    """Yield the rows with new indices from 0."""
    for index, row in enumerate(rows):
        yield replace(row, index=index)


def answer_rows(
    sample: Record, identifier: str, columns: Mapping[str, Any], answers: Sequence[tuple[Any, Any]]
) -> Iterator[Record]:
    """Yield a row for each answer to a sample. `answers` are pairs of the answer and the model's full output."""
    several = len(answers) > 1
    for place, (answer, raw) in enumerate(answers, 1):
        row_id = f"{identifier}/{place}" if several else identifier
        position = f"{sample.position} answer {place}" if several else sample.position
        yield Record(0, position, {"id": row_id, **columns, "prediction": answer, "raw_response": raw})


def without_answer(sample: Record, identifier: str, problem: str) -> Record:
    """Return the row of a sample that cannot be scored."""
    return Record(0, sample.position, None, problem, repr(sample.fields), id=identifier)


def row_id(*parts: Any) -> str:
    """Return a row ID that is unique over samples, filters and tasks."""
    return "/".join(str(part) for part in parts if part != "")


def columns_of(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object's fields as columns, such as `doc.topic` for a doc's field "topic"."""
    return {f"{prefix}.{name}": value for name, value in fields.items()}


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, otherwise an empty object."""
    return value if isinstance(value, Mapping) else {}


def stripped(value: Any) -> Any:
    """Return a string without surrounding blanks, and other values unchanged."""
    return value.strip() if isinstance(value, str) else value


def open_zip(path: str, *, kind: str, most_bytes: int, way_out: str) -> zipfile.ZipFile:
    """Open an archive. The caller closes it.

    Raises:
        InputError: The file is missing, is not an archive, or claims to unpack to more than `most_bytes`.
    """
    with named_errors(path):
        try:
            archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise InputError(f"{path} is not a {kind}: {error}") from error
    claimed = sum(member.file_size for member in archive.infolist())
    if claimed > most_bytes:
        archive.close()
        size = f"{claimed >> 20} MiB, more than the limit of {most_bytes >> 20} MiB"
        raise InputError(f"{path} would unpack to {size}. {way_out}")
    return archive


def _other_harness(record: Record, harness: str) -> str:
    if record.raw.strip() in {"{", "["}:
        return ". It looks like a JSON log from inspect. Use --from inspect"
    return looks_like(record.fields or {}, but=harness)


def looks_like(fields: Any, *, but: str = "") -> str:
    """Return the end of a message, which names the harness whose logs have these fields.

    Return "" if the harness is unknown, or if its name is `but`.
    """
    keys = mapping(fields).keys()
    name = next((name for name, marks in _MARKS if marks <= keys), "")
    return f". It looks like a log from {name}. Use --from {name}" if name not in {"", but} else ""


def listed(fields: Mapping[str, Any]) -> str:
    """Return readable field names."""
    return ", ".join(map(printable, map(str, fields))) or "nothing"


def letter_position(text: str) -> int | None:
    """Return the choice's position if the text is only a letter ("B", "(B)", "B."), otherwise None."""
    found = _LETTER.match(text.strip())
    return ord(found[1]) - ord("A") if found else None


def choice_texts(offered: Sequence[str], choices: Any, prompt: str = "") -> list[str]:
    """Return the offered choices. If they are only letters, return the document's or prompt's text for each letter."""
    texts = choices.get("text") if isinstance(choices, Mapping) else choices
    if [letter_position(text) for text in offered] != list(range(len(offered))):
        return list(offered)
    if isinstance(texts, list) and len(texts) == len(offered):
        return list(map(str, texts))
    listed = options_in(prompt)
    return listed if len(listed) == len(offered) else list(offered)


def options_in(prompt: str) -> list[str]:
    """Return a prompt's options from lines like "A. red", "(A) red", "A: red", or [] if A or B is missing."""
    options: list[str] = []
    for letter, text in _OPTION.findall(prompt):
        if ord(letter) - ord("A") == len(options):
            options.append(text)
        elif letter == "A":  # a few-shot prompt's last question counts
            options = [text]
    return options if len(options) > 1 else []


def option_position(answer: str, options: Sequence[str]) -> int | None:
    """Return the option's position if the answer is only a letter, otherwise None.

    A lower-case letter counts too, unless an option is that letter.
    """
    place = letter_position(answer if answer in options else answer.upper())
    return place if place is not None and place < len(options) else None


def option_named(answer: Any, options: Sequence[str]) -> Any:
    """Replace an answer that is an option's letter, alone or before the option's text, with the option's text.

    Return other answers unchanged. Where an option's text is another option's letter, the letter is returned.
    """
    if not isinstance(answer, str):
        return answer
    place = option_position(answer, options)
    if place is not None:
        return option_shown(place, options)
    both = _OPTION.fullmatch(answer.strip())
    named = letter_position(both[1]) if both else None
    is_option = both and named is not None and named < len(options) and both[2] == options[named]
    return option_shown(named, options) if named is not None and is_option else answer


def option_shown(place: int, options: Sequence[str]) -> str:
    """Return an option's text, or its letter if an option's text is another option's letter.

    With the options "C", "A", "B" (labels in a diagram), the text "A" of option B would be read as option A.
    """
    named = ((each, letter_position(text)) for each, text in enumerate(options))
    confusing = any(letter is not None and letter != each and letter < len(options) for each, letter in named)
    return ascii_uppercase[place] if confusing else options[place]


def named_texts(target: Any) -> Any:
    """Parse a string that contains a list of strings. Return other targets unchanged."""
    listed = unpacked_list(target) if isinstance(target, str) else None
    return target if listed is None or is_of_numbers(listed) else listed


def question_of(doc: Mapping[str, Any]) -> str:
    """Return a document's question, or ""."""
    return next((value for value in _values_of(doc, QUESTIONS) if isinstance(value, str) and value.strip()), "")


def references_of(doc: Mapping[str, Any]) -> Any:
    """Return a document's right answer unchanged, or None if the document contains no right answer."""
    return next((value for value in _values_of(doc, REFERENCES) if value not in (None, "", [])), None)


def category_of(*objects: Any) -> str:
    """Return the question's category in its data set, or ""."""
    found = (each.get(name) for each in objects if isinstance(each, Mapping) for name in _CATEGORIES)
    return next((value for value in found if isinstance(value, str) and value), "")


def _values_of(doc: Mapping[str, Any], names: Sequence[str]) -> Iterator[Any]:
    alike = {str(name).casefold(): value for name, value in reversed(list(doc.items()))}
    return (alike[name] for name in names if name in alike)
