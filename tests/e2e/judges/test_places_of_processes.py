"""Two server processes ask one judge's server: together they keep its limit, and each gets its share of it."""

import asyncio
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from benchmarks.judges.instant_server import MODELS, completion
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.several_processes import channels_by_process, wait_until

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

pytestmark = pytest.mark.hostile

_LIMIT = 4
_PER_PROCESS = 60
_LAVE = types_pb2.MetricSpec(lave=types_pb2.LaveParameters(binary=types_pb2.BINARY_QUESTIONS_JUDGE))


class CountingJudge:
    """Answer after 20 ms, and count by name whose items are under way.

    Attributes:
        most: The highest number of requests at a time.
        shares: For each request, how many of either name were under way when it had begun.
    """

    def __init__(self) -> None:
        self.most = 0
        self.under_way: Counter[str] = Counter()
        self.shares: list[tuple[int, int]] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._started(), self._loop).result(30)

    async def _started(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
                body = await reader.readexactly(int(length or 0))
                if not body:
                    writer.write(MODELS)
                    continue
                name = "alpha" if b"alpha" in body else "omega" if b"omega" in body else "none"
                self.under_way[name] += 1
                self.most = max(self.most, self.under_way.total())
                self.shares.append((self.under_way["alpha"], self.under_way["omega"]))
                await asyncio.sleep(0.02)
                self.under_way[name] -= 1
                writer.write(completion())
                await writer.drain()
        writer.close()

    def close(self) -> None:
        async def stop() -> None:
            self._server.close()

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)


@pytest.fixture
def judge() -> Iterator[CountingJudge]:
    made = CountingJudge()
    yield made
    made.close()


def _judged(channel: grpc.Channel, name: str) -> int:
    items = [
        types_pb2.Item(question=f"Which letter is number {n}?", references=[f"letter {n}"], prediction=f"{name} {n}")
        for n in range(_PER_PROCESS)
    ]
    request = scoring_pb2.ScoreRequest(items=items, metrics=[_LAVE])
    answer = scoring_pb2_grpc.ScoringStub(channel).Score(request, timeout=90)
    return [each.results[0].status for each in answer.items].count(types_pb2.STATUS_OK)


def test_processes_share_the_places_of_a_judges_server(tmp_path: Path, minilm: Path, judge: CountingJudge) -> None:
    options = {"judge_backend": "openai", "judge_url": judge.url, "judge_remote_model": "judge"}
    limit = {"judge_max_in_flight": _LIMIT, "processes": 2, "drain_s": 0}
    with (
        ServerProcess(tmp_path, model_repository=minilm, **options, **limit) as server,
        channels_by_process(server.address) as channels,
        ThreadPoolExecutor(2) as pool,
    ):
        one, other = channels.values()
        assert _judged(one, "alpha warm") == _judged(other, "omega warm") == _PER_PROCESS
        assert max(alpha for alpha, _ in judge.shares) == _LIMIT  # one that is alone has all places
        judge.shares.clear()
        counts = list(pool.map(_judged, (one, other), ("alpha", "omega")))
        assert counts == [_PER_PROCESS] * 2
        assert judge.most == _LIMIT
        shared = [pair for pair in judge.shares if pair[0] and pair[1]]
        alphas, omegas = (sum(each) for each in zip(*shared, strict=True))
        assert 3 / 4 < alphas / omegas < 4 / 3, Counter(judge.shares)
        wait_until(lambda: judge.under_way.total() == 0)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
