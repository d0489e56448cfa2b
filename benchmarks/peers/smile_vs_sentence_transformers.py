"""Compare the speed of SMILE in gradewire and in a script with sentence-transformers, in one run.

All programs use the same rows, encoder and threads, each in its own process, and get blocks of rows in turn. Run `make
bench-peers`, which installs the other programs' environment.
"""

import argparse
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.common.rows import DEFAULT_DATA, WARM_UP, Row, read_rows, sample_rows

KINDS = ("torch", "onnx", "bare", "v1", "fast", "fast-prepared")


class Worker:
    """A process that runs `smile_workers`."""

    def __init__(self, kind: str, checkpoint: Path, threads: int) -> None:
        command = [sys.executable, "-m", "benchmarks.peers.smile_workers", kind]
        command += ["--checkpoint", str(checkpoint), "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.total: dict[str, float] = {}
        self.scores: list[float] = []
        self.run([WARM_UP], count=False)

    def run(self, rows: list[Row], *, count: bool = True) -> None:
        """Send one block, and add the reply to the totals."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(rows) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if count:
            self.scores += answer.pop("scores", [])
            for name, value in answer.items():
                if isinstance(value, int | float):
                    self.total[name] = self.total.get(name, 0) + value

    def stop(self) -> None:
        """Stop the process by closing its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)


def main() -> None:
    """Run all workers over the sampled rows and print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--checkpoint", type=Path, required=True, help="the encoder as a Hugging Face folder")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    rows = sample_rows(read_rows(arguments.data), arguments.rows, arguments.seed)
    if find_spec("sentence_transformers") is None:
        parser.error("sentence-transformers is not installed. Run: make bench-peers")
    size = -(-len(rows) // arguments.blocks)
    load_before = os.getloadavg()
    workers = {kind: Worker(kind, arguments.checkpoint, arguments.threads) for kind in KINDS}
    for number, start in enumerate(range(0, len(rows), size)):
        order = KINDS if number % 2 == 0 else tuple(reversed(KINDS))
        for kind in order:
            workers[kind].run(rows[start : start + size])
        sys.stderr.write(f"block {number + 1} of {arguments.blocks}\n")
    for worker in workers.values():
        worker.stop()
    report(workers, len(rows), load_before)


def report(workers: dict[str, Worker], rows: int, load_before: tuple[float, float, float]) -> None:
    """Print the table, the promised ratios, and the largest difference between the scores."""
    seconds = {kind: worker.total["seconds"] for kind, worker in workers.items()}
    print(f"{rows} rows; load average before {load_before[0]:.2f}, after {os.getloadavg()[0]:.2f}\n")
    print("| way | seconds | rows/s | texts embedded | tokens | encoder calls |\n|---|---|---|---|---|---|")
    for kind, worker in workers.items():
        cells = [f"{worker.total[name]:,.0f}" if name in worker.total else "-" for name in ("texts", "tokens", "calls")]
        print(f"| {kind} | {seconds[kind]:.2f} | {rows / seconds[kind]:.1f} | {' | '.join(cells)} |")
    warm = {kind: worker.total["warm_seconds"] for kind, worker in workers.items() if "warm_seconds" in worker.total}
    for kind, value in warm.items():
        print(f"| {kind}, warm | {value:.3f} | {rows / value:.0f} | {workers[kind].total['warm_texts']:.0f} | - | - |")
    print("\n| ratio | value | goal |\n|---|---|---|")
    for name, value, goal in (
        ("v1 cold against torch", seconds["torch"] / seconds["v1"], ">= 4"),
        ("v1 cold against ONNX backend", seconds["onnx"] / seconds["v1"], ">= 2.7"),
        ("fast cold against torch", seconds["torch"] / seconds["fast"], ">= 7"),
        ("fast, references prepared, against torch", seconds["torch"] / seconds["fast-prepared"], ">= 12"),
        ("v1 warm against torch", seconds["torch"] / warm["v1"], ">= 100"),
        ("fast warm against torch", seconds["torch"] / warm["fast"], ">= 100"),
        ("v1 cold over bare session.run", seconds["v1"] / seconds["bare"], "<= 1.25"),
    ):
        print(f"| {name} | {value:.2f} | {goal} |")
    gap = max(abs(a - b) for a, b in zip(workers["torch"].scores, workers["v1"].scores, strict=True))
    print(f"\nlargest score difference, v1 against torch: {gap:.1e}")


if __name__ == "__main__":
    main()
