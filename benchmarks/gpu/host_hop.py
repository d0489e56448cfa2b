"""Measure the CPU time of a hop between a server process and a shared encoder process, for each text.

A shared encoder process would get token IDs over a Unix socket and send back vectors in float16. The host here draws
the vectors beforehand, so that all CPU time of both processes is that of the hop. CPU time hardly depends on the
machine's load.
"""

import argparse
import asyncio
import multiprocessing
import os
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import grpc
import numpy as np
from grpc import aio

_DIMS: Final = 384
_TOKENS: Final = 12
_METHOD: Final = "/host.Encoder/Encode"
_OPTIONS: Final = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


def own_cpu_s() -> float:
    """Return this process's CPU seconds so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _host(address: str, to_parent: Any, stop: Any) -> None:
    drawn = np.random.default_rng(0).standard_normal((1 << 12, _DIMS)).astype(np.float16)

    async def encode(request: bytes, _context: Any) -> bytes:
        ids = np.frombuffer(request, np.int32).reshape(-1, _TOKENS)
        return drawn[: len(ids)].tobytes()

    handler: Any = grpc.unary_unary_rpc_method_handler(encode)
    server = aio.server(options=_OPTIONS)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("host.Encoder", {"Encode": handler})])
    server.add_insecure_port(address)
    await server.start()
    before_s = own_cpu_s()
    to_parent.send(None)
    await asyncio.to_thread(stop.wait)
    to_parent.send(own_cpu_s() - before_s)
    await server.stop(None)


def run_host(address: str, to_parent: Any, stop: Any) -> None:
    """Serve until `stop` is set. Send None after the start, and the CPU seconds at the end."""
    asyncio.run(_host(address, to_parent, stop))


async def _call(address: str, texts: int, calls: int) -> float:
    """Return the CPU seconds of the calling process for `calls` calls with `texts` texts each."""
    ids = np.random.default_rng(1).integers(0, 30_000, (texts, _TOKENS)).astype(np.int32)
    async with aio.insecure_channel(address, options=_OPTIONS) as channel:
        encode: Any = channel.unary_unary(_METHOD)
        before_s = own_cpu_s()
        for _ in range(calls):
            reply = np.frombuffer(await encode(ids.tobytes()), np.float16).reshape(-1, _DIMS)
            if len(reply) != texts:
                raise SystemExit(f"{len(reply)} vectors for {texts} texts")
        return own_cpu_s() - before_s


def hop_us(texts: int, calls: int) -> tuple[float, float]:
    """Return the CPU microseconds for each text in the calling process and in the host."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    stop = context.Event()
    with tempfile.TemporaryDirectory() as directory:
        address = f"unix:{Path(directory) / 'host'}"
        host = context.Process(target=run_host, args=(address, theirs, stop))
        host.start()
        ours.recv()
        called_s = asyncio.run(_call(address, texts, calls))
        stop.set()
        hosted_s = float(ours.recv())
        host.join()
    return called_s / texts / calls * 1e6, hosted_s / texts / calls * 1e6


def report(sizes: Sequence[int], calls: int) -> None:
    """Measure each size of a batch, and print a table."""
    before = os.getloadavg()[0]
    rows = [(size, *hop_us(size, calls)) for size in sizes]
    print(f"{calls} calls, load average before {before:.2f}, after {os.getloadavg()[0]:.2f}\n")
    print("| texts a batch | server process, µs/text | encoder process, µs/text | a batch, ms |")
    print("|---:|---:|---:|---:|")
    for size, called_us, hosted_us in rows:
        print(f"| {size} | {called_us:.1f} | {hosted_us:.1f} | {(called_us + hosted_us) * size / 1e3:.2f} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, nargs="+", default=[1, 64, 1024], help="sizes of a batch")
    parser.add_argument("--calls", type=int, default=300)
    arguments = parser.parse_args()
    report(arguments.texts, arguments.calls)


if __name__ == "__main__":
    main()
