"""The gateway as a child of the server: `python -m gradewire_gateway.child FD`.

FD is the listening socket. Standard input brings one line, the settings in JSON, and then nothing: it ends when the
server does, and the gateway with it. On standard output goes a line a second while the event loop lives.
"""

import asyncio
import json
import os
import socket
import sys
from contextlib import suppress
from typing import Final

from gradewire_gateway.observing import configure_log
from gradewire_gateway.serving import run
from gradewire_gateway.settings import GatewaySettings

_BEAT_EVERY_S: Final = 1.0


async def _beat() -> None:
    """Beats until standard input ends."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    ended = asyncio.ensure_future(reader.read(1))
    while not ended.done():
        with suppress(OSError):  # the server is gone, which `ended` tells in a moment
            os.write(1, b"\n")
        await asyncio.wait((ended,), timeout=_BEAT_EVERY_S)


def main() -> None:
    """Serves until it is told to stop or the server is gone."""
    message = json.loads(_first_line())
    configure_log(message["log_level"])
    listening = socket.socket(fileno=int(sys.argv[1]))
    run(GatewaySettings.from_message(message["settings"]), listening, beside=_beat)


def _first_line() -> bytes:
    """Read byte by byte: what comes behind it is the event loop's."""
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return bytes(line)


if __name__ == "__main__":
    main()
