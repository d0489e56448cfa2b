"""Compare a built judge in Triton with the same judge in a gradewire server: `python -m benchmarks.judges.in_triton`.

Both rate the same rows of EVOUNA with `lave`, through servers and sockets. The program prints the largest difference of
a score and of the labels' total probability, the rows per CPU second of all processes, and Triton's batches. Results
are kept in `--out`, so a run that was interrupted continues, unless the judge has changed. A CPU second hardly depends
on other programs on the machine, in contrast to a second.
"""

import argparse
import asyncio
import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.common.rows import DEFAULT_DATA, Row, items_of, read_rows, sample_rows
from benchmarks.common.servers import GRADEWIRE, started, whole_cpu_s

from gradewire import AsyncClient, MetricScore
from gradewire_models.judges.catalog import default_judge
from gradewire_models.judges.repository import default_judge_repository
from gradewire_triton import ServerOptions, TritonProcess, ensure_environment

METRIC: Final = "lave"
SEED: Final = 20261128
AT_A_TIME: Final = 16
DEADLINE_S: Final = 600.0
COMPARED: Final = ("score", "mass")
BACKENDS: Final = ("embedded", "triton")


@dataclass(frozen=True, slots=True)
class Running:
    """A gradewire server with a judge.

    Attributes:
        pids: The processes at the top of each tree whose CPU seconds count.
        statistics: Triton's address of the judge's statistics; "" without Triton.
    """

    address: str
    pids: tuple[int, ...]
    statistics: str = ""

    def cpu_s(self) -> float:
        """Return the CPU seconds of all processes so far."""
        return sum(map(whole_cpu_s, self.pids))

    def batches(self) -> tuple[int, int]:
        """Return Triton's numbers of questions and of batches; zeros without Triton."""
        if not self.statistics:
            return 0, 0
        with urllib.request.urlopen(self.statistics, timeout=30) as reply:  # noqa: S310 - our own address
            (model,) = json.load(reply)["model_stats"]
        return int(model["inference_count"]), int(model["execution_count"])


@contextmanager
def running(backend: str, judges: Path, judge: str) -> Iterator[Running]:
    """Start a server whose judge runs on `backend`, either "embedded" or "triton"."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory()))
        flags = {"port": "0", "http-port": "0", "disk-directory": "", "judge-backend": backend, "drain-s": "0"}
        pids: tuple[int, ...] = ()
        statistics = ""
        if backend == "triton":
            (directory / "models").mkdir()
            options = ServerOptions(directory / "models", (judge,), judges=judges)
            triton = stack.enter_context(TritonProcess(ensure_environment(report=print), options, directory / "state"))
            flags |= {"judge-url": triton.addresses.grpc, "judge-remote-model": judge, "judge-timeout-s": "300"}
            flags["judge-max-in-flight"] = str(AT_A_TIME)
            pids, statistics = (triton.pid,), f"{triton.addresses.http}/v2/models/{judge}/stats"
        else:
            flags |= {"judge-repository": str(judges), "judge-model": judge}
        command = [GRADEWIRE, "serve", *(text for name, value in flags.items() for text in (f"--{name}", value))]
        server, line = stack.enter_context(started(command))
        yield Running(f"127.0.0.1:{line.rsplit(':', 1)[1].split()[0]}", (server.pid, *pids), statistics)


async def rate(server: Running, rows: list[Row], out: Path, backend: str) -> None:
    """Rate the rows that are not in `out` yet, and append each result with the CPU seconds so far."""
    async with AsyncClient(server.address) as client:
        # The first row opens the judge and computes the prefix.
        (first,) = await client.score([{**rows[0], "prediction": "a warm up"}], METRIC, deadline_s=DEADLINE_S)
        digest = result_of(first.scores[METRIC])["judge"]
        done = {each["id"] for each in results(out, backend, digest)}
        left = [row for row in items_of(rows) if row["id"] not in done]
        print(f"{backend}: {len(done)} rows are done, {len(left)} are left", flush=True)
        began_cpu_s, (began, began_batches) = server.cpu_s(), server.batches()
        slots = asyncio.Semaphore(AT_A_TIME)
        with out.open("a", encoding="utf-8") as lines:

            async def rate_one(row: Row) -> None:
                async with slots:
                    (item,) = await client.score([row], METRIC, deadline_s=DEADLINE_S)
                values = {"id": row["id"], "backend": backend, **result_of(item.scores[METRIC])}
                lines.write(json.dumps(values) + "\n")
                lines.flush()

            await asyncio.gather(*map(rate_one, left))
            ended, ended_batches = server.batches()
            used = {
                "backend": backend,
                "items": len(left),
                "cpu_s": server.cpu_s() - began_cpu_s,
                "questions": ended - began,
                "batches": ended_batches - began_batches,
                "load": os.getloadavg()[0],
            }
            if left:
                lines.write(json.dumps({"used": used}) + "\n")


def result_of(result: MetricScore) -> dict[str, Any]:
    """Return the values to store. They include the judge's digest, because only results of one judge are comparable."""
    return {
        "judge": result.provenance.model_digest if result.provenance else "",
        "score": result.score,
        "mass": getattr(result.parts, "label_mass", None),
        "status": result.status.name,
    }


def results(out: Path, backend: str, digest: str | None = None) -> list[dict[str, Any]]:
    """Return the results of a backend; with `digest`, only those of this judge."""
    if not out.exists():
        return []
    lines = map(json.loads, out.read_text("utf-8").splitlines())
    return [each for each in lines if each.get("backend") == backend and digest in {None, each.get("judge")}]


def _differences(both: list[tuple[dict[str, Any], dict[str, Any]]], name: str) -> list[float]:
    values = [(one.get(name), other.get(name)) for one, other in both]
    return [abs(one - other) for one, other in values if one is not None and other is not None]


def report(out: Path) -> list[str]:
    """Return the lines of the comparison."""
    lines = []
    for line in map(json.loads, out.read_text("utf-8").splitlines()):
        if used := line.get("used"):
            speed = used["items"] / used["cpu_s"]
            batches = f", {used['questions']} questions in {used['batches']} batches" if used["batches"] else ""
            lines.append(f"{used['backend']}: {used['items']} rows, {speed:.3f} per CPU second{batches}")
    here, there = ({(each["id"], each.get("judge")): each for each in results(out, name)} for name in BACKENDS)
    both = [(here[key], there[key]) for key in here.keys() & there.keys()]
    compared = [len(_differences(both, name)) for name in COMPARED]
    if any(compared):
        worst = {name: max(_differences(both, name), default=0.0) for name in COMPARED}
        only_one = sum((one["score"] is None) != (other["score"] is None) for one, other in both)
        lines.append(
            f"{compared[0]} rows rated by both; largest difference {worst['score']:.2g}, of the labels' total "
            f"probability {worst['mass']:.2g} ({compared[1]} rows); rated by only one: {only_one}"
        )
    other = len(here.keys() ^ there.keys())
    if other:
        lines.append(f"{other} rows rated on one backend alone, or by another judge, are not compared")
    return lines


def main() -> None:
    """Rate the rows on the chosen backends, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--judges", type=Path, default=default_judge_repository())
    parser.add_argument("--judge", default=default_judge().name)
    parser.add_argument("--backend", choices=BACKENDS, action="append", help="only this backend; by default both")
    parser.add_argument("--out", type=Path, default=Path(".data/judge_in_triton.jsonl"))
    arguments = parser.parse_args()
    rows = sample_rows(read_rows(arguments.data), arguments.rows, SEED)
    for backend in arguments.backend or BACKENDS:
        with running(backend, arguments.judges, arguments.judge) as server:
            asyncio.run(rate(server, rows, arguments.out, backend))
    print("\n".join(report(arguments.out)))


if __name__ == "__main__":
    main()
