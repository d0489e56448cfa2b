"""Where `gradewire score` writes its rows: standard output, JSONL, or a table that is made of JSONL at the end."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import click

from gradewire.cli.input.opening import STDIN
from gradewire.cli.options.group import check_resume, choice_option, option_group
from gradewire.cli.output.journal import files_of, refuse_existing
from gradewire.cli.output.result_rows import count_results, may_pass, read_results
from gradewire.cli.output.table_file import is_table, part_of, write_table
from gradewire.cli.run.manifest_file import manifest_beside, row_output_options

output_options = option_group(
    click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
        help="Write the rows here: .jsonl, .csv, .tsv or .parquet; - is standard output.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Continue --out where an earlier run stopped; rows that timed out are tried again.",
    ),
    click.option("--overwrite", is_flag=True, help="Replace --out."),
    choice_option("--format", "format_", among=("jsonl", "table"), about="Format of the rows on standard output."),
    row_output_options,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output options.

    Attributes:
        path: What the user named; None for standard output.
        rows: Where rows are written as JSONL: the path, or beside it where that is a table.
        printed_table: Whether standard output gets a table for people.
        summary: File for the summary.
        manifest: File for the manifest; None where rows go to standard output and nobody asked for one.
    """

    path: Path | None
    rows: Path | None
    resume: bool
    overwrite: bool
    printed_table: bool
    summary: Path | None
    manifest: Path | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Reads `output_options`.

        Raises:
            click.ClickException: Two exclude each other, or an output cannot be of its format.
        """
        as_table = options["format_"] == "table"
        path: Path | None = None if str(options["out"]) == STDIN else options["out"]
        check_resume(options, path)
        if path is not None and as_table:
            raise click.UsageError("--format table is for standard output: leave out --out")
        rows = part_of(path) if path is not None and is_table(path) else path
        return cls(
            path=path,
            rows=rows,
            resume=options["resume"],
            overwrite=options["overwrite"],
            printed_table=as_table,
            summary=options["summary_json"],
            manifest=manifest_beside(options["manifest"], path, options["summary_json"]),
        )

    @property
    def written(self) -> list[tuple[str, Path | None]]:
        """Files that may be written or removed, as `check_outputs` takes them."""
        rows = [] if self.rows is None else [*files_of(self.rows)]
        out = [("--out", path) for path in (self.path, *rows)]
        return [*out, ("--summary-json", self.summary), ("--manifest", self.manifest)]

    def check(self) -> None:
        """Refuses to write over what is there; raises InputError."""
        if not (self.overwrite or self.resume):
            refuse_existing(self.path, self.rows)

    @property
    def is_whole(self) -> bool:
        """Whether a run that goes on has nothing to go on with but a table."""
        if self.path is None or self.rows is None or not self.resume:
            return False
        return self.path != self.rows and self.path.exists() and not any(map(Path.exists, files_of(self.rows)[:2]))

    def make_table(self) -> None:
        """Makes the table that is asked for, of rows that are all there; raises InputError where it cannot."""
        if self.path is not None and self.rows is not None and self.path != self.rows:
            write_table(self.path, self.rows)

    def remove_rows(self) -> None:
        """Removes the rows beside a table, unless some of them are to be scored again."""
        if self.rows is None or self.path == self.rows:
            return
        if any(may_pass(result) for _, result in read_results(self.rows)):
            click.echo(f"{self.rows} stays: with it, --resume scores the rows again that got no answer", err=True)
        else:
            self.rows.unlink()

    def way_on(self) -> str:
        """The line that is printed where the user interrupts."""
        if self.rows is None or not self.rows.is_file():
            return "interrupted"
        return f"interrupted; {count_results(self.rows)} rows are in {self.rows}, go on with --resume"
