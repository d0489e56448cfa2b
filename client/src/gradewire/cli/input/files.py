"""The input file: options that several commands share, and the rows they give."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from gradewire.cli.input.columns import ALIASES, RowOptions, RowSource, open_rows
from gradewire.cli.input.records import FORMATS, STDIN, Format, count_rows, format_of, read_records, suffix_format
from gradewire.cli.options.group import option_group

ALIAS_HELP = """\b
Columns, by the first of these names that a row has:
  references         references reference answers answer golden_answer   (a text or a list; in CSV also a JSON list)
  prediction         prediction pred response candidate
  synthetic_answers  synthetic_answers syn_ans     (each reference as a sentence)
  label              label human_score             (0/1 or graded)
  labels             labels annotations            (a list: several annotators; --map labels=COLUMN,COLUMN: one each)
  image              image_id image                (tells questions of the same words apart, as question_id does)
  id question caption group dataset model flags question_id    (optional)
"""


@dataclass(frozen=True, slots=True)
class InputFile:
    """The input options: a file ("-" for standard input), how to read it, and which of its columns and rows."""

    path: str
    format: Format
    options: RowOptions

    @property
    def arguments(self) -> list[str]:
        """FILE and options as `input_options` reads them."""
        columns = (("--map", f"{name}={column}") for name, column in self.options.columns.items())
        told = [] if self.format == suffix_format(self.path) else ["--input-format", self.format]
        return [self.path, *itertools.chain(*columns), *told]

    def open(self) -> RowSource:
        """Rows of the file; raises InputError where it cannot be used as a whole."""
        return open_rows(self.path, self.format, read_records(self.path, self.format), self.options)

    def count(self) -> int | None:
        """Rows that `open` gives; None for standard input, which is read once."""
        if self.options.where and self.path != STDIN:
            return sum(1 for _ in self.open().rows)
        return count_rows(self.path, self.format)


# How FILE is read, without FILE itself.
column_options = option_group(
    click.option("--input-format", type=click.Choice(FORMATS), help="Default: by the suffix; jsonl on standard input."),
    click.option(
        "--map",
        "columns",
        metavar="FIELD=COLUMN",
        multiple=True,
        help="Read a field from this column, for instance --map prediction=output. May be repeated.",
    ),
)
input_options = option_group(click.argument("file"), column_options)


def named_columns(option: str, pairs: Sequence[str], fields: Collection[str] = ()) -> dict[str, str]:
    """Reads the NAME=COLUMN pairs of an option, the last of a name; any name where `fields` names none.

    Raises:
        click.UsageError: It is no such pair.
    """
    named = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not equals or not column or (fields and name not in fields):
            way_out = f"FIELD=COLUMN, FIELD one of {', '.join(fields)}" if fields else "NAME=COLUMN"
            raise click.UsageError(f"{option} {pair}: write {way_out}")
        named[name] = column
    return named


def input_file(options: Mapping[str, Any], *, needed: Sequence[str] = ("references", "prediction")) -> InputFile:
    """Reads the options of `input_options`, and `where` (COLUMN=VALUE,VALUE) of those commands that have it.

    Args:
        options: Values of the command's options by name; others are not looked at.
        needed: Fields without which the file makes no sense.

    Raises:
        click.ClickException: An option cannot be understood.
    """
    file: str = options["file"]
    mapping = named_columns("--map", options["columns"], ALIASES)
    allowed: dict[str, frozenset[str]] = {}
    for pair in options.get("where", ()):
        column, equals, values = pair.partition("=")
        if not equals or not column:
            raise click.UsageError(f"--where {pair}: write COLUMN=VALUE or COLUMN=VALUE,VALUE")
        allowed[column] = allowed.get(column, frozenset()) | set(values.split(","))
    return InputFile(file, format_of(file, options["input_format"]), RowOptions(mapping, allowed, needed))
