"""`python -m benchmarks.data`: gets the labelled rows behind the figures, or says what they are."""

from pathlib import Path

import click
from benchmarks.common.rows import DATA_DIRECTORY
from benchmarks.data.convert import CONVERSIONS, ConversionError
from benchmarks.data.sets import TABLE, LabelledSet, TableError, get_rows, read_table

from gradewire_models.errors import ModelError

_TABLE_OPTION = click.option(
    "--table", type=click.Path(dir_okay=False, path_type=Path), default=TABLE, help="Another table of the sets."
)


def _sets(table: Path) -> dict[str, LabelledSet]:
    try:
        return read_table(table)
    except TableError as error:
        raise click.ClickException(str(error)) from error


@click.group()
def main() -> None:
    """Get the human-labelled rows behind the tables of docs/research."""


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--from",
    "local",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the rows, or the public files that they are made of, from this folder; nothing is downloaded.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=DATA_DIRECTORY,
    help="Where the rows go; benchmarks look there where their --data does not say otherwise.",
)
@click.option("--other-rows", is_flag=True, help="Take rows too that are not those the figures were taken on.")
@_TABLE_OPTION
def get(*, names: tuple[str, ...], local: Path | None, data: Path, other_rows: bool, table: Path) -> None:
    """Get labelled rows; without a NAME all sets. Safe to run again."""
    sets = _sets(table)
    for name in names:
        if name not in sets:
            raise click.UsageError(f"there is no set {name}; there are: {', '.join(sets)}")
    for name in names or sets:
        if name not in CONVERSIONS:
            raise click.ClickException(f"{table}: nothing makes rows of {name}; there are: {', '.join(CONVERSIONS)}")
        try:
            click.echo(get_rows(name, sets[name], data, local=local, other_rows=other_rows))
        except (ModelError, ConversionError, OSError) as error:
            raise click.ClickException(f"{name}: {error}") from error


@main.command(name="list")
@_TABLE_OPTION
def list_sets(*, table: Path) -> None:
    """List the sets: what they are, where they are public, and their licences."""
    for name, labelled in _sets(table).items():
        click.echo(f"{name}: {labelled.file}, {labelled.rows} rows, {labelled.licence}")
        click.echo(f"  {labelled.citation}")
        click.echo(f"  {labelled.made}")
        for source in labelled.sources:
            click.echo(f"  {source.url}{'' if source.sha256 else ' (SHA-256 not known)'}")
        click.echo(f"  rows: SHA-256 {labelled.rows_sha256}")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.data")
