"""Readers and workers on a Ray of our own whose workers reserve every core."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from gradewire_cli.bulk import pipeline
from gradewire_cli.bulk.parts import PartStore
from gradewire_cli.bulk.pipeline import FileEnd, ray_session

WORKERS = 2
_LIMIT_S = 300
_STAY_S = 4
"""Long enough for a process that should not be there to begin."""


@dataclass(frozen=True)
class Meeting:
    """In the place of a reader: waits for others, stays a while, and tells of how many it knew."""

    folder: Path
    file: int
    awaited: int
    stay_s: float

    def read(self) -> Any:
        """An end with, as parts, the readers that had begun, and as rows the most that were there at a time."""
        (self.folder / f"{self.file}.begun").touch()
        deadline = time.monotonic() + _LIMIT_S
        while (begun := self._begun()) < self.awaited and time.monotonic() < deadline:
            time.sleep(0.01)
        most = 0
        deadline = time.monotonic() + self.stay_s
        while time.monotonic() < deadline:
            # Who begins behind somebody's end finds that end when it is counted afterwards.
            most = max(most, self._begun() - len(list(self.folder.glob("*.ended"))))
            time.sleep(0.01)
        (self.folder / f"{self.file}.ended").touch()
        yield FileEnd(file=self.file, parts=begun, rows=most)

    def _begun(self) -> int:
        return len(list(self.folder.glob("*.begun")))


@dataclass(frozen=True)
class StoreAlone:
    """What is looked at of a setup where ends pass the workers and no parts do."""

    store: PartStore


class LateWorker:
    """In the place of a worker: the first one dies before it is up, as on a cluster that has too much to do."""

    def __init__(self, setup: Any) -> None:
        if not (died := Path(setup.store.place) / "died").exists():
            died.touch()
            raise OSError("not up in time")

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What comes in."""
        return {"item": list(batch["item"])}


def met(folder: Path, files: int, *, awaited: int, stay_s: float) -> list[FileEnd]:
    """Ends of so many files, of a Ray of our own whose workers reserve all of its cores."""
    meetings: Any = [Meeting(folder, file, awaited, stay_s) for file in range(files)]
    setup: Any = StoreAlone(PartStore(str(folder)))
    with ray_session(None, WORKERS) as ray:
        ends = list(pipeline.run_parts(ray, meetings, setup, workers=WORKERS, cores_per_worker=1))
    assert sorted(end.file for end in ends) == list(range(files))
    return cast("list[FileEnd]", ends)


def test_workers_that_reserve_every_core_do_not_keep_files_from_being_read_side_by_side(tmp_path: Path) -> None:
    ends = met(tmp_path, WORKERS, awaited=WORKERS, stay_s=0)
    assert [end.parts for end in ends] == [WORKERS, WORKERS]


def test_no_more_files_are_read_at_a_time_than_there_are_workers(tmp_path: Path) -> None:
    ends = met(tmp_path, WORKERS * 2 + 1, awaited=1, stay_s=_STAY_S)
    assert max(end.rows for end in ends) <= WORKERS


def test_a_worker_that_dies_before_it_is_up_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "RayWorker", LateWorker)
    assert len(met(tmp_path, 1, awaited=1, stay_s=0)) == 1
    assert (tmp_path / "died").exists()
