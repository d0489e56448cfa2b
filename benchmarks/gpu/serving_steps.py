"""Steps through gRPC: items and rows a second by server processes and clients, and the latency of one new answer."""

import statistics
from collections.abc import Iterator
from typing import Final

from benchmarks.gpu.calling import ITEMS_A_CALL, call_for, latencies_s, score_twice
from benchmarks.gpu.machine import Bench
from benchmarks.gpu.step_processes import Row

SBERT_LOADS: Final = ((1, (1, 8, 32)), (2, (32,)), (4, (32,)), (8, (64,)))
"""Numbers of server processes, each with the numbers of concurrent calls; two encoder workers always feed a GPU."""
SMILE_LOADS: Final = ((1, 1), (1, 4), (4, 4), (8, 8))
"""Pairs of server processes and client processes."""
SMILE_ROWS: Final = 2_000
SINGLE_ANSWERS: Final = 400
CPU_CALLS: Final = 8
_NOT_COUNTED: Final = 20
"""First answers of a server, which record CUDA graphs."""


def sbert(bench: Bench) -> Iterator[Row]:
    """Measure how many new items per second servers on the GPU score by `sbert`."""
    for processes, loads in ((1, (1, 2)),) if bench.rehearsal else SBERT_LOADS:
        with bench.server(processes=processes) as address:
            for callers in loads:
                yield {"server processes": processes, **_called(bench, address, callers)}


def smile(bench: Bench) -> Iterator[Row]:
    """Measure how many rows per second new servers on the GPU score by `smile`, cold and then warm."""
    source, rows = bench.rows(SMILE_ROWS)
    for processes, clients in ((1, 2),) if bench.rehearsal else SMILE_LOADS:
        with bench.server(processes=processes) as address:
            found = score_twice(address, rows, "smile", clients=clients)
        yield {"server processes": processes, "rows": f"{len(rows)} {source}", **found}


def one_answer(bench: Bench) -> Iterator[Row]:
    """Measure the latency of new answers, one at a time."""
    bench.need_gpu()
    source, rows = bench.rows(_NOT_COUNTED + SINGLE_ANSWERS)
    with bench.server() as address:
        taken_s = latencies_s(address, rows, "smile")
    counted_s = taken_s[_NOT_COUNTED:] or taken_s
    yield {
        "answers": f"{len(counted_s)} {source}",
        "p50, ms": round(1e3 * statistics.median(counted_s), 2),
        "p99, ms": round(1e3 * sorted(counted_s)[int(0.99 * len(counted_s))], 2),
        "largest, ms": round(1e3 * max(counted_s), 2),
    }


def cpu_sbert(bench: Bench) -> Iterator[Row]:
    """Measure how many new items per second a server on the CPU scores by `sbert`, by workers."""
    for workers in sorted({1, bench.machine.cores}):
        with bench.cpu_server(workers=workers) as address:
            yield {"workers": workers, **_called(bench, address, 2 if bench.rehearsal else CPU_CALLS)}


def cpu_smile(bench: Bench) -> Iterator[Row]:
    """Measure how many rows per second a new server on the CPU scores by `smile`, cold and then warm."""
    source, rows = bench.rows(SMILE_ROWS)
    with bench.cpu_server() as address:
        yield {"rows": f"{len(rows)} {source}", **score_twice(address, rows, "smile", clients=1)}


def _called(bench: Bench, address: str, callers: int) -> Row:
    items = 4 if bench.rehearsal else ITEMS_A_CALL
    clients = bench.clients(callers)
    # Another number of calls sends other answers, because the same server remembers the first ones.
    return call_for(address, bench.seconds, callers=callers, clients=clients, items=items, seed=f"{callers} calls")
