"""Run `python -m benchmarks.data`: get or list the labelled rows behind docs/research."""

from pathlib import Path

import click
from benchmarks.common.rows import DATA_DIRECTORY
from benchmarks.data.convert import CONVERSIONS, ConversionError
from benchmarks.data.sets import TABLE, LabelledSet, TableError, get_rows, read_table

from gradewire_models.errors import ModelError

_TABLE_OPTION = click.option(
    "--table", type=click.Path(dir_okay=False, path_type=Path), default=TABLE, help="Use this table of sets."
)


def _sets(table: Path) -> dict[str, LabelledSet]:
    try:
        return read_table(table)
    except TableError as error:
        raise click.ClickException(str(error)) from error


@click.group()
def main() -> None:
    """Get the human-labelled rows that the tables in docs/research are computed from."""


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--from",
    "local",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Read the rows or their public sources from this folder, without downloads.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=DATA_DIRECTORY,
    help="Write the rows into this directory; by default the benchmarks' --data.",
)
@click.option("--other-rows", is_flag=True, help="Also accept rows that differ from the published ones.")
@_TABLE_OPTION
def get(*, names: tuple[str, ...], local: Path | None, data: Path, other_rows: bool, table: Path) -> None:
    """Get labelled rows; without NAME, all sets. You can repeat the command at any time."""
    sets = _sets(table)
    for name in names:
        if name not in sets:
            raise click.UsageError(f"unknown set {name}. Sets are: {', '.join(sets)}")
    for name in names or sets:
        if name not in CONVERSIONS:
            raise click.ClickException(f"{table}: {name} has no conversion. Conversions are: {', '.join(CONVERSIONS)}")
        try:
            click.echo(get_rows(name, sets[name], data, local=local, other_rows=other_rows))
        except (ModelError, ConversionError, OSError) as error:
            raise click.ClickException(f"{name}: {error}") from error


@main.command(name="list")
@_TABLE_OPTION
def list_sets(*, table: Path) -> None:
    """List the sets with their sources and licences."""
    for name, labelled in _sets(table).items():
        click.echo(f"{name}: {labelled.file}, {labelled.rows} rows, {labelled.licence}")
        click.echo(f"  {labelled.citation}")
        click.echo(f"  {labelled.made}")
        for source in labelled.sources:
            click.echo(f"  {source.url}{'' if source.sha256 else ' (SHA-256 unknown)'}")
        click.echo(f"  rows: SHA-256 {labelled.rows_sha256}")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.data")
