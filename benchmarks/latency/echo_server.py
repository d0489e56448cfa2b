"""Run a grpc.aio server that returns each request's bytes, which is the minimum work for a server.

`open_loop` starts this program. It prints its port and ends when its standard input ends.
"""

import argparse
import asyncio
import sys

import grpc
import uvloop


async def echo(request: bytes, _context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    """Return the request."""
    return request


async def main() -> None:
    """Serve on a free loopback port until standard input ends."""
    server = grpc.aio.server()
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", {"Echo": method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(0)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    uvloop.run(main())
