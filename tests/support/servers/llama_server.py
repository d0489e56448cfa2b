"""llama.cpp's own OpenAI-compatible server on SmolLM2, in a process of its own on a free port of this machine."""

import secrets
import subprocess
import sys
from types import TracebackType
from typing import Final, Self

from tests.support.judges.smollm2 import smollm2_gguf

_PROGRAM: Final = """
import sys
import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path, key, slots, tokens = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
parameters.n_parallel = slots
parameters.n_ctx = tokens * slots
parameters.n_gpu_layers = 0
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.cache_ram_mib = 0
parameters.warmup = False
parameters.port = int(sys.argv[5])
parameters.api_keys = [key]
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


class LlamaServer:
    """`with LlamaServer() as server: server.url, server.key`.

    Args:
        slots: Requests that it computes at a time.
        tokens: Longest of them.

    Attributes:
        url: Base address, with /v1.
        key: What it wants to be shown.
    """

    def __init__(self, *, slots: int = 1, tokens: int = 512) -> None:
        self.url = ""
        self.key = secrets.token_hex(16)
        self._size = (str(slots), str(tokens))
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Starts it, on the port that it had before if it ran already; returns when it answers."""
        command = [sys.executable, "-c", _PROGRAM, str(smollm2_gguf()), self.key, *self._size, str(self._port)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        address = self._process.stdout.readline().strip()
        assert address, "llama.cpp's server did not start"
        self._port = int(address.rpartition(":")[2])
        self.url = f"{address}/v1"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Ends it at once; once more does nothing."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
