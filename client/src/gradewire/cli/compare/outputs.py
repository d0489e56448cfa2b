"""Where `compare` writes: pairs as JSONL, the scores beside them, figures, and a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import click

from gradewire.cli.options.group import OUTPUT_FILE, check_resume, option_group
from gradewire.cli.output.files import TableFiles, all_tables_option, table_file_options
from gradewire.cli.output.journal import files_of, refuse_existing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

output_options = option_group(
    click.option("--out", type=OUTPUT_FILE, help="Write a line for each pair here (JSONL), with its winner."),
    click.option(
        "--resume", is_flag=True, help="Go on with --out where an earlier run stopped; what timed out is tried again."
    ),
    click.option("--overwrite", is_flag=True, help="Replace --out, and the scores beside it."),
    all_tables_option,
    table_file_options,
    click.option("--html", type=OUTPUT_FILE, help="Write a page here that needs no network (HTML)."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The output options.

    Attributes:
        pairs: File of pairs; None: none.
        resume: Whether what is in it, and in the scores beside it, stands.
        overwrite: Whether it may be replaced.
        figures: Files of figures.
        page: HTML page.
        all_tables: Whether all tables are printed.
    """

    pairs: Path | None
    resume: bool
    overwrite: bool
    figures: TableFiles
    page: Path | None
    all_tables: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Reads `output_options`; raises click.UsageError where two exclude each other."""
        check_resume(options, options["out"])
        return cls(
            pairs=options["out"],
            resume=options["resume"],
            overwrite=options["overwrite"],
            figures=TableFiles.of(options),
            page=options["html"],
            all_tables=options["all_tables"],
        )

    @property
    def scores(self) -> Path | None:
        """Where scores are kept beside the pairs, as `gradewire score --out` writes them: pairs.scores.jsonl."""
        return self.pairs.with_name(f"{self.pairs.stem}.scores.jsonl") if self.pairs else None

    @property
    def written(self) -> list[tuple[str, Path | None]]:
        """Files that may be written or removed, as `check_outputs` takes them."""
        kept = [path for file in (self.pairs, self.scores) if file is not None for path in files_of(file)]
        return [*(("--out", path) for path in kept), *self.figures.named, ("--html", self.page)]

    def check(self) -> None:
        """Refuses to write over pairs and scores that are there; raises InputError."""
        if not (self.resume or self.overwrite):
            refuse_existing(self.pairs, self.scores)

    def way_on(self) -> str:
        """The line that is printed where the user interrupts."""
        if self.pairs is None:
            return "interrupted"
        return f"interrupted; what was done is in {self.pairs} and {self.scores}, go on with --resume"
