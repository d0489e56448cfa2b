"""A spool on a disk that fills, and with flipped bits: what is damaged is named, what is not is kept, once each."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.client.integrations.training.test_spool import _METRIC, deliver, full, header, lines, opened, sql
from tests.support.figures import TakeFigure

from gradewire.integrations.training import spool as spool_module
from gradewire.integrations.training.steps import StepMetric, StepScores, StepState

_ROOT = Path(__file__).parents[4]
_STEPS = range(70_000, 70_008)


def row(step: int, number: int) -> bytes:
    """A line whose every part says of which step it is; the longest steps take several pages."""
    return b'{"prediction": "%s"}\n' % (b"%d/%d " % (step, number) * 20)


def scores_of(step: int) -> StepScores:
    """Scores by which one sees whose they are."""
    metric = StepMetric(step / 1000, None, 1, 0.0, {"OK": 1}, "smile:v1/1?…", "ab", "")
    return StepScores(step, "validation", 1, StepState.SCORED, {"smile": metric}, "", 1.0, 2.0)


@pytest.fixture
def spool_directory(tmp_path: Path) -> Path:
    """Eight steps, of which two are scored."""
    directory = tmp_path / "spool"
    with opened(directory) as spool:
        for step in _STEPS:
            spool.add(header(step), [row(step, number) for number in range(1 + step % 3 * 20)])
        for _ in range(2):
            step = spool.take()
            assert step is not None
            assert spool.scored(step)
            spool.delivered(step, scores_of(step.header.step))
    return directory


Flip = Callable[[int], Path]


@pytest.fixture
def flip(spool_directory: Path, tmp_path: Path) -> Flip:
    """Makes a copy of the directory in which a bit of one byte is another."""
    whole = (spool_directory / "steps.sqlite").read_bytes()

    def flipped(position: int) -> Path:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(spool_directory, copy)
        content = bytearray(whole)
        content[position] ^= 1 << position % 7
        (copy / "steps.sqlite").write_bytes(content)
        return copy

    return flipped


def damaged_steps(directory: Path) -> list[int]:
    """Open it and read all; return the steps that are named as damaged: the others are as they were."""
    with opened(directory) as spool:
        damaged = [scores.step for scores in spool.damaged]
        for step in spool._waiting.values():
            rows = spool.read(step)
            assert not isinstance(rows, StepScores)
            number = step.header.step
            assert step.header == header(number)
            assert rows == [json.loads(row(number, each)) for each in range(1 + number % 3 * 20)]
            assert step.items == len(rows)
        scored = [scores for scores in spool.results() if scores.state is StepState.SCORED]
        assert all(scores == scores_of(scores.step) for scores in scored)
        waiting = [step.header.step for step in spool._waiting.values()]
        assert sorted(waiting + damaged) == [*_STEPS[2:]], "each is kept or named"
    return damaged


def places(content: bytes, step: int) -> list[int]:
    """Return where a step's header and rows lie in the file."""
    found: list[int] = []
    for piece in (b'"step": %d' % step, b"%d/" % step):
        position = content.find(piece)
        while position >= 0:
            found += range(position, position + len(piece))
            position = content.find(piece, position + 1)
    return found


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.hostile)])
def test_flipped_bits_of_headers_and_rows_are_each_named_and_spare_the_other_steps(
    spool_directory: Path, flip: Flip, count: int, figure: TakeFigure
) -> None:
    chance = random.Random(39)  # noqa: S311 - nothing secret
    content = (spool_directory / "steps.sqlite").read_bytes()
    by_step = {step: places(content, step) for step in _STEPS[2:]}
    named = 0
    for _ in range(count):
        step = chance.choice(list(by_step))
        named += damaged_steps(flip(chance.choice(by_step[step]))) == [step]
    name = f"{count} flipped bits of headers and rows: the damaged step is named, the others are as they were"
    assert figure(name, named, bound=f"== {count}").holds


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.hostile)])
def test_whatever_bit_is_flipped_no_step_is_lost_silently_and_no_score_is_another_steps(
    spool_directory: Path, flip: Flip, tmp_path: Path, count: int, figure: TakeFigure
) -> None:
    chance = random.Random(40)  # noqa: S311 - nothing secret
    size = (spool_directory / "steps.sqlite").stat().st_size
    refused: list[str] = []
    for number in range(count):
        # Every second one in the head of a page, where SQLite notes what lies where.
        position = (
            chance.randrange(size) if number % 2 else chance.randrange(size // 4096) * 4096 + chance.randrange(40)
        )
        directory = flip(position)
        try:
            damaged = damaged_steps(directory)
        except OSError as error:  # of a page of SQLite's own
            refused.append(str(error))
        else:
            assert len(damaged) <= 1
    assert all(str(tmp_path / "copy/steps.sqlite") in message for message in refused), "the whole database is named"
    name = f"{count} flipped bits anywhere: the database is refused as a whole, by its name"
    assert figure(name, len(refused), bound=f"< {count // 3}").holds


def test_a_flipped_bit_of_scores_leaves_these_out_and_names_them(
    spool_directory: Path, flip: Flip, caplog: pytest.LogCaptureFixture
) -> None:
    content = (spool_directory / "steps.sqlite").read_bytes()
    position = content.index(b'{"step": 70001') + len(b'{"step": 7000')
    directory = flip(position)
    (directory / "scores.jsonl").unlink()
    assert damaged_steps(directory) == []
    assert "the damaged scores of submission 1" in caplog.text
    assert [(line["sequence"], line["state"]) for line in lines(directory)] == [(0, "scored"), (1, "corrupt")]
    with opened(directory) as spool:
        spool.refuse(header(9), "no room")
        assert spool.counts() == {StepState.SCORED: 2, StepState.DROPPED: 1, StepState.NOT_SCORED: 6}
    assert [line["sequence"] for line in lines(directory)] == [0, 1, 8]


@pytest.mark.parametrize(
    "damage",
    [
        "scores = '{'",
        "scores = '[]'",
        "scores = '{\"metrics\": []}'",
        "scores = json_set(scores, '$.step', 70009)",
        "scores = json_set(scores, '$.lost', 1)",
        "scores = CAST(x'ff' AS TEXT)",
        "scores = NULL",
        "scores = 5",
        "state = CAST(x'ff' AS TEXT)",
        "state = 'LOST'",
        "scores = json_set(scores, '$.state', 'LOST'), digest = NULL",
        "digest = x'00'",
        "scores = '{', digest = NULL",
        "sequence = 9",
        "sequence = 'x'",
        "sequence = x'ff'",
        "sequence = CAST(x'ff' AS TEXT)",
        "sequence = NULL",
    ],
)
def test_damaged_scores_keep_nothing_else_from_being_scored_or_exported(spool_directory: Path, damage: str) -> None:
    with closing(sqlite3.connect(spool_directory / "steps.sqlite")) as database:
        database.execute(f"UPDATE scores SET {damage} WHERE number = 1")  # noqa: S608
        database.commit()
    (spool_directory / "scores.jsonl").unlink()
    assert damaged_steps(spool_directory) == []
    with opened(spool_directory) as spool:
        assert 70_001 in [scores.step for scores in spool.results()]
        assert sum(spool.counts().values()) == 8
        step = spool.take()
        assert step is not None
        deliver(spool, step)
    assert len(lines(spool_directory)) == 3


@pytest.mark.parametrize("column", ["header", "rows", "digest"])
@pytest.mark.parametrize("value", ["NULL", "5", "CAST(header AS TEXT)", "CAST(x'ff' AS TEXT)"])
def test_a_step_of_another_type_is_damage(spool_directory: Path, column: str, value: str) -> None:
    with closing(sqlite3.connect(spool_directory / "steps.sqlite")) as database:
        database.execute(f"UPDATE steps SET {column} = {value} WHERE step = 70003")  # noqa: S608
        database.commit()
    damaged = [] if (column, value) == ("header", "CAST(header AS TEXT)") else [70_003]  # the bytes are the same
    assert damaged_steps(spool_directory) == damaged


@pytest.mark.parametrize("value", ["'x/y'", "x'ff'", "CAST(x'ff' AS TEXT)", "NULL", "70003.0"])
def test_a_damaged_step_with_a_number_of_another_type_stops_no_other(spool_directory: Path, value: str) -> None:
    with closing(sqlite3.connect(spool_directory / "steps.sqlite")) as database:
        database.execute(f"UPDATE steps SET step = {value}, header = '{{}}' WHERE step = 70003")  # noqa: S608
        database.commit()
    with opened(spool_directory) as spool:
        assert [type(scores.step) for scores in spool.damaged] == [int]
        assert len(spool.results()) == len(_STEPS)
        assert len(list((spool_directory / "corrupt").iterdir())) == 1


@pytest.mark.parametrize("table", ["steps", "scores"])
def test_the_largest_number_of_a_step_stops_no_later_one(spool_directory: Path, table: str) -> None:
    with closing(sqlite3.connect(spool_directory / "steps.sqlite")) as database:
        database.execute(f"UPDATE {table} SET sequence = {2**63 - 1} WHERE rowid = (SELECT max(rowid) FROM {table})")  # noqa: S608
        database.commit()
    with opened(spool_directory) as spool:
        added, _ = spool.add(header(9), [row(9, 0)])
        assert added is StepState.NOT_SCORED
        assert 9 in [step.header.step for step in spool._waiting.values()]


def test_the_names_of_new_folders_are_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fsync

    def noting(file: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        sync(file)

    monkeypatch.setattr(os, "fsync", noting)
    for _ in range(2):
        with opened(tmp_path / "runs" / "first"):
            pass
        assert synced == [str(tmp_path / "runs"), str(tmp_path)]


def test_rows_of_another_step_are_not_scored_in_its_place(spool_directory: Path) -> None:
    with opened(spool_directory) as spool:
        other = "SELECT header, rows, digest FROM steps WHERE step = 70003"
        sql(spool)(f"UPDATE steps SET (header, rows, digest) = ({other}) WHERE step = 70002")  # noqa: S608
        step = spool.take()
        assert step is not None
        scores = spool.read(step)
        assert isinstance(scores, StepScores)
        assert (scores.step, scores.state) == (70_002, StepState.CORRUPT)
        assert "another step is stored in its place" in scores.problem


def test_a_database_of_version_1_is_taken_over(spool_directory: Path) -> None:
    with closing(sqlite3.connect(spool_directory / "steps.sqlite")) as database:
        database.execute("ALTER TABLE scores DROP COLUMN digest")
        database.execute("PRAGMA user_version=1")
        database.commit()
    for _ in range(2):
        assert damaged_steps(spool_directory) == []
        with opened(spool_directory) as spool:
            assert spool.counts()[StepState.SCORED] == 2


def test_scores_that_a_full_disk_did_not_take_are_written_later_and_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "_REFUSED_WAIT_S", 0.001)
    tried: list[int] = []
    with opened(tmp_path) as spool:
        for step in (1, 2):
            spool.add(header(step), [b'{"prediction": "a"}\n'])
        step = spool.take()
        assert step is not None
        assert spool.scored(step)
        write = spool._database.write

        def written(*given: object) -> None:
            tried.append(1)
            if len(tried) == 5:
                sql(spool)("PRAGMA max_page_count=1000000")
            write(*given)  # type: ignore[arg-type]

        full(spool)
        big = StepScores(1, "validation", 1, StepState.SCORED, {"smile": _METRIC}, "y" * 50_000, 1.0, 2.0)
        with pytest.raises(OSError, match="full"):
            spool.delivered(step, big)
        assert [scores.state for scores in spool.results()] == [StepState.NOT_SCORED] * 2
        monkeypatch.setattr(spool._database, "write", written)
        other = spool.take()
        assert other is not None
        assert other.header.step == 2, "what was not tried yet goes first"
        spool.failed(other, ValueError("refused"))
        while spool.counts()[StepState.SCORED] == 0:
            assert spool.take() is other, "the scored one is written, never scored again"
            spool.failed(other, ValueError("refused"))
        assert len(tried) == 5
        assert spool.results()[0] == big


def test_scores_that_a_full_disk_did_not_take_are_written_at_the_end(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        spool.add(header(1), [b'{"prediction": "a"}\n'])
        step = spool.take()
        assert step is not None
        assert spool.scored(step)
        full(spool)
        big = StepScores(1, "validation", 1, StepState.SCORED, {}, "y" * 50_000, 1.0, 2.0)
        with pytest.raises(OSError, match="full"):
            spool.delivered(step, big)
        sql(spool)("PRAGMA max_page_count=1000000")
    with opened(tmp_path) as spool:
        assert spool.results() == [big]


_FILLED = """
import json, random, sys
from pathlib import Path
from gradewire.integrations.training import spool as spool_module
from gradewire.integrations.training.spool import Spool, SpoolLimits
from gradewire.integrations.training.steps import StepState
from tests.client.integrations.training.test_spool_damage import header, row, scores_of

spool_module._REFUSED_WAIT_S = 0.0
disk, chance = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
filler, taken, scored, full, number = disk / "filler", set(), [], [0, 0], 0

def fill():
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - 4096 * chance.randrange(12)))

for turn in range(20):
    spool = Spool(disk / "spool", SpoolLimits())
    assert not spool.damaged
    left = {step.header.step for step in spool._waiting.values()}
    assert left == taken - set(scored), (left, taken, scored)
    fills = chance.randrange(8)
    for place in range(8):
        if place == fills:
            fill()
        number += 1
        try:
            state, _ = spool.add(header(number), [row(number, each) for each in range(chance.randrange(1, 40))])
            taken.add(number)
        except OSError:
            full[0] += 1
        if chance.random() < 0.5 and left | taken - set(scored):
            step = spool.take()
            rows = spool.read(step)
            assert rows[0] == json.loads(row(step.header.step, 0)), "rows of another step"
            assert spool.scored(step) and step.header.step not in scored, "scored twice"
            scored.append(step.header.step)
            try:
                spool.delivered(step, scores_of(step.header.step))
            except OSError:
                full[1] += 1
        if not spool._waiting.keys() - {each.sequence for each in spool._waiting.values() if each.unwritten}:
            break
    filler.unlink(missing_ok=True)
    spool.close()
spool = Spool(disk / "spool", SpoolLimits())
results = {scores.step: scores for scores in spool.results()}
wrong = results.keys() ^ taken
for step, scores in results.items():
    if not (scores == scores_of(step)) == (step in scored) == (scores.state is StepState.SCORED):
        wrong.add(step)
spool.close()
exported = [json.loads(line)["step"] for line in (disk / "spool/scores.jsonl").read_text().splitlines()]
assert sorted(exported) == sorted(scored)
print(len(taken), len(scored), len(wrong), *full)
"""


_LONG = [pytest.param(seed, marks=pytest.mark.hostile) for seed in range(2, 10)]


@pytest.fixture
def on_small_disk(tmp_path: Path) -> Callable[..., str]:
    """Run a program on a disk of 440 kB; its first argument is the directory. The output is returned."""
    # The mount is in a namespace of its own, and gone with it. Containers often forbid user namespaces to their users.
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=440k none {tmp_path}"
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, mount], check=False, capture_output=True).returncode
    ):
        pytest.skip("this machine has no `unshare`, or forbids mounts in user namespaces")

    def run(program: str, *arguments: str) -> str:
        done = subprocess.run(
            [*command, f'{mount} && exec "$0" "$@"', sys.executable, "-c", program, tmp_path, *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=_ROOT,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("seed", [0, 1, *_LONG])
def test_a_disk_of_440_kb_that_is_filled_20_times_loses_no_step_and_scores_none_twice(
    on_small_disk: Callable[..., str], seed: int, figure: TakeFigure
) -> None:
    taken, scored, wrong, full_at_adding, full_at_scoring = map(int, on_small_disk(_FILLED, str(seed)).split())
    name = f"disk of 440 kB filled 20 times, seed {seed}"
    assert figure(f"{name}: of {taken} steps lost, or with the scores of another one", wrong, bound="== 0").holds
    assert taken > scored > 20
    assert min(full_at_adding, full_at_scoring) > 2


_FULL_AT_OPENING = """
import os, subprocess, sys
from pathlib import Path
from gradewire.integrations.training.spool import Spool, SpoolLimits
from tests.client.integrations.training.test_spool_damage import header, row

disk = Path(sys.argv[1])
filler = disk / "filler"

def fill(free_pages):
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - 4096 * free_pages))

def open_files():
    links = [link for link in list(Path("/proc/self/fd").iterdir()) if link.is_symlink()]
    return [name for name in map(os.readlink, links) if name.startswith(str(disk))]

refused = 0
for pages in range(10):
    fill(pages)
    try:
        Spool(disk / "new", SpoolLimits()).close()
    except OSError:
        refused += 1
        assert not open_files(), open_files()
    filler.unlink()
    spool = Spool(disk / "new", SpoolLimits())
    spool.add(header(1), [row(1, 0)])
    spool.close()
    if pages < 9:
        subprocess.run(["rm", "-r", disk / "new"], check=True)
assert 0 < refused < 10, refused
for pages in range(3):
    fill(pages)
    spool = Spool(disk / "new", SpoolLimits())
    assert [step.header.step for step in spool._waiting.values()] == [1]
    assert len(spool.read(spool.take())) == 1
    spool.close()
    filler.unlink()

database = disk / "new/steps.sqlite"
for options in ("bind", "remount,ro,bind"):
    subprocess.run(["mount", "-o", options, database, database], check=True)
try:
    Spool(disk / "new", SpoolLimits())
except OSError as error:
    assert "cannot be written" in str(error), error
else:
    raise AssertionError("it would drop each step")
"""


def test_on_a_full_disk_what_waits_is_there_and_a_new_spool_that_fails_leaves_nothing_open(
    on_small_disk: Callable[..., str],
) -> None:
    on_small_disk(_FULL_AT_OPENING)
