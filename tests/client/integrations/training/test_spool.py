"""A spool loses no step: restarts, kills, damage, full disks, limits; and it tells who is tried again, and when."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gradewire import InvalidRequest, Overloaded, ServerUnreachable
from gradewire.integrations.training import spool as spool_module
from gradewire.integrations.training.spool import Spool, SpoolLimits
from gradewire.integrations.training.step_database import StoredStep
from gradewire.integrations.training.steps import StepHeader, StepMetric, StepScores, StepState, WaitingStep

_ROWS = [b'{"prediction": "a"}\n', b'{"prediction": "b"}\n']
_METRIC = StepMetric(0.5, None, 1, 0.5, {"OK": 1, "TIMEOUT": 1}, "smile:v1/1?…", "ab", "too late")


def header(step: int) -> StepHeader:
    return StepHeader(step, "validation", 1.0, {"exact_match": "exact_match"}, "set@1")


def scored(step: WaitingStep) -> StepScores:
    return StepScores(step.header.step, "validation", 2, StepState.SCORED, {"smile": _METRIC}, "", 1.0, 2.0)


def deliver(spool: Spool, step: WaitingStep) -> StepScores:
    """The step as its worker and its sinks end it."""
    assert spool.scored(step)
    scores = scored(step)
    spool.delivered(step, scores)
    return scores


def sql(spool: Spool) -> Callable[..., sqlite3.Cursor]:
    """Executes a statement in the spool's database."""
    return spool._database._connection.execute


@contextmanager
def opened(directory: Path, limits: SpoolLimits | None = None) -> Iterator[Spool]:
    spool = Spool(directory, limits or SpoolLimits())
    try:
        yield spool
    finally:
        spool.close()


def test_steps_of_an_earlier_version_have_no_run(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        spool.add(header(1), _ROWS)
        old = json.loads(spool._database.read(0).header)
        assert old.pop("run") == ""
        stored = StoredStep.of(json.dumps(old).encode(), b"".join(_ROWS))
        sql(spool)("UPDATE steps SET header = ?, digest = ?", (stored.header, stored.digest))
        deliver_old = {
            key: value for key, value in scored(WaitingStep(1, header(2), 2, 9)).to_dict().items() if key != "run"
        }
        assert StepScores.from_dict(deliver_old).run == ""
    with opened(tmp_path) as spool:
        assert [(scores.step, scores.run) for scores in spool.results()] == [(1, "")]
        spool.add(replace(header(1), run="new"), _ROWS)
        assert [(scores.step, scores.run) for scores in spool.results()] == [(1, "new")]
        assert [(scores.step, scores.run) for scores in spool.results("")] == [(1, "")]
        assert spool.runs() == ["", "new"]


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "scores.jsonl").read_text().splitlines()]


def test_what_is_written_comes_back_after_a_restart_in_the_order_of_submission(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        for step in (-5, 5, 0):
            assert spool.add(header(step), iter(_ROWS)) == (StepState.NOT_SCORED, [])
        first = spool.take()
        assert first is not None
        scores = deliver(spool, first)
        assert spool.read(first) is None
    with opened(tmp_path) as spool:
        assert spool.counts() == {StepState.SCORED: 1, StepState.NOT_SCORED: 2}
        assert spool.results()[0] == scores
        second = spool.take()
        assert second is not None
        assert (second.header, second.items) == (header(5), 2)
        assert spool.read(second) == [{"prediction": "a"}, {"prediction": "b"}]
        spool.add(header(6), _ROWS)
        deliver(spool, second)
        third = spool.take()
        assert third is not None
        assert third.header.step == 0
    assert [line["sequence"] for line in lines(tmp_path)] == [0, 1]
    assert lines(tmp_path)[0] == {"sequence": 0, **scores.to_dict()}


def test_a_kill_after_the_transaction_leaves_a_line_to_the_next_process_and_scores_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as spool:
        spool.add(header(1), _ROWS)
        monkeypatch.setattr(spool._database, "export", lambda: None)
        step = spool.take()
        assert step is not None
        deliver(spool, step)
    assert not (tmp_path / "scores.jsonl").exists()
    with opened(tmp_path) as spool:
        assert spool.counts() == {StepState.SCORED: 1}
    assert [line["step"] for line in lines(tmp_path)] == [1]


def test_closing_waits_for_scores_of_a_step_that_was_refused_before(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        spool.add(header(1), iter(_ROWS))
        step = spool.take()
        assert step is not None
        spool.failed(step, InvalidRequest("no"))
        assert spool.wait_unrefused(3600) is False, "nothing is waited for"
        assert spool.scored(step)
        assert not step.is_refused, "its delivery is waited for"
        spool.delivered(step, scored(step))
        assert spool.wait_unrefused(3600) is True


@pytest.mark.parametrize("tail", [b'{"sequence": 9, "step', b"\xff\xfe", b"{"])
def test_a_line_that_was_cut_off_is_written_again(tmp_path: Path, tail: bytes) -> None:
    with opened(tmp_path) as spool:
        for step in (1, 2):
            spool.refuse(header(step), "no room")
    path = tmp_path / "scores.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n") + 1] + tail)
    opened_again = Spool(tmp_path, SpoolLimits())
    opened_again.close()
    assert path.read_bytes() == whole


def test_memory_keeps_the_newest_and_the_file_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "_MOST_LISTED", 3)
    with opened(tmp_path) as spool:
        for step in range(5):
            spool.refuse(header(step), "no room")
        assert [scores.step for scores in spool.results()] == [2, 3, 4]
    with opened(tmp_path) as spool:
        assert [scores.step for scores in spool.results()] == [2, 3, 4]
        assert spool.counts()[StepState.DROPPED] == 5
    assert len(lines(tmp_path)) == 5


@pytest.mark.parametrize("column", ["header", "rows", "digest"])
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
def test_every_changed_byte_of_header_rows_and_digest_is_found(tmp_path: Path, column: str, *, is_open: bool) -> None:
    with opened(tmp_path) as spool:
        for step in (1, 2):
            spool.add(header(step), _ROWS)
        (sequence, (whole,)) = 0, sql(spool)(f"SELECT {column} FROM steps").fetchone()  # noqa: S608
        for position in range(len(whole)) if is_open else (len(whole) // 2,):
            content = whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]
            sql(spool)(f"UPDATE steps SET {column} = ? WHERE sequence = ?", (content, sequence))  # noqa: S608
            query = "SELECT header, rows, digest FROM steps WHERE sequence = 0"
            stored = sql(spool)(query).fetchone()
            with pytest.raises(ValueError, match="do not match their digest"):
                StoredStep(*stored).checked_header()
        if is_open:
            step = spool.take()
            assert step is not None
            found = spool.read(step)
            assert isinstance(found, StepScores)
            damaged = [found]
    if not is_open:
        with opened(tmp_path) as spool:
            damaged = spool.damaged
            assert spool.counts() == {StepState.CORRUPT: 1, StepState.NOT_SCORED: 1}
    assert [(scores.step, scores.state) for scores in damaged] == [(1, StepState.CORRUPT)]
    (path,) = (tmp_path / "corrupt").iterdir()
    assert str(path) in damaged[0].problem
    with opened(tmp_path) as spool:
        assert [scores.state for scores in spool.results()] == [StepState.CORRUPT, StepState.NOT_SCORED]


def test_a_header_that_was_changed_in_the_file_is_damage(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        spool.add(header(71234), _ROWS)
    path = tmp_path / "steps.sqlite"
    content = path.read_bytes()
    assert content.count(b'"step": 71234') == 1
    path.write_bytes(content.replace(b'"step": 71234', b'"step": 71235'))
    with opened(tmp_path) as spool:
        assert [(scores.step, scores.state) for scores in spool.damaged] == [(71234, StepState.CORRUPT)]


def full(spool: Spool) -> None:
    """Lets the database grow no further, as a full disk does."""
    (pages,) = sql(spool)("PRAGMA page_count").fetchone()
    sql(spool)(f"PRAGMA max_page_count={pages}")


def test_on_a_full_disk_what_waits_is_kept_and_what_was_scored_too(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        spool.add(header(1), [b'{"prediction": "%s"}\n' % (b"x" * 300)])
        full(spool)
        with pytest.raises(OSError, match="full"):
            spool.add(header(2), [b"%s\n" % (b"x" * 50_000)])
        step = spool.take()
        assert step is not None
        assert spool.read(step) == [{"prediction": "x" * 300}]
        assert spool.scored(step)
        large = StepScores(1, "validation", 1, StepState.SCORED, {}, "y" * 50_000, 1.0, 2.0)
        with pytest.raises(OSError, match="full"):
            spool.delivered(step, large)
        assert [scores.state for scores in spool.results()] == [StepState.NOT_SCORED]
        assert "full" in spool.results()[0].problem
        sql(spool)("PRAGMA max_page_count=1000000")
        spool.delivered(step, large)
        assert spool.add(header(2), _ROWS) == (StepState.NOT_SCORED, [])
    with opened(tmp_path) as spool:
        assert [(scores.step, scores.state) for scores in spool.results()] == [
            (1, StepState.SCORED),
            (2, StepState.NOT_SCORED),
        ]


def test_a_file_of_scores_that_cannot_be_written_gets_its_lines_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "scores.jsonl"
    with opened(tmp_path) as spool:
        path.mkdir()
        spool.refuse(header(1), "no room")
        assert "cannot append scores" in caplog.text
        path.rmdir()
        spool.refuse(header(2), "no room")
    assert [line["step"] for line in lines(tmp_path)] == [1, 2]


def test_rows_that_raise_leave_nothing_behind(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        with pytest.raises(ZeroDivisionError):
            spool.add(header(1), (b"%d\n" % (1 // divisor) for divisor in (1, 0)))
        assert (spool.results(), sum(spool.counts().values())) == ([], 0)


@pytest.mark.parametrize("when_full", ["drop_oldest", "drop_newest"])
def test_what_waits_takes_no_more_bytes_than_it_may(tmp_path: Path, when_full: Any) -> None:
    limits = SpoolLimits(max_bytes=20_000, when_full=when_full)
    with opened(tmp_path, limits) as spool:
        for step in range(12):
            spool.add(header(step), [b"x" * 4_000 + b"\n"])
            (size_bytes,) = sql(spool)("SELECT sum(length(header) + length(rows)) FROM steps").fetchone()
            assert size_bytes <= limits.max_bytes
        assert spool.counts() == {StepState.NOT_SCORED: 4, StepState.DROPPED: 8}
        (pages,) = sql(spool)("PRAGMA page_count").fetchone()
        assert pages * 4096 < 4 * limits.max_bytes, "what was dropped gives its room back"


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(InvalidRequest, match=f"in use by process {os.getpid()}"):
        Spool(tmp_path, SpoolLimits())
    with opened(tmp_path):
        pass


def test_a_directory_of_another_version_is_named(tmp_path: Path) -> None:
    with opened(tmp_path / "later"):
        pass
    with closing(sqlite3.connect(tmp_path / "later/steps.sqlite")) as database:
        database.execute("PRAGMA user_version=9")
    with pytest.raises(InvalidRequest, match="later gradewire version"):
        Spool(tmp_path / "later", SpoolLimits())
    (tmp_path / "earlier/pending").mkdir(parents=True)
    with pytest.raises(InvalidRequest, match="earlier gradewire version"):
        Spool(tmp_path / "earlier", SpoolLimits())
    (tmp_path / "other").mkdir()
    (tmp_path / "other/steps.sqlite").write_bytes(b"no database, but long enough for one. " * 100)
    for _ in range(2):  # the lock is let go
        with pytest.raises(OSError, match="move it away"):
            Spool(tmp_path / "other", SpoolLimits())


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"max_bytes": 0}, "max_bytes"), ({"max_steps": 1.5}, "max_steps"), ({"when_full": "stop"}, "when_full")],
)
def test_limits_are_checked(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        SpoolLimits(**settings)


def waiting(spool: Spool, count: int) -> list[WaitingStep]:
    for step in range(count):
        spool.add(header(step), _ROWS)
    return list(spool._waiting.values())


def test_a_server_that_is_away_is_tried_at_growing_intervals_up_to_half_a_minute(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        steps = waiting(spool, 3)
        waits = [spool.failed(steps[number % 3], ServerUnreachable("away")) for number in range(12)]
        assert 0.4 <= waits[0] <= 0.6
        assert all(shorter < longer for shorter, longer in pairwise(waits[:6]))
        assert all(wait <= 36 for wait in waits)
        assert spool.scored(steps[0])
        assert spool.failed(steps[1], ServerUnreachable("away")) <= 0.6


def test_the_servers_own_word_goes_first(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        (step,) = waiting(spool, 1)
        assert 7 <= spool.failed(step, Overloaded("full", retry_after_s=7.0)) <= 8.4


def test_all_wait_for_the_server_and_a_refused_step_waits_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module.time, "monotonic", lambda: 100.0)
    with opened(tmp_path) as spool:
        steps = waiting(spool, 3)
        wait_s = spool.failed(steps[0], ServerUnreachable("away"))
        assert spool._due_s(steps[0]) == spool._due_s(steps[1]) == 100.0 + wait_s
        assert spool.scored(steps[2])
        spool.failed(steps[1], InvalidRequest("no such metric"))
        assert (spool._due_s(steps[1]), spool._due_s(steps[2])) == (160.0, 0.0)
