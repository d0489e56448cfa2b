"""Compare a built judge in Triton with the same judge in a gradewire server: `python -m benchmarks.judges.in_triton`.

Both rate the same rows of EVOUNA with `lave`, through servers and sockets. The program prints the largest difference of
a score, the rows per CPU second of all processes, and Triton's batches. Results are kept in `--out`, so a run that was
interrupted continues. A CPU second hardly depends on other programs on the machine, in contrast to a second.
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

from gradewire import AsyncClient
from gradewire_models.judges.catalog import default_judge
from gradewire_models.judges.repository import default_judge_repository
from gradewire_triton import ServerOptions, TritonProcess, ensure_environment

METRIC: Final = "lave"
SEED: Final = 20261128
AT_A_TIME: Final = 16
DEADLINE_S: Final = 600.0
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
    done = {each["id"] for each in results(out, backend)}
    left = [row for row in items_of(rows) if row["id"] not in done]
    print(f"{backend}: {len(done)} rows are done, {len(left)} are left", flush=True)
    async with AsyncClient(server.address) as client:
        # The first row opens the judge and computes the prefix.
        await client.score([{**rows[0], "prediction": "a warm up"}], METRIC, deadline_s=DEADLINE_S)
        began_cpu_s, (began, began_batches) = server.cpu_s(), server.batches()
        slots = asyncio.Semaphore(AT_A_TIME)
        with out.open("a", encoding="utf-8") as lines:

            async def rate_one(row: Row) -> None:
                async with slots:
                    (item,) = await client.score([row], METRIC, deadline_s=DEADLINE_S)
                result = item.scores[METRIC]
                values = {"id": row["id"], "backend": backend, "score": result.score, "status": result.status.name}
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


def results(out: Path, backend: str) -> list[dict[str, Any]]:
    """Return the results of a backend."""
    if not out.exists():
        return []
    lines = map(json.loads, out.read_text("utf-8").splitlines())
    return [each for each in lines if each.get("backend") == backend]


def report(out: Path) -> list[str]:
    """Return the lines of the comparison."""
    lines = []
    for line in map(json.loads, out.read_text("utf-8").splitlines()):
        if used := line.get("used"):
            speed = used["items"] / used["cpu_s"]
            batches = f", {used['questions']} questions in {used['batches']} batches" if used["batches"] else ""
            lines.append(f"{used['backend']}: {used['items']} rows, {speed:.3f} per CPU second{batches}")
    here, there = ({each["id"]: each["score"] for each in results(out, name)} for name in BACKENDS)
    both = [(here[name], there[name]) for name in here.keys() & there.keys()]
    scored = [(one, other) for one, other in both if one is not None and other is not None]
    if scored:
        worst = max(abs(one - other) for one, other in scored)
        only_one = sum((one is None) != (other is None) for one, other in both)
        lines.append(f"{len(scored)} rows rated by both; largest difference {worst:.2g}; rated by only one: {only_one}")
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
