"""Bulk runs without Ray: readers and workers in the test's process, a stub in the server's place."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import answer, write_rows

from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire.testing import StubTransport
from gradewire_cli.bulk.parts import PartId, PartRows, PartStore
from gradewire_cli.bulk.pipeline import FileEnd, file_readers
from gradewire_cli.bulk.worker import PartRecord, PartScorer, WorkerSetup
from gradewire_cli.options.connection import ConnectionOptions
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.input_file import InputFile
from gradewire_cli.scoring.plan import ScorePlan
from gradewire_cli.scoring.row_scorer import RowScorer

PART_ROWS = 4
Run = Callable[..., list[PartRecord]]


def answers(count: int, **more: Any) -> list[dict[str, Any]]:
    """Rows whose score is their number over 100, from 1."""
    return [
        {"id": f"r{number}", "references": ["cat"], "prediction": "x" * (number + 1), **more} for number in range(count)
    ]


class Bulk:
    """One bulk run in this process.

    Attributes:
        store: Its parts.
        ends: What the readers found, by file.
        lines: What the stub computes, by label.
    """

    def __init__(self, store: PartStore, paths: Sequence[Path], *, options: RowOptions | None = None) -> None:
        self.store = store
        self.source = InputFile(tuple(map(str, paths)), options or RowOptions())
        self.ends: dict[int, FileEnd] = {}
        self.connection = ConnectionOptions(server=None, token=None, tls=None, cache_dir=None, deadline_s=60)
        self.plan = ScorePlan(chosen=choose_metrics("smile", MetricDefaults(synthetic="none")))
        self.lines = asyncio.run(self._lines())
        store.create()

    async def _lines(self) -> dict[str, str]:
        async with self.connection.open(StubTransport(answer)) as client:
            return (await RowScorer.open(client, self.plan)).lines

    def run(self, stub: StubTransport | None = None, *, lines: dict[str, str] | None = None) -> list[PartRecord]:
        """Scores what is not done; gives the records."""
        found = self.store.parts()
        counts = [self.source.count_file(number) for number in range(len(self.source.paths))]
        setup = self.setup(found)
        worker = PartScorer(replace(setup, lines=lines or self.lines), stub or StubTransport(answer))
        records = []
        try:
            for reader in file_readers(self.source, counts, PART_ROWS, found, None):
                for item in reader.read():
                    if isinstance(item, PartRows):
                        records.append(worker.score(item))
                    else:
                        self.ends[item.file] = item
        finally:
            worker.close()
        return records

    def setup(self, found: Mapping[PartId, bool]) -> WorkerSetup:
        """What workers are made with where these parts are there."""
        return WorkerSetup(
            connection=self.connection,
            plan=self.plan,
            lines=self.lines,
            store=self.store,
            unanswered=frozenset(part for part, answered in found.items() if not answered),
        )

    def rows(self) -> list[dict[str, Any]]:
        """All rows of all parts, in order."""
        return [
            json.loads(line)
            for part, answered in sorted(self.store.parts().items())
            for line in self.store.read_part(part, answered=answered).splitlines()
        ]


@pytest.fixture
def bulk(tmp_path: Path) -> Callable[..., Bulk]:
    """Makes a run over files of these rows."""

    def make(*files: list[dict[str, Any]], options: RowOptions | None = None) -> Bulk:
        paths = [write_rows(tmp_path / f"{number}.jsonl", rows) for number, rows in enumerate(files)]
        return Bulk(PartStore(str(tmp_path / "out.parts")), paths, options=options)

    return make
