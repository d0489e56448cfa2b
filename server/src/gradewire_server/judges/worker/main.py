"""A judge's worker process: `python -m gradewire_server.judges.worker.main FD`.

FD is the file descriptor of a socket. When the server closes the other end, the worker exits immediately. The worker
ignores signals that stop a server, because answers in progress still need the worker.
"""

import os
import queue
import select
import signal
import socket
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from gradewire_models.judges.cores.rows import Core, CoreError, DeviceError
from gradewire_server.judges.worker.messages import FrameReader, OpenModel, read_run, to_frame

_ORPHAN_CHECK_S: Final = 1.0
_CHUNK_BYTES: Final = 1 << 16


def main() -> None:
    """Open the model that the first message names, then compute one run after another."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    channel = socket.socket(fileno=int(sys.argv[1]))
    messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(channel, messages), name="receive", daemon=True).start()
    request = OpenModel(**messages.get())
    os.nice(request.nice)
    try:
        core = _open(request)
    except (CoreError, ImportError) as error:
        channel.sendall(
            to_frame({"failed": str(error)[:2000], "lacks_library": isinstance(error, (ImportError, DeviceError))})
        )
        sys.exit(1)
    channel.sendall(to_frame({"ready": asdict(core.limits)}))
    while True:
        # Any error in a run ends the worker, because the model's state is then unknown.
        channel.sendall(to_frame({"results": core.run(read_run(messages.get()))}))


def _open(request: OpenModel) -> Core:
    path = Path(request.path)
    if request.form != "gguf":
        from gradewire_models.judges.cores.opening import open_core  # noqa: PLC0415 - each core needs its own library

        return open_core(path, request.form, threads=request.threads, device=request.device)
    from gradewire_server.judges.worker.llama import LlamaCore  # noqa: PLC0415 - as above

    return LlamaCore(
        path, threads=request.threads, context_tokens=request.context_tokens, max_states=request.max_states
    )


def _receive(channel: socket.socket, messages: queue.SimpleQueue[dict[str, Any]]) -> None:
    # Run this in a separate thread to notice a closed socket during a run. A process forked from the server may keep
    # the server's end open, so also check the parent's process ID.
    parent = os.getppid()
    reader = FrameReader()
    try:
        while True:
            readable, _, _ = select.select([channel], [], [], _ORPHAN_CHECK_S)
            data = channel.recv(_CHUNK_BYTES) if readable else None
            if data == b"" or os.getppid() != parent:
                break
            for message in reader.feed(data or b""):
                messages.put(message)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
