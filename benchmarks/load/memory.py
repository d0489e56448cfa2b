"""Measure a server's resident memory when its in-process cache is small and all texts are new.

The program sends TEXTS predictions to `Score` (sbert, one reference), and prints the growth over the second half. Texts
vary in length because memory allocators grow with the variety of shapes.
"""

import argparse
import os
import random
import sys
import tempfile
import time

import psutil
from benchmarks.common.servers import start_engine

from gradewire import Client

WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "haven",
    "island",
    "juniper",
    "kelp",
    "lagoon",
    "marsh",
    "north",
    "orchid",
    "pine",
    "quartz",
    "river",
]


def texts(count: int, seed: int) -> list[str]:
    """Return texts of 1 to 12 words, each made unique by a running number."""
    source = random.Random(seed)  # noqa: S311 - no secret
    return [" ".join([*source.choices(WORDS, k=source.randint(0, 11)), str(number)]) for number in range(count)]


def main() -> None:
    """Start a server, send texts, and print its resident size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=200_000)
    parser.add_argument("--memory-mib", type=int, default=64, help="size of the in-process cache")
    parser.add_argument(
        "--disk", action="store_true", help="use the cache's second level on disk (its map counts as resident)"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        options = {
            "memory-max-bytes": str(arguments.memory_mib << 20),
            "disk-directory": cache if arguments.disk else "",
        }
        with start_engine("embedded", options) as server:
            sizes = feed(server.address, server.process, arguments.texts)
    half, end = sizes[len(sizes) // 2 - 1], sizes[-1]
    print(f"after {arguments.texts // 2:,}: {half / 2**20:.1f} MiB; after {arguments.texts:,}: {end / 2**20:.1f} MiB")
    print(
        f"growth over the second half: {(end - half) / half:+.2%} (goal: < 2 %); load average {os.getloadavg()[0]:.2f}"
    )


def feed(address: str, process: psutil.Process, count: int) -> list[int]:
    """Send all texts; return the server's resident bytes after each twentieth of the texts."""
    sizes, started, made = [], time.monotonic(), texts(count, seed=0)
    step = max(1, count // 20)
    with Client(address, deadline_s=600) as client:
        for start in range(0, count, step):
            rows = [
                {"id": str(start + offset), "question": "", "references": ["a reference"], "prediction": text}
                for offset, text in enumerate(made[start : start + step])
            ]
            report = client.score(rows, "sbert")
            failed = [item for item in report if item.scores["sbert"].score is None]
            if failed:
                raise RuntimeError(f"{len(failed)} texts were not scored: {failed[0].scores['sbert'].message}")
            sizes.append(process.memory_info().rss)
            done, seconds = start + len(rows), time.monotonic() - started
            sys.stderr.write(f"{done:>9,} texts  {sizes[-1] / 2**20:8.1f} MiB  {done / seconds:6.0f} texts/s\n")
    return sizes


if __name__ == "__main__":
    main()
