"""The manifest of a table of `bench`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from gradewire.cli.run.manifest_file import (
    digests_of,
    forget_manifest,
    manifest_beside,
    metric_fields,
    save_manifest,
    tallied_counts,
)
from gradewire.manifests import RunClock, RunManifest, versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire.cli.output.files import TableFiles
    from gradewire.cli.output.summary import MetricTally
    from gradewire.cli.run.labelled_run import LabelledRun


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchScores:
    """What a table is made from.

    Attributes:
        inputs: Files that were read.
        rows: That count in it.
        tallies: Results by metric.
        place: Where they were scored; "" where scores were read, or nothing was scored.
        server_version: Version of gradewire there.
    """

    inputs: Sequence[str | Path]
    rows: int
    tallies: Mapping[str, MetricTally]
    place: str = ""
    server_version: str = ""

    @classmethod
    def of(cls, run: LabelledRun, tallies: Mapping[str, MetricTally], *, rows: int, server_version: str) -> Self:
        """Those of a run over labelled rows."""
        return cls(
            inputs=[*run.source.named_paths.values(), *run.scores],
            rows=rows,
            tallies=tallies,
            place="" if run.scores else run.connection.place,
            server_version=server_version,
        )


@dataclass(frozen=True, slots=True)
class BenchManifest:
    """Made where a command begins, written where its figures are.

    Attributes:
        command: Of gradewire, for instance "bench knvqa".
        path: Where it goes; None where no file is written and nobody asked for one.
    """

    command: str
    path: Path | None
    clock: RunClock = field(default_factory=RunClock)

    @classmethod
    def of(cls, command: str, options: Mapping[str, Any], files: TableFiles) -> Self:
        """Reads --manifest; without it the manifest goes beside the first file of figures."""
        return cls(command, manifest_beside(options["manifest"], files.json, files.markdown, files.csv, files.latex))

    @property
    def named(self) -> list[tuple[str, Path | None]]:
        """Option and file, as `check_outputs` takes them."""
        return [("--manifest", self.path)]

    def write(self, scored: BenchScores, **parameters: Any) -> None:
        """Writes it where it has a place; raises InputError where that cannot be.

        Args:
            scored: What the table is made from.
            parameters: Options that change what comes out; those without a value are left out.
        """
        if self.path is None:
            return
        forget_manifest(self.path)
        manifest = RunManifest(
            command=self.command,
            versions=versions(scored.server_version),
            place=scored.place,
            **metric_fields({label: tally.line for label, tally in scored.tallies.items()}),
            inputs=digests_of(scored.inputs),
            parameters={name: value for name, value in parameters.items() if value not in (None, "", [], {})},
            counts=tallied_counts(scored.tallies, rows=scored.rows),
            times=self.clock.times(),
            machine=self.clock.machine(),
        )
        save_manifest(self.path, manifest)


def run_parameters(run: LabelledRun) -> dict[str, Any]:
    """Options that all tables of labelled rows have, by name."""
    return {
        "where": {column: sorted(values) for column, values in run.source.options.where.items()},
        "without_flags": sorted(run.without_flags),
        "labels": run.labels,
        "against": run.against,
        "resamples": run.resamples,
        "seed": run.seed,
    }
