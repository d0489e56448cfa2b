"""Build the commands for papers' tables."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Self

import click

from gradewire_cli.options.help import Command, column_help, column_lines, stacked
from gradewire_cli.pages.page import Page, Section, ShownTable, today, write_page
from gradewire_cli.pages.page import notes as page_notes
from gradewire_cli.pages.texts import MAX_NAME_CHARACTERS, ShownText, cut
from gradewire_cli.problems import NOTHING_SCORED, InputError, check_something_scored, exit_codes, exit_on_interrupt
from gradewire_cli.results.interval_notes import QUESTIONS, NamedEstimate, interval_notes
from gradewire_cli.results.journal import check_outputs
from gradewire_cli.results.manifest import RunManifest
from gradewire_cli.results.manifest_entries import (
    RunClock,
    digests_of,
    forget_manifest,
    manifest_option,
    manifest_path_of,
    metric_fields,
    save_manifest,
    tallied_counts,
    versions,
)
from gradewire_cli.results.table_formats import table_files, write_tables
from gradewire_cli.results.tables import FURTHER_TABLES, Table, all_tables_option, show_tables, table_file_options
from gradewire_cli.results.tallies import statuses_of
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.input_file import InputFile, input_file, named_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from gradewire.transport import Transport
    from gradewire_cli.pages.page import Block
    from gradewire_cli.results.tallies import MetricTally
    from gradewire_cli.rows.cells import LeftOut
    from gradewire_cli.rows.formats import Record
    from gradewire_cli.scoring.labelled_run import LabelledRun

_PAPERS: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files(__package__).joinpath("papers.toml").read_text("utf-8")
)


@dataclass(frozen=True, slots=True)
class Columns:
    """Possible columns of each field. If a row contains several of a field's columns, the first one is used.

    Attributes:
        usual: Default columns by field.
        spread: Fields that --map may read from several columns, one value from each.
        named: Columns by field from --map, which replace the default columns.
    """

    usual: Mapping[str, tuple[str, ...]]
    spread: frozenset[str] = frozenset()
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def help(self) -> str:
        """The columns as help text."""
        rule = "Possible columns of each field. If a row has several of them, the first listed column is used."
        return f"\b\n{rule}\n{column_lines(self.usual)}\n"

    def mapped(self, pairs: Sequence[str]) -> Self:
        """Return the columns with --map FIELD=COLUMN applied; raise click.UsageError if a pair is invalid."""
        named = {
            name: tuple(column.split(",")) if name in self.spread else (column,)
            for name, column in named_columns("--map", pairs, self.usual).items()
        }
        return replace(self, named=named)

    def of(self, name: str) -> tuple[str, ...]:
        """Return a field's possible columns."""
        return self.named.get(name, self.usual[name])

    def check(self, present: Iterable[str], others: Iterable[str] = ()) -> None:
        """Raise InputError if a file with rows lacks a column that --map or `others` names."""
        there = list(present)
        for column in (*(column for names in self.named.values() for column in names), *others):
            if there and column not in there:
                raise InputError(f"the file has no column {column!r}. Its columns: {', '.join(map(printable, there))}")

    def value(self, fields: Mapping[str, Any], name: str) -> Any:
        """Return a field's first value, or None."""
        return next((fields[column] for column in self.of(name) if fields.get(column) is not None), None)


def fields_of(records: Iterable[Record], left_out: LeftOut) -> Iterable[tuple[Record, Mapping[str, Any]]]:
    """Yield readable records with their fields, and count unreadable records."""
    for record in records:
        if record.fields is None:
            left_out.add("the row cannot be read", record.position)
        else:
            yield record, record.fields


def paper_columns(name: str) -> Columns | None:
    """Return a table's columns, or None for a table of labelled files."""
    paper = _PAPERS[name]
    if "columns" not in paper:
        return None
    return Columns(
        {field: tuple(usual) for field, usual in paper["columns"].items()}, frozenset(paper.get("spread", ()))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCall:
    """A call of a table command. `columns` is empty for labelled files."""

    options: Mapping[str, Any]
    source: InputFile
    columns: Columns
    names_metrics: bool
    transport: Transport | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult:
    """The result of a table command.

    Attributes:
        headline: Tables to print without --all-tables. None means all tables.
        parameters: Options that affect the result, for the manifest.
        server_version: gradewire version of the server that scored the rows, or "".
        run: The run over the rows, or None for a table without labels.
        place: The server's description if `run` is None.
        drawn: Plural of what a draw for an interval takes.
    """

    tables: Sequence[Table]
    headline: Sequence[Table] | None = None
    notes: Sequence[str]
    intervals: Iterable[NamedEstimate]
    left_out: Sequence[str]
    document: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rows: int
    tallies: Mapping[str, MetricTally]
    server_version: str = ""
    run: LabelledRun | None = None
    place: str = ""
    drawn: str = QUESTIONS


def table_command(
    name: str,
    *options: Callable[[Any], Any],
    compute: Callable[[TableCall], TableResult | None],
    has_headline: bool = False,
) -> click.Command:
    """Return the command for a table in papers.toml. `compute` returns None if a call needs no table.

    The key `official` of a table names the data set whose files the command reads.
    """
    paper, columns = _PAPERS[name], paper_columns(name)
    official = {"official": paper["official"]} if "official" in paper else {}

    def run(ctx: click.Context, /, **options: Any) -> None:
        _run(ctx, name, compute, {**options, **official})

    add = stacked(*options, *([all_tables_option] if has_headline else []), table_file_options, manifest_option)
    listed = "" if official else column_help() if columns is None else columns.help
    texts = {
        "examples": paper["examples"],
        "epilog": f"{listed}\n{paper['epilog']}\n{exit_codes(failed_rows=NOTHING_SCORED)}",
    }
    command = click.command(name, cls=Command, help=paper["about"], **texts)(add(click.pass_context(run)))
    for option in command.params:
        if option.name == "metrics":
            option.default = paper.get("metrics", option.default)
    return command


def _run(
    ctx: click.Context, name: str, compute: Callable[[TableCall], TableResult | None], options: Mapping[str, Any]
) -> None:
    columns = paper_columns(name)
    names_metrics = ctx.get_parameter_source("metrics") is not click.core.ParameterSource.DEFAULT
    files, page, clock = table_files(options), options.get("html"), RunClock()
    manifest = manifest_path_of(options["manifest"], *files.values(), page)
    source = input_file({**options, "columns": () if columns else options["columns"]})
    mapped = columns.mapped(options["columns"]) if columns else Columns({})
    paths = (column for named in mapped.named.values() for column in named)
    source = replace(source, reading=replace(source.reading, columns=(*source.reading.columns, *paths)))
    beside = {f"--scores {path}": path for path in options.get("scores") or ()}
    if labels := options.get("labels_file"):
        beside["--labels-file"] = labels
    call = TableCall(
        options=options,
        source=source,
        columns=mapped,
        names_metrics=names_metrics,
        transport=ctx.obj,
    )
    check_outputs(
        [*files.items(), ("--html", page), ("--items", options.get("items")), ("--manifest", manifest)],
        source.named_paths | beside,
    )
    with exit_on_interrupt():
        found = compute(call)
    if found is None:
        return
    notes = [*found.notes, *interval_notes(found.intervals, unit=found.drawn)]
    if found.headline is None or options["all_tables"]:
        show_tables(found.tables, notes, found.left_out)
    else:
        show_tables(found.headline, notes, [*found.left_out, FURTHER_TABLES])
    write_tables(files, found.document, found.tables, [*notes, *found.left_out])
    if page is not None:
        write_page(page, [_page(name, source.name, found, notes)])
    if manifest is not None:
        forget_manifest(manifest)
        save_manifest(manifest, _manifest(name, found, [*source.named_paths.values(), *beside.values()], clock))
    check_something_scored("no row could be scored", statuses_of(found.tallies))


def _page(name: str, source: str, result: TableResult, texts: Sequence[str]) -> Page:
    tables: list[Block] = [
        ShownTable(f"t-{number}", table, is_shaded=True) for number, table in enumerate(result.tables, 1)
    ]
    return Page(
        title=f"bench {name}: {cut(source, MAX_NAME_CHARACTERS)}",
        heading=(f"bench {name}",),
        lead=(ShownText(cut(source, MAX_NAME_CHARACTERS)), f", {today()}"),
        sections=[
            Section("tables", ("Tables",), tables),
            Section("notes", ("Notes",), page_notes([*texts, *result.left_out])),
        ],
    )


def _manifest(name: str, result: TableResult, inputs: Sequence[str | Path], clock: RunClock) -> RunManifest:
    run = result.run
    parameters = {**(_run_parameters(run) if run else {}), **result.parameters}
    return RunManifest(
        command=f"bench {name}",
        versions=versions(result.server_version),
        place=run.connection.description if run and not run.scores else result.place,
        **metric_fields({label: tally.line for label, tally in result.tallies.items()}),
        inputs=digests_of(inputs),
        parameters={name: value for name, value in parameters.items() if value not in (None, "", [], {})},
        counts=tallied_counts(result.tallies, rows=result.rows),
        times=clock.times(),
        machine=clock.machine(),
    )


def _run_parameters(run: LabelledRun) -> dict[str, Any]:
    return {
        "where": {column: sorted(values) for column, values in run.source.options.where.items()},
        "without_flags": sorted(run.without_flags),
        "labels": run.labels,
        "against": run.against,
        "resamples": run.resamples,
        "seed": run.seed,
    }


def described_tallies(tallies: Mapping[str, MetricTally]) -> dict[str, dict[str, Any]]:
    """Return each metric's JSON description by label."""
    return {label: {"line": tally.line, "statuses": dict(tally.statuses)} for label, tally in tallies.items()}
