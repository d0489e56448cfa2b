"""Measure how fast gradewire rates with a judge on another server, and what CPU time an item costs.

A scripted server (`instant_server`) answers at once or after 5 ms. Plain clients, which only send bodies and parse
replies, show the rate without grading. Then the same server judges new items of gradewire servers with one and
more processes, with a new store on disk. CPU time per item is that of all threads of the server processes, and hardly
depends on other work on the machine. Rates need a quiet machine with two free cores.
"""

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import grpc
import httpx2
import psutil
from benchmarks.common.servers import Server, start_engine, started, whole_cpu_s

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.judges.connections.http1 import Http1Connections

ITEMS_PER_CALL: Final = 16
METHOD: Final = "/gradewire.v1.Scoring/Score"
_WARM_UP_S: Final = 2.0
_MIB: Final = 1 << 20
_JSON: Final = {"content-type": "application/json"}
Ask: TypeAlias = Callable[[bytes], Awaitable[bytes]]
_HEADER: Final = (
    "| answer after | in flight | who | items/s | server CPU, ms an item | client CPU, ms an item | memory, MiB |\n"
    "|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Rate:
    """The results of a run.

    Attributes:
        server_ms: CPU milliseconds of the gradewire processes per item; 0 for a plain client.
        client_ms: CPU milliseconds of the sender per item.
        memory_bytes: The processes' resident memory, before and after.
    """

    items_per_s: float
    server_ms: float
    client_ms: float
    memory_bytes: tuple[int, int] = (0, 0)


def requests(items_per_call: int, mark: str) -> Iterator[bytes]:
    """Yield requests whose items no earlier request had."""
    metric = types_pb2.MetricSpec(lave=types_pb2.LaveParameters(binary=types_pb2.BINARY_QUESTIONS_JUDGE))
    for call in itertools.count():
        items = [
            types_pb2.Item(
                question=f"Which river flows through the capital of country {call} in picture {mark}-{row}?",
                references=["the Vltava", f"Vltava river, {call} km north"],
                prediction=f"It should be the Vltava, as bridge {mark}-{call}-{row} is in Prague.",
            )
            for row in range(items_per_call)
        ]
        yield scoring_pb2.ScoreRequest(items=items, metrics=[metric]).SerializeToString()


class Sender:
    """A client that keeps calls open with twice as many items as may be in flight, and counts the judged items."""

    def __init__(self, address: str, mark: str, *, in_flight: int, channels: int = 4) -> None:
        self._calls = max(2, 2 * in_flight // ITEMS_PER_CALL)
        self._requests = requests(ITEMS_PER_CALL, mark)
        # Separate connections, which the system spreads over the server's processes.
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1))
        self._channels = [grpc.insecure_channel(address, options) for _ in range(min(channels, self._calls))]
        self._lock = threading.Lock()
        self._ended = threading.Semaphore(0)
        self._until_s = 0.0
        self._open: set[Any] = set()
        self.items = 0
        self.failed = ""

    def run(self, duration_s: float) -> None:
        """Send for this time, and wait for the last answers.

        Raises:
            RuntimeError: An item was not judged.
        """
        self._until_s = time.monotonic() + duration_s
        for call in range(self._calls):
            self._send(self._channels[call % len(self._channels)])
        for _ in range(self._calls):
            self._ended.acquire()
        if self.failed:
            raise RuntimeError(self.failed)

    def close(self) -> None:
        """Close the connections."""
        for channel in self._channels:
            channel.close()

    def _send(self, channel: grpc.Channel) -> None:
        with self._lock:
            message = next(self._requests)
        ask: Any = channel.unary_unary(METHOD, response_deserializer=scoring_pb2.ScoreResponse.FromString)
        call = ask.future(message, timeout=120)
        self._open.add(call)  # a call that nobody holds is cancelled
        call.add_done_callback(lambda done: self._answered(done, channel))

    def _answered(self, done: Any, channel: grpc.Channel) -> None:
        self._open.discard(done)
        try:
            statuses = [result.status for item in done.result().items for result in item.results]
            good = statuses.count(types_pb2.STATUS_OK)
            if good < ITEMS_PER_CALL:
                self.failed = f"{ITEMS_PER_CALL - good} items were not judged: {done.result().items[0].results[0]}"
            with self._lock:
                self.items += good
        except grpc.RpcError as error:
            self.failed = str(error)
        if self.failed or time.monotonic() >= self._until_s:
            self._ended.release()
        else:
            self._send(channel)


def own_cpu_s() -> float:
    """Return the CPU seconds of this process."""
    return time.process_time()


def measure(server: Server, mark: str, *, in_flight: int, duration_s: float) -> Rate:
    """Send new items for this time, after a short time that is not counted."""
    family = [server.process, *server.process.children(recursive=True)]
    sender = Sender(server.address, mark, in_flight=in_flight)
    sender.run(_WARM_UP_S)
    before_bytes = sum(each.memory_info().rss for each in family)
    items, cpu_s, mine_s, began_s = sender.items, whole_cpu_s(server.process.pid), own_cpu_s(), time.monotonic()
    sender.run(duration_s)
    took_s, items = time.monotonic() - began_s, sender.items - items
    cpu_s, mine_s = whole_cpu_s(server.process.pid) - cpu_s, own_cpu_s() - mine_s
    sender.close()
    after_bytes = sum(each.memory_info().rss for each in family)
    return Rate(items / took_s, cpu_s / items * 1e3, mine_s / items * 1e3, (before_bytes, after_bytes))


def body(number: int, mark: str) -> bytes:
    """Return a body like those that gradewire sends, with a new text."""
    messages = [
        {"role": "system", "content": "You rate answers. " * 40},
        *({"role": role, "content": "A demonstration. " * 10} for role in ("user", "assistant") * 4),
        {"role": "user", "content": f"Answer: It should be the Vltava, as bridge {mark}-{number} is in Prague."},
    ]
    options = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20}
    return json.dumps({"model": "judge", "messages": messages, **options}, separators=(",", ":")).encode()


async def plain(ask: Ask, *, in_flight: int, duration_s: float) -> Rate:
    """Return the rate of a client that does nothing but send bodies and parse replies."""
    mark, count = os.urandom(4).hex(), 0

    async def ask_always(until_s: float) -> None:
        nonlocal count
        while time.monotonic() < until_s:
            count += 1
            reply = json.loads(await ask(body(count, mark)))
            assert reply["choices"][0]["message"]["content"] == " correct"

    async def ask_for(seconds: float) -> None:
        until_s = time.monotonic() + seconds
        await asyncio.gather(*(ask_always(until_s) for _ in range(in_flight)))

    await ask_for(_WARM_UP_S / 2)
    count, mine_s, began_s = 0, own_cpu_s(), time.monotonic()
    await ask_for(duration_s)
    return Rate(count / (time.monotonic() - began_s), 0.0, (own_cpu_s() - mine_s) / count * 1e3)


async def with_httpx2(url: str, in_flight: int, duration_s: float) -> Rate:
    """Return the rate of the library on which the providers' own packages are built."""
    limits = httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with httpx2.AsyncClient(limits=limits, timeout=60, headers=_JSON) as client:

        async def ask(content: bytes) -> bytes:
            return (await client.post(f"{url}/chat/completions", content=content)).content

        return await plain(ask, in_flight=in_flight, duration_s=duration_s)


async def with_own(url: str, in_flight: int, duration_s: float) -> Rate:
    """Return the rate of gradewire's own connections alone, the fastest here."""
    connections = Http1Connections(url, {}, in_flight, None)

    async def ask(content: bytes) -> bytes:
        return (await connections.exchange("POST", f"{url}/chat/completions", content, _JSON)).content

    try:
        return await plain(ask, in_flight=in_flight, duration_s=duration_s)
    finally:
        await connections.close()


@contextmanager
def scripted(delay_ms: float) -> Iterator[str]:
    """Start a server that answers after this time, and yield its base URL."""
    command = [sys.executable, "-m", "benchmarks.judges.instant_server", "--delay-ms", str(delay_ms)]
    with started(command) as (_, line):
        yield line.strip()


def show(delay_ms: float, at_once: int, who: str, rate: Rate) -> None:
    """Print a row."""
    before, after = (size / _MIB for size in rate.memory_bytes)
    memory = f"{before:.0f}, then {after:.0f}" if after else ""
    server = f"{rate.server_ms:.2f}" if rate.server_ms else ""
    cells = (f"{delay_ms:g} ms", at_once, who, f"{rate.items_per_s:.0f}", server, f"{rate.client_ms:.2f}", memory)
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def compare(delay_ms: float, in_flight: int, processes: Sequence[int], duration_s: float) -> None:
    """Measure a gradewire server for each number of processes; 0 stands for plain clients."""
    with scripted(delay_ms) as url:
        for count in processes:
            if not count:
                for name, client in (("httpx2", with_httpx2), ("own connections", with_own)):
                    alone = asyncio.run(client(url, in_flight, duration_s))
                    show(delay_ms, in_flight, f"plain client, {name}", alone)
                continue
            options = {"processes": str(count), "judge-backend": "openai", "judge-url": url}
            options |= {"judge-remote-model": "judge", "judge-max-in-flight": str(in_flight), "log-level": "warning"}
            with ExitStack() as stack:
                options["disk-directory"] = stack.enter_context(TemporaryDirectory())
                server = stack.enter_context(start_engine("embedded", options))
                rate = measure(server, os.urandom(4).hex(), in_flight=in_flight, duration_s=duration_s)
            show(delay_ms, in_flight, f"{count} process{'es' if count > 1 else ''}", rate)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs="+", default=["0:256", "5:4", "5:16"], help="DELAY_MS:IN_FLIGHT of each run")
    parser.add_argument("--processes", type=int, nargs="+", default=[0, 1, 2], help="0 stands for plain clients")
    parser.add_argument("--duration-s", type=float, default=6.0, help="seconds of each run, after 2 s without count")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {psutil.cpu_count()} cores, Python {sys.version.split()[0]}")
    print(_HEADER)
    for run in options.run:
        delay_ms, _, in_flight = run.partition(":")
        compare(float(delay_ms), int(in_flight), options.processes, options.duration_s)
    print(f"load {os.getloadavg()[0]:.1f}; {subprocess.list2cmdline(sys.argv[1:]) or 'no options'}")


if __name__ == "__main__":
    main()
