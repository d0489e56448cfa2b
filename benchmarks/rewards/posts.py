"""Single-sample reward posts over HTTP against one batched call: samples a second, ways taking turns in one run.

Each round scores 512 completions of 64 prompts in every way, in a new order: one call of the client with all of them
over gRPC; one post of OpenRLHF's form with all of them; 512 posts of slime's form from a pool of 64 connections that
stay open, as slime's own client has it; and as many posts that the gateway answers without any server (`/seed_session`
with an empty object), the floor of what HTTP costs. The server, its gateway and the client of all ways are processes of
their own. The client of HTTP writes and reads bytes on sockets, for a library would be most of what is measured; bodies
are written and replies read as JSON. "cold" completions are in no cache, and each way has its own.
"""

import argparse
import asyncio
import json
import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.common.processes import free_port
from benchmarks.common.servers import start_engine
from benchmarks.rewards.gathering import Rows, Taken, Way, completions, report, rows_of, take_turns

from gradewire import AsyncClient
from gradewire.rewards import RewardSample

_POOL = 64
_ONE_CALL = "one call of 512 over gRPC"


class Pool:
    """Connections of HTTP/1.1 to the gateway that stay open.

    Args:
        port: Of the gateway on this machine.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open(self) -> None:
        """Opens all of them."""
        self._connections = [await asyncio.open_connection("127.0.0.1", self._port) for _ in range(_POOL)]

    async def close(self) -> None:
        """Closes them."""
        for _, writer in self._connections:
            writer.close()
            await writer.wait_closed()

    async def post(self, path: str, bodies: Sequence[Any]) -> list[Any]:
        """Posts each body, one at a time on a connection; the replies in the order in which they came.

        Raises:
            RuntimeError: A reply is not 200.
        """
        replies: list[Any] = []
        left = iter(bodies)
        await asyncio.gather(*(self._work(path, left, replies, *each) for each in self._connections))
        return replies

    async def _work(
        self,
        path: str,
        bodies: Iterator[Any],
        replies: list[Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        for body in bodies:
            content = json.dumps(body).encode()
            head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
            answered = await reader.readuntil(b"\r\n\r\n")
            length = int(answered.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            reply = json.loads(await reader.readexactly(length))
            if not answered.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(f"{path}: {reply}")
            replies.append(reply)


def ways_over(client: AsyncClient, pool: Pool, metric: str) -> dict[str, Way]:
    """Every way to score the samples."""

    async def one_call(samples: Rows) -> None:
        await client.score(rows_of(samples), metric)

    async def one_post(samples: Rows) -> None:
        queries = [f"{sample.question}{sample.completion}" for sample in samples]
        prompts, labels = [sample.question for sample in samples], [sample.references[0] for sample in samples]
        await pool.post("/get_reward", [{"query": queries, "prompts": prompts, "labels": labels}])

    async def single_posts(samples: Rows) -> None:
        bodies = [
            {"prompt": sample.question, "response": sample.completion, "label": sample.references[0]}
            for sample in samples
        ]
        await pool.post("/slime/reward", bodies)

    async def empty_posts(samples: Rows) -> None:
        await pool.post("/seed_session", [{}] * len(samples))

    return {
        _ONE_CALL: one_call,
        "one post of 512": one_post,
        f"single posts, pool of {_POOL}": single_posts,
        f"empty posts, pool of {_POOL}": empty_posts,
    }


async def measure(address: str, port: int, metric: str, rounds: int) -> Taken:
    """Seconds of each way, cold and warm, by round."""
    source = random.Random(1)  # noqa: S311 - an order and texts, not a secret
    pool = Pool(port)
    await pool.open()
    async with AsyncClient(address, deadline_s=300) as client:
        ways = ways_over(client, pool, metric)
        warm = asked(completions(source))
        await client.score(rows_of(warm), metric)
        taken = await take_turns(ways, lambda: asked(completions(source)), warm, rounds, source)
    await pool.close()
    return taken


def asked(samples: Rows) -> list[RewardSample]:
    """The samples with a question, which OpenRLHF's form needs to tell the completion."""
    return [RewardSample(sample.completion, sample.references, "User: what sleeps?\nAssistant: ") for sample in samples]


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metric", default="smile:fast", help="the metric (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="rounds that count (default: %(default)s)")
    arguments = parser.parse_args()
    before = os.getloadavg()[0]
    port = free_port()
    options = {"judge-backend": "none", "http-api-port": str(port), "rewards-metric": arguments.metric}
    with start_engine("embedded", options) as server:
        taken = asyncio.run(measure(server.address, port, arguments.metric, arguments.rounds))
    print(
        f"{arguments.metric}, 512 samples, {arguments.rounds} rounds, {os.cpu_count()} cores; load average "
        f"{before:.1f} before, {os.getloadavg()[0]:.1f} after\n"
    )
    report(taken, _ONE_CALL)


if __name__ == "__main__":
    main()
