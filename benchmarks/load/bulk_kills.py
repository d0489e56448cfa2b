"""Compare a bulk run that is killed twice and resumed with a run of `gradewire score` over the same rows.

    .venv-ray/bin/python -m benchmarks.load.bulk_kills --data .data/evouna_dev.jsonl --json kills.json

The program kills (SIGKILL) the driver after a quarter of the parts, resumes the run, and kills an actor after half of
the parts. The program prints whether every row has exactly one result, the largest difference between scores, and
memory over time.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common.rows import DEFAULT_DATA
from benchmarks.load.bulk import GRADEWIRE, METRICS, RAY, Watched, run, wait_until_gone, watched, write_rows

TOLERANCE = 2e-4
_POLL_S = 0.2


def parts_in(folder: Path) -> int:
    """Return the number of finished parts."""
    return len(list(folder.glob("part-*.done.jsonl")))


def kill_when(found: Watched, folder: Path, parts: int, *, actor: bool) -> list[int]:
    """Kill the driver or an actor after `parts` parts; return the IDs of all processes except Ray's."""
    while parts_in(folder) < parts:
        if found.process.poll() is not None:
            raise SystemExit("the run ended before it was killed. Use more rows: --rows")
        time.sleep(_POLL_S)
    found.sample()
    there = [pid for pid, kind in found.kinds.items() if kind != RAY]
    os.kill(found.actors[0] if actor else found.process.pid, signal.SIGKILL)
    return there


def compared(straight: Path, resumed: Path) -> dict[str, Any]:
    """Return the number of results, and the largest difference between scores."""
    expected, found = ([json.loads(line) for line in path.open(encoding="utf-8")] for path in (straight, resumed))
    difference, verdicts = 0.0, 0
    for one, other in zip(expected, found, strict=False):
        for label, score in one["scores"].items():
            difference = max(difference, abs(score["score"] - other["scores"][label]["score"]))
            verdicts += score.get("correct") != other["scores"][label].get("correct")
    return {
        "rows": len(expected),
        "results": len(found),
        "distinct_ids": len({row["id"] for row in found}),
        "same_order": [row["id"] for row in expected] == [row["id"] for row in found],
        "largest_difference": difference,
        "verdicts_that_differ": verdicts,
    }


def memory_over_time(found: Watched) -> list[int]:
    """Return the mean resident MiB of driver, reader and actors in each quarter of the run."""
    samples = [rss / (1 << 20) for _, rss in found.rss_bytes]
    begin = len(samples) // 5
    quarter = max(1, (len(samples) - begin) // 4)
    return [round(sum(samples[at : at + quarter]) / quarter) for at in range(begin, begin + 4 * quarter, quarter)]


def main() -> None:
    """Run the test and print the results; exit with 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--part-rows", type=int, default=512)
    parser.add_argument("--metrics", default=METRICS)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="gradewire-bulk-kills-") as name:
        folder = Path(name)
        rows, straight, output = folder / "rows.jsonl", folder / "straight.jsonl", folder / "output.jsonl"
        write_rows(rows, given.data, given.rows)
        parts = -(-given.rows // given.part_rows)
        options = ("--metrics", given.metrics, "--disk-directory")
        sys.stderr.write(f"uninterrupted run over {given.rows} rows …\n")
        plain = run((*GRADEWIRE, "score", rows, "--out", straight, *options, folder / "cache-a"), folder / "a.log")
        bulk: list[str | Path] = [*GRADEWIRE, "bulk", rows, output, *options, folder / "cache-b"]
        # Use two workers, so that one continues while the other is dead.
        bulk += ["--part-rows", str(given.part_rows), "--processes", "2", "--threads", "1"]
        sys.stderr.write("bulk run; killing the driver after a quarter of the parts …\n")
        with watched(bulk, folder / "b.log") as first:
            there = kill_when(first, output.with_name("output.jsonl.parts"), parts // 4, actor=False)
        gone_s = wait_until_gone(there)
        left = parts_in(output.with_name("output.jsonl.parts"))
        sys.stderr.write(f"resumed with {left} of {parts} parts; killing an actor after half of the parts …\n")
        with watched((*bulk, "--resume"), folder / "c.log") as second:
            kill_when(second, output.with_name("output.jsonl.parts"), max(parts // 2, left + 1), actor=True)
        sys.stderr.write((folder / "c.log").read_text(errors="replace")[-3000:])
        if second.process.returncode:
            raise SystemExit(f"the resumed run ended with {second.process.returncode}")
        result = {
            **compared(straight, output),
            "parts": parts,
            "parts_after_the_first_kill": left,
            "seconds_until_its_workers_were_gone": round(gone_s, 1),
            "straight_wall_s": round(plain.wall_s, 1),
            "bulk_wall_s": [round(each.wall_s, 1) for each in (first, second)],
            "cpu_s": {"straight": plain.cpu_by_kind(), "bulk": [each.cpu_by_kind() for each in (first, second)]},
            "rss_mib_by_quarter_of_the_time": {
                "straight": memory_over_time(plain),
                "resumed": memory_over_time(second),
            },
            "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        }
    text = json.dumps(result, indent=2)
    sys.stdout.write(text + "\n")
    if given.json is not None:
        given.json.write_text(text + "\n", encoding="utf-8")
    whole = result["results"] == result["rows"] == result["distinct_ids"] and result["same_order"]
    sys.exit(0 if whole and result["largest_difference"] <= TOLERANCE else 1)


if __name__ == "__main__":
    main()
