"""`gradewire bench load` against an independent tool, k9-load: same server, same request, same constant rate.

Rounds of both alternate, so that a change of the machine's load affects both. k9-load counts from when it sends, ours
from when a call was due; where the client keeps up these are the same. It is no dependency:
`python -m venv k9 && k9/bin/pip install k9-load==0.1.0`, then `--k9 k9/bin/k9`.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.common.servers import Server, start_engine
from benchmarks.load.commands import bench_load
from google.protobuf.json_format import MessageToDict, ParseDict

from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire_proto.v1 import scoring_pb2, types_pb2

PROTO: Final = Path(__file__).resolve().parents[2] / "proto"
ROW: Final = {"question": "what is it?", "references": ["a red bicycle"], "prediction": "a red bicycle by the wall"}
PERCENTILES: Final = {"p50": "med", "p90": "p(90)", "p95": "p(95)", "p99": "p(99)"}
"""Names in our JSON and in that of k9-load."""
Round = Callable[[Server, argparse.Namespace, Path], dict[str, float]]


def ours(server: Server, options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Percentiles of one round, ms."""
    rows, out = folder / "rows.jsonl", folder / "ours.json"
    rows.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    bench_load(
        server,
        *(rows, "--metrics", options.metrics, "--rate", options.rate, "--duration", options.duration_s),
        *("--arrivals", "constant", "--slo-s", 5, "--quiet", "--json", out),
    )
    step = json.loads(out.read_text(encoding="utf-8"))["steps"][0]
    return {name: 1e3 * step["latency_s"][name] for name in PERCENTILES} | {"calls": step["scored_calls"]}


def theirs(server: Server, options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """The same of k9-load."""
    plan, out = folder / "plan.json", folder / "theirs.json"
    plan.write_text(json.dumps(k9_plan(server, options)), encoding="utf-8")
    command = [options.k9, "run", str(plan), "--summary-export", str(out)]
    command += ["--summary-trend-stats", "med,p(90),p(95),p(99)"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    metrics = json.loads(out.read_text(encoding="utf-8"))["metrics"]
    duration = metrics["grpc_req_duration"]
    return {name: duration[key] for name, key in PERCENTILES.items()} | {"calls": metrics["iterations"]["count"]}


def k9_plan(server: Server, options: argparse.Namespace) -> dict[str, Any]:
    """A declarative plan with the same call at the same rate."""
    request = scoring_pb2.ScoreRequest(
        items=[ParseDict(ROW, types_pb2.Item())],
        metrics=choose_metrics(options.metrics, MetricDefaults()).specs,
        omit_diagnostics=True,
    )
    call = {
        "target": server.address,
        "method": "gradewire.v1.Scoring/Score",
        "message": MessageToDict(request),
        "plaintext": True,
        "protos": [str(PROTO / "gradewire/v1/scoring.proto")],
        "importPaths": [str(PROTO)],
        "timeout": "5s",
    }
    scenario = {
        "executor": "constant-arrival-rate",
        "rate": round(options.rate),
        "timeUnit": "1s",
        "duration": f"{options.duration_s:g}s",
        "preAllocatedVUs": options.connections,
        "maxVUs": options.connections,
    }
    return {"options": {"scenarios": {"same": scenario}}, "flows": {"default": [{"grpc": call}]}}


def main() -> None:
    """Alternates both, and prints the median of the rounds with their range."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k9", default="k9", help="the command k9")
    parser.add_argument("--metrics", default="smile:fast")
    parser.add_argument("--rate", type=float, default=100, help="calls per second")
    parser.add_argument("--duration-s", type=float, default=10, help="of a round")
    parser.add_argument("--rounds", type=int, default=5, help="of each")
    parser.add_argument("--connections", type=int, default=32, help="of k9-load, which has one for each virtual user")
    options = parser.parse_args()
    tools: dict[str, Round] = {"k9-load": theirs, "gradewire bench load": ours}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in tools}
    with tempfile.TemporaryDirectory() as folder, start_engine("embedded", {"log-request-share": "0"}) as server:
        for number in range(options.rounds + 1):
            for name, measure in tools.items():
                measured = measure(server, options, Path(folder))
                if number:  # the first of each warms up
                    found[name].append(measured)
    print(f"| {options.rate:g} calls/s | calls a round | {' | '.join(f'{name} ms' for name in PERCENTILES)} |")
    print("|---" * (2 + len(PERCENTILES)) + "|")
    for name, rounds in found.items():
        cells = [name, f"{statistics.median(each['calls'] for each in rounds):.0f}"]
        for percentile in PERCENTILES:
            values = [each[percentile] for each in rounds]
            cells.append(f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")
        print(f"| {' | '.join(cells)} |")
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
