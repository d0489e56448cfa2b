"""All attacks on the HTTP gateway at once: a caller with a token goes on scoring, and the gateway stays small."""

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest
from tests.support.figures import TakeFigure
from tests.support.servers.gateway import JSON, SCORE
from tests.support.servers.gateway_process import GatewayProcess
from tests.support.servers.server_process import ServerProcess

_ROOT: Final = Path(__file__).resolve().parents[2]
_EVERY_S: Final = 0.05
_MIB: Final = 1 << 20
_SHARE_MIB: Final = 409
"""The gateway's share of a `memory_limit` of 1 GiB, and bounds as of such a server."""
_BOUNDS: Final = {"max_body_bytes": 14 * _MIB, "max_bytes_in_flight": 82 * _MIB}
_LARGE: Final = json.dumps(
    {"items": [{"references": ["a"], "prediction": f"a {n}" * 20} for n in range(600)], "metrics": [{"exactMatch": {}}]}
).encode()
"""A body of 100 kB, which the gateway's process for large JSON reads."""
_LARGE_CALLS: Final = 10


@contextmanager
def _attacked(port: int) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.hostile.gateway_attacks", str(port), "attacker"]
    process = subprocess.Popen(command, cwd=_ROOT)
    try:
        yield
        assert process.poll() is None, "the attackers have given up"
    finally:
        process.kill()
        process.wait()


def _scored_s(client: httpx2.Client, for_s: float, name: str) -> tuple[list[float], int]:
    """Seconds that calls of a caller take, each of another text, and how many of them were not scored."""
    taken_s, refused = [], 0
    ends_s = time.monotonic() + for_s
    while time.monotonic() < ends_s:
        item = {"references": ["a cat"], "prediction": f"the cat of the {name} {len(taken_s)}"}
        begun_s = time.perf_counter()
        reply = client.post(SCORE, content=json.dumps({"items": [item], "metrics": [{"smile": {}}]}), headers=JSON)
        taken_s.append(time.perf_counter() - begun_s)
        refused += reply.status_code != 200
        time.sleep(_EVERY_S)
    return taken_s, refused


def _large_ms(client: httpx2.Client) -> tuple[float, int]:
    """Longest of some calls with a large body, in milliseconds, and how many of them were not scored."""
    taken_s, refused = [], 0
    for _ in range(_LARGE_CALLS):
        begun_s = time.perf_counter()
        refused += client.post(SCORE, content=_LARGE, headers=JSON).status_code != 200
        taken_s.append(time.perf_counter() - begun_s)
    return max(taken_s) * 1e3, refused


def _p99_ms(taken_s: list[float]) -> float:
    return sorted(taken_s)[math.ceil(len(taken_s) * 0.99) - 1] * 1e3


@pytest.mark.parametrize(
    ("quiet_s", "attacked_s"),
    [pytest.param(1, 3, id="short"), pytest.param(20, 90, id="long", marks=pytest.mark.hostile)],
)
@pytest.mark.timeout(300)
def test_all_attacks_at_once_keep_no_caller_out(
    tmp_path: Path, minilm: Path, figure: TakeFigure, quiet_s: float, attacked_s: float
) -> None:
    settings = {"auth_tokens": "attacker,caller", "model_repository": minilm, "disk_directory": ""}
    with (
        ServerProcess(tmp_path, **settings) as server,
        GatewayProcess(server.address, rewards={"metric": "exact_match"}, asks_tokens=True, **_BOUNDS) as gateway,
        httpx2.Client(
            base_url=f"http://127.0.0.1:{gateway.port}", timeout=60, headers={"authorization": "Bearer caller"}
        ) as client,
    ):
        _scored_s(client, 1, "start")  # from now on its token is known
        gateway.strain()
        quiet, refused = _scored_s(client, quiet_s, "quiet")
        large_ms, large_refused = _large_ms(client)
        assert refused == large_refused == 0
        late_ms = gateway.strain().late_s * 1e3
        what = f"all attacks for {attacked_s:g} s"
        figure(f"{what}: the event loop was late by at most, before", round(late_ms), "ms")
        with _attacked(gateway.port):
            _scored_s(client, 2, "first attacks")  # until all have begun
            attacked, refused = _scored_s(client, attacked_s, "attacks")
            strain = gateway.strain()
            attacked_large_ms, large_refused = _large_ms(client)
        for when, taken_s in {"before": quiet, "attacked": attacked}.items():
            figure(f"{what}: median of a caller's calls, {when}", round(statistics.median(taken_s) * 1e3, 1), "ms")
            figure(f"{what}: p99 of a caller's calls, {when}", round(_p99_ms(taken_s), 1), "ms")
        figure(f"{what}: p99, of that before", round(_p99_ms(attacked) / _p99_ms(quiet), 2), bound="<= 3")
        figure(f"{what}: the event loop was late by at most", round(strain.late_s * 1e3), "ms", bound="<= 50")
        figure(f"{what}: the longest of {_LARGE_CALLS} calls of 100 kB, before", round(large_ms), "ms")
        figure(f"{what}: the longest of {_LARGE_CALLS} calls of 100 kB, attacked", round(attacked_large_ms), "ms")
        assert large_refused == 0
        peak_mib = strain.peak_bytes // _MIB
        assert figure(f"{what}: peak of the gateway", peak_mib, "MiB", bound=f"<= {_SHARE_MIB}").holds
        assert figure(f"{what}: calls not scored, of {len(attacked)}", refused, bound="== 0").holds
        after, refused = _scored_s(client, 1, "end")
        assert refused == 0
        figure(f"{what}: median of a caller's calls, afterwards", round(statistics.median(after) * 1e3, 1), "ms")
