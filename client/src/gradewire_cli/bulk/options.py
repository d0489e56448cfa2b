"""Options of `gradewire bulk` for output and parts, and the division of cores among workers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import click

from gradewire_cli.bulk.parts import FOLDER_MANIFEST, PartStore, is_folder, parts_folder
from gradewire_cli.options.common import check_resume, fail_on_option, quiet_option, resume_options
from gradewire_cli.options.help import option, stacked
from gradewire_cli.problems import InputError, redacted_url
from gradewire_cli.results.manifest_entries import manifest_path, row_output_options
from gradewire_cli.results.results_table import is_table
from gradewire_cli.rows.files import file_system, is_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


CORES_PER_WORKER: Final = 4
"""Cores per worker. The encoder runs outside Python, so more workers help only once Python fills a core."""
_USED: Final = Fraction(3, 4)
"""Minimum share of all cores that workers use.

Workers are as large as this share allows, even if some machines get no worker.
"""
_RAY_UNITS_PER_CORE: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """A division of cores among workers. Each worker has `threads` threads and reserves at most that many cores."""

    workers: int
    threads: int
    reserved: float


def divided(machines: Sequence[int], *, workers: int | None, threads: int | None, own_judge: bool = False) -> Division:
    """Divide machines' cores among workers. None means the default. `own_judge` means that each worker has a judge."""
    sizes = Counter(machines)
    count = workers or (1 if own_judge else _usual_workers(sizes))
    share = _largest_share(sizes, count)
    each = threads or max(1, int(share))
    return Division(workers=count, threads=each, reserved=float(min(Fraction(each), share)))


def _usual_workers(sizes: Counter[int]) -> int:
    cores = sum(size * machines for size, machines in sizes.items())
    # Try each machine's best number of cores per worker.
    shares = sorted({size // -(-size // CORES_PER_WORKER) for size in sizes}, reverse=True)
    enough = (share for share in shares if _worker_capacity(sizes, Fraction(share)) * share >= _USED * cores)
    chosen = next(enough, max(shares, key=lambda share: _worker_capacity(sizes, Fraction(share)) * share))
    return _worker_capacity(sizes, Fraction(chosen))


def _largest_share(sizes: Counter[int], workers: int) -> Fraction:
    """Return the maximum number of cores per worker with which all workers fit, rounded down to Ray's units."""
    shares = {Fraction(size, each) for size in sizes for each in range(1, workers + 1)}
    largest = max(share for share in shares if _worker_capacity(sizes, share) >= workers)
    return Fraction(int(largest * _RAY_UNITS_PER_CORE), _RAY_UNITS_PER_CORE)


def _worker_capacity(sizes: Counter[int], share: Fraction) -> int:
    return sum(machines * int(size / share) for size, machines in sizes.items())


_PART_ROWS: Final = 1024
_JUDGED_PART_ROWS: Final = 32
"""Number of rows in a part if the run needs a judge, because a judge may need seconds per row."""


def usual_part_rows(*, judged: bool) -> int:
    """Return the default number of rows per part."""
    return _JUDGED_PART_ROWS if judged else _PART_ROWS


bulk_options = stacked(
    resume_options,
    *row_output_options,
    fail_on_option,
    quiet_option,
    option("--processes", "workers", type=click.IntRange(min=1)),
    option("--threads", type=click.IntRange(min=1)),
    option("--part-rows", type=click.IntRange(min=1)),
    option("--ray-address", envvar="RAY_ADDRESS", show_envvar=True),
)


@dataclass(frozen=True, slots=True)
class BulkOutput:
    """A run's output with its options.

    The output is a file, a folder whose path ends in /, or the URL of a file or folder.
    """

    output: str
    options: Mapping[str, Any]

    @classmethod
    def of(cls, output: str, options: Mapping[str, Any]) -> Self:
        """Read OUTPUT and `bulk_options`; raise click.ClickException if one of them is invalid."""
        check_resume(options, output)
        if is_url(output):
            if "?" in redacted_url(output):
                raise InputError(
                    f'{output}: OUTPUT must not contain a "?", because bulk writes parts and a manifest next to OUTPUT'
                )
            file_system(output)
        if not is_folder(output):
            # raises an error for an unusable suffix
            is_table(Path(redacted_url(output).rsplit("/", 1)[-1]))
        return cls(output, options)

    @property
    def store(self) -> PartStore:
        """The store of the output's parts."""
        return PartStore(parts_folder(self.output))

    @property
    def is_folder(self) -> bool:
        """True if the output is a folder of parts."""
        return is_folder(self.output)

    @property
    def file(self) -> Path | None:
        """The output if it is one file on this machine, otherwise None."""
        return None if is_url(self.output) or self.is_folder else Path(self.output)

    @property
    def written(self) -> list[tuple[str, Path | None]]:
        """Output files on this machine by option."""
        options = {"--summary-json": self.options["summary_json"], "--manifest": self.options["manifest"]}
        return [("OUTPUT", self.file), *options.items()]

    @property
    def manifest_path(self) -> tuple[PartStore, str]:
        """The manifest's folder and name. By default, the folder is the output folder or the output file's folder."""
        given: Path | None = self.options["manifest"]
        if given is not None:
            return PartStore(str(given.parent)), given.name
        if self.is_folder:
            return self.store, FOLDER_MANIFEST
        folder, _, name = self.output.rpartition("/")
        return PartStore(folder or ("/" if self.output.startswith("/") else ".")), manifest_path(Path(name)).name
