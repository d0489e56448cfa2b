"""Options of `gradewire bulk` for output and parts, and the division of a cluster's cores among workers."""

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
"""Cores per worker. The encoder runs outside Python, and runs of one engine share its caches, so further engines only
take memory until Python fills a core."""
_USED: Final = Fraction(3, 4)
"""Minimum share of all cores in use: better to leave out small machines than to make all workers small."""
_RAY_STEPS: Final = 10_000
"""Ray divides a core into this many units, and rounds in both directions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """A division of cores among workers.

    Attributes:
        reserved: Cores that each worker reserves, at most `threads`, so that all workers fit at once.
    """

    workers: int
    threads: int
    reserved: float


def divided(machines: Sequence[int], *, workers: int | None, threads: int | None, own_judge: bool = False) -> Division:
    """Divide cores among workers."""
    sizes = Counter(machines)
    count = workers or (1 if own_judge else _usual_workers(sizes))
    share = _largest_share(sizes, count)
    each = threads or max(1, int(share))
    return Division(workers=count, threads=each, reserved=float(min(Fraction(each), share)))


def _usual_workers(sizes: Counter[int]) -> int:
    cores = sum(size * machines for size, machines in sizes.items())
    # The share that each machine alone would give its workers; smaller machines get none.
    shares = sorted({size // -(-size // CORES_PER_WORKER) for size in sizes}, reverse=True)
    enough = (share for share in shares if _room(sizes, Fraction(share)) * share >= _USED * cores)
    chosen = next(enough, max(shares, key=lambda share: _room(sizes, Fraction(share)) * share))
    return _room(sizes, Fraction(chosen))


def _largest_share(sizes: Counter[int], workers: int) -> Fraction:
    """Return the most cores that each of `workers` can have, in Ray's units."""
    shares = {Fraction(size, each) for size in sizes for each in range(1, workers + 1)}
    largest = max(share for share in shares if _room(sizes, share) >= workers)
    return Fraction(int(largest * _RAY_STEPS), _RAY_STEPS)


def _room(sizes: Counter[int], share: Fraction) -> int:
    """Return the number of workers with `share` cores each that fit."""
    return sum(machines * int(size / share) for size, machines in sizes.items())


_PART_ROWS: Final = 1024
_JUDGED_PART_ROWS: Final = 32
"""A judge may take seconds for a row: an interruption then loses minutes instead of hours, and progress shows."""


def usual_part_rows(*, judged: bool) -> int:
    """Return the rows of a part without --part-rows."""
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
    """The output of a run (a file, a folder that ends in /, or the URL of either), with its options."""

    output: str
    options: Mapping[str, Any]

    @classmethod
    def of(cls, output: str, options: Mapping[str, Any]) -> Self:
        """Read OUTPUT and `bulk_options`; raises click.ClickException."""
        check_resume(options, output)
        if is_url(output):
            if "?" in redacted_url(output):
                raise InputError(
                    f"{output}: OUTPUT must not contain a ?, for parts and manifest are written next to it"
                )
            file_system(output)  # fails early if its package is missing
        if not is_folder(output):
            # Raises for other suffixes, and for Parquet without pyarrow.
            is_table(Path(redacted_url(output).rsplit("/", 1)[-1]))
        return cls(output, options)

    @property
    def store(self) -> PartStore:
        """The folder of the output's parts."""
        return PartStore(parts_folder(self.output))

    @property
    def is_folder(self) -> bool:
        """True if the parts are the output."""
        return is_folder(self.output)

    @property
    def file(self) -> Path | None:
        """The output if it is one file on this machine; else None."""
        return None if is_url(self.output) or self.is_folder else Path(self.output)

    @property
    def written(self) -> list[tuple[str, Path | None]]:
        """Files on this machine that may be written, for `check_outputs`."""
        options = {"--summary-json": self.options["summary_json"], "--manifest": self.options["manifest"]}
        return [("OUTPUT", self.file), *options.items()]

    @property
    def manifest_path(self) -> tuple[PartStore, str]:
        """Folder and name of the manifest: from the option, in the folder of parts, or next to the output."""
        given: Path | None = self.options["manifest"]
        if given is not None:
            return PartStore(str(given.parent)), given.name
        if self.is_folder:
            return self.store, FOLDER_MANIFEST
        folder, _, name = self.output.rpartition("/")
        return PartStore(folder or ("/" if self.output.startswith("/") else ".")), manifest_path(Path(name)).name
