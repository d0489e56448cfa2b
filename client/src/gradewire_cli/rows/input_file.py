"""Input files: the options that several commands share, and the rows that these options select."""

import glob
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import click

from gradewire._columns import ALIASES, CHOSEN_FIELDS, CONTENT_FIELDS
from gradewire_cli.options.common import Grouping, groupings_of, written_options
from gradewire_cli.options.help import option, stacked
from gradewire_cli.problems import InputError, redacted_url
from gradewire_cli.rows.cells import read_label_map
from gradewire_cli.rows.columns import RowOptions, check_columns
from gradewire_cli.rows.files import STDIN, check_encoding, display_names, is_url, matching_urls
from gradewire_cli.rows.formats import FORMATS, TEXT_CELLS, Reading, Record, count_rows, format_of, printable, read_file
from gradewire_cli.rows.official import (
    human_labels,
    inspect_ai,
    lm_eval,
    lmms_eval,
    squad,
    sts,
    visit_bench,
    vlmevalkit,
    vqa,
    vqa_annotators,
)
from gradewire_cli.rows.official.harness import OfficialFiles
from gradewire_cli.rows.row import OTHER_FORMAT, Row, RowSource, open_rows

_VQA: Final = "vqa"
_SQUAD: Final = "squad"
_LOGS: Final[dict[str, OfficialFiles]] = {
    files.name: files
    for files in (
        *(each.FILES for each in (lm_eval, lmms_eval, vlmevalkit, inspect_ai)),
        *human_labels.FILES,
        sts.FILES,
    )
}

_WITH_QUESTIONS: Final = (_VQA, _SQUAD, visit_bench.NAME, vqa_annotators.NAME)

official_options = stacked(
    option("--from", "official", type=click.Choice((*_WITH_QUESTIONS, *_LOGS))),
    option("--questions"),
    option("--annotations"),
    option("--filter", "sample_filter"),
)
labelled_official_options = stacked(
    option("--from", "official", type=click.Choice((*_LOGS, vqa_annotators.NAME)), rare=True),
    option("--questions"),
)
# For commands that compare models' answers.
compared_official_options = stacked(
    option(
        "--from",
        "official",
        type=click.Choice((visit_bench.NAME,)),
        rare=True,
        help="Read another program's log or a data set's files. Data set: visit-bench.",
    ),
    option("--questions"),
)
_TAB = "tab"
ALL_COLUMNS = "all"


def official_files(options: Mapping[str, Any]) -> OfficialFiles | None:
    """Parse `official_options`. Return None for plain rows, and for commands without these options."""
    name, questions, annotations = options.get("official"), options.get("questions"), options.get("annotations")
    filter_ = options.get("sample_filter") or ""
    with_filters = [log.name for log in _LOGS.values() if log.has_filters]
    if filter_ and name not in with_filters:
        raise click.UsageError(f"--filter works only with --from {' or '.join(with_filters)}. Leave out --filter")
    for each in ("input_format", "encoding", "delimiter"):
        if name and options.get(each):
            raise click.UsageError(f"--from {name} sets how files are read. Leave out --{each.replace('_', '-')}")
    if annotations and name != _VQA:
        raise click.UsageError(f"--annotations needs --from {_VQA}")
    if questions and name not in _WITH_QUESTIONS:
        raise click.UsageError(f"--questions needs --from {' or --from '.join(_WITH_QUESTIONS)}")
    if name == visit_bench.NAME:
        return visit_bench.files(questions or "")
    if name == vqa_annotators.NAME:
        return vqa_annotators.files(questions or "")
    if name in {_VQA, _SQUAD}:
        return _with_questions(name, questions, annotations or "")
    files = _LOGS.get(str(name))
    if files is None or not filter_:
        return files
    return replace(files, records=partial(files.records, filter_=filter_), options={"--filter": filter_})


def _with_questions(name: str, questions: str | None, annotations: str) -> OfficialFiles:
    if not questions:
        raise click.UsageError(f"--from {name} needs --questions FILE with the data set's questions")
    if name == _SQUAD:
        records = partial(squad.squad_records, questions=questions)
        companions = {"--questions": questions}
        return OfficialFiles(_SQUAD, records, squad.TYPE_COLUMNS, several=False, companions=companions)
    return OfficialFiles(
        _VQA,
        partial(vqa.vqa_records, questions=questions, annotations=annotations),
        vqa.TYPE_COLUMNS,
        several=False,
        companions={"--questions": questions, "--annotations": annotations},
    )


def expanded(given: Sequence[str]) -> tuple[str, ...]:
    """Return the named files, with each pattern replaced by its matches in sorted order.

    Raises:
        InputError: A pattern matches no file, a file is named twice, or standard input is one of several files.
    """
    paths: list[str] = []
    for path in given:
        if path != STDIN and glob.has_magic(path) and (is_url(path) or not Path(path).exists()):
            if not (matching := matching_urls(path) if is_url(path) else _matching(path)):
                raise InputError(f"{path} matches no file")
            paths += matching
        else:
            paths.append(path)
    if repeated := [path for path in paths if paths.count(path) > 1]:
        raise InputError(f"{repeated[0]} is named twice. Leave one out")
    if STDIN in paths and len(paths) > 1:
        raise InputError(
            "standard input (-) cannot be read together with other files. Save standard input to a file, or "
            "leave out the other files"
        )
    return tuple(paths)


def _matching(pattern: str) -> list[str]:
    # Path.glob accepts no absolute patterns.
    return sorted(found for found in glob.glob(pattern, recursive=True) if Path(found).is_file())  # noqa: PTH207


def in_file(record: Record, name: str, before: int) -> Record:
    """Return a row with its file's name, and with its index increased by the number of rows in earlier files."""
    return replace(record, index=before + record.index, position=f"{name} {record.position}", file=name)


@dataclass(frozen=True, slots=True)
class InputFile:
    """Input files ("-" is standard input), with rules for reading them and options for their columns and rows.

    Attributes:
        groupings: Columns that group statistics.
        groupings_requested: True for --group-by, False for official files' question types.
        official: Description of another program's files, or None for plain rows.
    """

    paths: tuple[str, ...]
    options: RowOptions
    reading: Reading = field(default_factory=Reading)
    groupings: tuple[Grouping, ...] = ()
    groupings_requested: bool = False
    official: OfficialFiles | None = None

    @property
    def display_paths(self) -> list[str]:
        """Distinct file names to show and store, without the secrets in URLs."""
        return display_names(self.paths)

    @property
    def name(self) -> str:
        """A readable name for all files together."""
        more = len(self.paths) - 1
        return self.display_paths[0] + (f" and {more} more file{'s' * (more > 1)}" if more else "")

    @property
    def short_name(self) -> str:
        """A readable name for all files together, without folders."""
        return replace(self, paths=tuple(Path(path).name for path in self.display_paths)).name

    @property
    def folder(self) -> Path:
        """The first file's folder, to which paths in rows are relative."""
        return Path() if self.is_stdin else Path(self.paths[0]).parent

    @property
    def is_stdin(self) -> bool:
        """True for standard input, which can be read only once."""
        return STDIN in self.paths

    @property
    def named_paths(self) -> dict[str, str]:
        """The files by description, for `check_outputs`."""
        beside = {name: path for name, path in (self.official.companions if self.official else {}).items() if path}
        if len(self.paths) == 1:
            return {"the input": self.paths[0], **beside}
        return {**{f"file {place} of the input": path for place, path in enumerate(self.paths, 1)}, **beside}

    @property
    def judged_pairs(self) -> Self | None:
        """The same files, read as another program's judged pairs, or None if the program judges no pairs."""
        if self.official is None or self.official.pairs is None:
            return None
        return replace(self, reading=replace(self.reading, read=self.official.pairs))

    @property
    def plain(self) -> Self:
        """The same files, read as plain rows in the format of their names."""
        if self.official is None:
            return self
        return replace(self, official=None, reading=replace(self.reading, read=None, format=None))

    def official_pairs(self, path: str) -> Iterator[Record]:
        """Yield the judged pairs in one file. There are none if `official` has no such pairs."""
        if self.official is None or self.official.pairs is None:
            return iter(())
        return self.official.pairs(path)

    @property
    def is_json(self) -> bool:
        """True if all files are JSON."""
        return all(format_of(path, self.reading.format) in {"json", "jsonl"} for path in self.paths)

    @property
    def arguments(self) -> list[str]:
        """Arguments that `input_options` parses into this object. URLs contain no secrets."""
        rows, reading = self.options, self.reading
        columns = (("--map", f"{name}={column}") for name, column in rows.columns.items())
        given = {
            "--input-format": "" if self.official else reading.format,
            "--encoding": reading.encoding,
            "--delimiter": _TAB if reading.delimiter == "\t" else reading.delimiter,
            "--reference-separator": rows.reference_separator,
            "--label-map": ",".join(f"{word}={number:g}" for word, number in rows.label_map.items()),
        }
        missing = (("--missing", word) for word in rows.missing)
        official = self.official.arguments if self.official else ()
        listed = [*itertools.chain(*columns), *written_options(given), *itertools.chain(*missing)]
        return [*map(redacted_url, self.paths), *official, *listed]

    @property
    def where_arguments(self) -> list[str]:
        """The --where arguments, for commands with that option."""
        allowed = self.options.where.items()
        return [word for column, values in allowed for word in ("--where", f"{column}={','.join(sorted(values))}")]

    def open(self) -> RowSource:
        """Open the files; raise InputError if a file cannot be used."""
        if len(self.paths) == 1:
            return self.open_file(0, 0, self.paths[0])
        names = self.display_paths
        sources, before = [], 0
        for number, path in enumerate(self.paths):
            sources.append(self.open_file(number, before, path))
            before += self.count_file(number)
        # A needed column may be missing from some files, but not from all files.
        there = list(dict.fromkeys(column for source in sources for column in source.columns))
        if self.options.any_file and there:
            if lost := [column for column in self.options.kept_columns or () if column not in there]:
                listed = ", ".join(map(printable, there))
                raise InputError(f"no file has a column {lost[0]!r}. Columns: {listed}")
            check_columns(self.name, there, replace(self.options, any_file=False, where={}, grouped_by=()))
        notes = [f"{name}: {note}" for name, source in zip(names, sources, strict=True) for note in source.notes]
        late: list[str] = []

        def rows() -> Iterator[Row]:
            for name, source in zip(names, sources, strict=True):
                yield from source.rows
                late.extend(f"{name}: {note}" for note in source.late_notes)

        return RowSource(rows(), all(source.has_synthetic for source in sources), notes, late, there)

    def columns_read(self, columns: Sequence[str]) -> str:
        """Return a sentence on the files' columns and on the columns that are read, or "" for official files."""
        if self.official or not columns:
            return ""
        fields = ("prediction", "references", "question")
        read = "; ".join(f"{field} from {' or '.join(self.options.names(field))}" for field in fields)
        there = ", ".join(map(printable, columns))
        return f"The columns are {there}. Read are {read}. --map FIELD=COLUMN reads another column"

    def open_with_rows(self) -> RowSource:
        """Open the files like `open`, but also raise InputError if there is no row (that matches --where)."""
        source = self.open()
        first = next(source.rows, None)
        if first is None:
            matching = " ".join(self.where_arguments)
            raise InputError(f"{self.name} has no rows" + (f" that match {matching}" if matching else ""))
        return replace(source, rows=itertools.chain((first,), source.rows))

    def open_file(self, number: int, rows_before: int, path_or_url: str) -> RowSource:
        """Open one file as `open` does. `rows_before` is the number of rows in earlier files."""
        name = self.display_paths[number]
        records = read_file(path_or_url, self.reading)
        if len(self.paths) > 1:
            records = (in_file(record, name, rows_before) for record in records)
        only_texts = format_of(self.paths[number], self.reading.format) in TEXT_CELLS
        way_out = "" if self.official else OTHER_FORMAT
        return open_rows(name, records, replace(self.options, file=name), only_texts=only_texts, hint=way_out)

    def count_file(self, number: int) -> int:
        """Return the number of rows in one file (not standard input), including rows that --where skips."""
        return count_rows(self.paths[number], self.reading)

    def records(self) -> Iterator[Record]:
        """Return the records of all files. Indices continue from file to file."""
        if len(self.paths) == 1:
            return read_file(self.paths[0], self.reading)
        files = zip(self.paths, self.display_paths, strict=True)
        every = (in_file(record, name, 0) for path, name in files for record in read_file(path, self.reading))
        return (replace(record, index=index) for index, record in enumerate(every))

    def count(self) -> int | None:
        """Return the number of rows that `open` yields, or None for standard input, which can be read only once."""
        if self.is_stdin:
            return None
        if self.options.where:
            return sum(1 for _ in self.open().rows)
        return sum(map(self.count_file, range(len(self.paths))))


def _kept_columns(given: str | None) -> Sequence[str] | None:
    return () if not given else None if given == ALL_COLUMNS else tuple(given.split(","))


def _delimiter(_: click.Context, __: click.Parameter, value: str) -> str:
    text = "\t" if value.lower() in {_TAB, "\\t"} else value
    if len(text) > 1:
        raise click.BadParameter('must be one character, or the word "tab"')
    return text


# Options for the columns of FILE. `input_options` adds the argument FILE.
column_options = stacked(
    option("--map", "columns", multiple=True),
    option("--input-format", type=click.Choice(FORMATS)),
    option("--reference-separator", default=""),
    option("--delimiter", default="", callback=_delimiter),
    option("--encoding"),
    option("--missing", multiple=True),
    option("--label-map", default=""),
)
input_options = stacked(click.argument("files", metavar="FILE...", nargs=-1, required=True), column_options)


def named_columns(option: str, pairs: Sequence[str], fields: Collection[str] = ()) -> dict[str, str]:
    """Parse an option's NAME=COLUMN pairs. A later pair replaces an earlier pair with the same name.

    Without `fields`, any name is valid.
    """
    named = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not equals or not column or (fields and name not in fields):
            way_out = f"FIELD=COLUMN, where FIELD is one of {', '.join(fields)}" if fields else "NAME=COLUMN"
            raise click.UsageError(f"{option} {pair}: write {way_out}")
        named[name] = column
    return named


def _check_one_field_each(mapping: Mapping[str, str]) -> None:
    fields: dict[str, str] = {}
    for name, column in mapping.items():
        if name in CONTENT_FIELDS and (other := fields.setdefault(column, name)) != name:
            raise click.UsageError(
                f"--map {other}={column} and --map {name}={column} read two fields from one column. Name two columns"
            )


def input_file(options: Mapping[str, Any], *, needed: Sequence[str] = ("references", "prediction")) -> InputFile:
    """Parse `input_options`, and --where (COLUMN=VALUE,VALUE) if the command has that option."""
    mapping = named_columns("--map", options["columns"], ALIASES)
    _check_one_field_each(mapping)
    allowed: dict[str, frozenset[str]] = {}
    for pair in options.get("where", ()):
        column, equals, values = pair.partition("=")
        if not equals or not column:
            raise click.UsageError(f"--where {pair}: write COLUMN=VALUE or COLUMN=VALUE,VALUE")
        allowed[column] = allowed.get(column, frozenset()) | set(values.split(","))
    official = official_files(options)
    kept = _kept_columns(options.get("keep_columns"))
    asked = groupings_of(options)
    groupings = asked or tuple((column,) for column in (official.type_columns if official else ()))
    rows = RowOptions(
        columns=mapping,
        where=allowed,
        needed=needed,
        reference_separator=options["reference_separator"],
        missing=options["missing"],
        label_map=read_label_map(options["label_map"]),
        grouped_by=tuple(dict.fromkeys(itertools.chain(*groupings))),
        kept_columns=tuple(dict.fromkeys((*kept, *official.type_columns))) if official and kept is not None else kept,
    )
    reading = Reading(
        "json" if official else options["input_format"],
        check_encoding(options["encoding"]),
        options["delimiter"],
        rows.named_columns,
        official.records if official else None,
    )
    paths = expanded(options["files"])
    if official:
        paths = official.files_in(paths)
        # Files may be from different tasks, which have different metrics and may lack references. A log's own columns
        # stay for --map, but only its reader decides what the references and the prediction are.
        own = {name: (name,) for name in CHOSEN_FIELDS}
        rows = replace(rows, any_file=len(paths) > 1, usual={**ALIASES, **own})
    for path in paths:
        format_of(path, reading.format)
    return InputFile(paths, rows, reading, groupings, bool(asked), official)
