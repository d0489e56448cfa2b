"""Files that other programs wrote (`--from`), and what the logs of evaluation harnesses have in common."""

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import click

from gradewire_cli.options.common import written_options
from gradewire_cli.problems import InputError
from gradewire_cli.rows.files import STDIN
from gradewire_cli.rows.formats import Record, printable


class NoSuchFilterError(InputError):
    """A log has no sample of the filter that was asked for."""


@dataclass(frozen=True, slots=True)
class OfficialFiles:
    """Files as one program writes them.

    Attributes:
        name: What --from calls it.
        records: Rows of a file.
        type_columns: Columns that all rows have, by which means are told.
        patterns: Names of the files with samples in the folder of a run; empty where names do not tell them.
        several: Whether FILE may be more than one.
        companions: Files that are read beside FILE, by the option that names them; "" where it is not given.
        options: Further options and what they say.
    """

    name: str
    records: Callable[[str], Iterator[Record]]
    type_columns: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    several: bool = True
    companions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options as they are written."""
        return ("--from", self.name, *written_options({**self.companions, **self.options}))

    def files_in(self, paths: Sequence[str]) -> tuple[str, ...]:
        """These files, and in the place of a folder those with samples in it, in the order of their names.

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
            except NoSuchFilterError as error:
                left_out.append(error)
            else:
                kept.append(file)
        if not kept:
            raise left_out[0]
        for missing in left_out:
            click.echo(f"{printable(missing.format_message())}: left out", err=True)
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


_LETTER: Final = re.compile(r"\A\(?([A-Z])\)?[.:]?\Z")
_OPTION: Final = re.compile(r"^[ \t]*\(?([A-Z])[).:][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)


def letter_position(text: str) -> int | None:
    """The place of the choice that a text names by its letter and nothing else: "B", "(B)", "B."; None without one."""
    found = _LETTER.match(text.strip())
    return ord(found[1]) - ord("A") if found else None


def choice_texts(offered: Sequence[str], choices: Any, prompt: str = "") -> list[str]:
    """What a model could choose, as texts: those of the document, else of the prompt, where letters were offered.

    Args:
        offered: What was offered.
        choices: The document's choices: texts, or an object with texts under "text".
        prompt: That may list them, a line each.
    """
    texts = choices.get("text") if isinstance(choices, Mapping) else choices
    if [letter_position(text) for text in offered] != list(range(len(offered))):
        return list(offered)
    if isinstance(texts, list) and len(texts) == len(offered):
        return list(map(str, texts))
    listed = options_in(prompt)
    return listed if len(listed) == len(offered) else list(offered)


def options_in(prompt: str) -> list[str]:
    """The options that a prompt lists, a line each: "A. red", "(A) red", "A: red"; empty without A and B."""
    options: list[str] = []
    for letter, text in _OPTION.findall(prompt):
        if ord(letter) - ord("A") == len(options):
            options.append(text)
        elif letter == "A":  # of few-shot prompts the last question counts
            options = [text]
    return options if len(options) > 1 else []


def option_position(answer: str, options: Sequence[str]) -> int | None:
    """The place of the option that an answer names by its letter and nothing else; None without one.

    A small letter names one too, where it is no option itself.
    """
    place = letter_position(answer if answer in options else answer.upper())
    return place if place is not None and place < len(options) else None


def option_named(answer: str, options: Sequence[str]) -> str:
    """The text of the option that an answer names, by its letter, or by both; any other answer as it is."""
    place = option_position(answer, options)
    if place is not None:
        return options[place]
    both = _OPTION.fullmatch(answer.strip())
    named = letter_position(both[1]) if both else None
    if both and named is not None and named < len(options) and both[2] == options[named]:
        return options[named]
    return answer


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
        raise InputError(
            f"{path} is no log of {harness}: {first[0].position} {told[0]}{_other_harness(first[0], harness)}"
        )
    for record in itertools.chain(first, records):
        problem = "" if record.fields is None else lack(record.fields)
        yield Record(record.index, record.position, None, problem, repr(record.fields)) if problem else record


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


def _other_harness(record: Record, harness: str) -> str:
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
