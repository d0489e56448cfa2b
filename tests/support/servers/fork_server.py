"""The process whose forks are the tests' servers: `python -m tests.support.servers.fork_server FD`.

`forked_process` starts it. It does once what each server would do again: it imports, and opens the default encoder
and its grader, which makes up nine tenths of a start. It has no thread that a fork would lose.
"""

import gc
import json
import os
import selectors
import signal
import socket
import sys
import types
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

import numpy.ma  # noqa: F401 - numpy imports it late
import pytest
from tests.support.models.kept_graphs import keep_opened

import gradewire_server.app
import gradewire_server.processes.supervisor  # noqa: F401 - for servers with several processes
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.errors import ModelNotBuiltError
from gradewire_models.repository.built import default_repository, load_built
from gradewire_server.encoders import local
from gradewire_server.encoders.encoder import warm_up_ids
from gradewire_server.settings.server import Settings

_REQUEST_BYTES: Final = 1 << 18


def _prepare() -> None:
    load_catalog()
    Settings.load()
    keep_opened(pytest.MonkeyPatch())
    for name in ("all-MiniLM-L6-v2", "grader-mini"):
        with suppress(ModelNotBuiltError):
            model = load_built(default_repository(), name)
            warm_up_ids(model, local.open_tokenizer(model))
            local._open(model, threads=1)


class _Forks:
    """The forks that run, and the sockets that tell of their ends, by descriptor of the process."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._running: dict[int, tuple[int, socket.socket]] = {}

    def next_program(self) -> dict[str, Any]:
        """Fork for each request, and return it in the fork. Exit once nobody can ask any more."""
        while True:
            for descriptor in self._ready():
                if descriptor != self._requests.fileno():
                    self._tell_end(descriptor)
                elif (asked := self._fork()) is not None:
                    return asked

    def _ready(self) -> list[int]:
        with selectors.DefaultSelector() as selector:
            for descriptor in (self._requests.fileno(), *self._running):
                selector.register(descriptor, selectors.EVENT_READ)
            return [key.fd for key, _ in selector.select()]

    def _fork(self) -> dict[str, Any] | None:
        request, descriptors, _, _ = socket.recv_fds(self._requests, _REQUEST_BYTES, 2)
        if not request:
            self._end_all()
        output, telling = descriptors
        pid = os.fork()
        if not pid:
            for standard in (1, 2):
                os.dup2(output, standard)
            others = [each for descriptor, (_, ends) in self._running.items() for each in (descriptor, ends.detach())]
            for each in (output, telling, self._requests.detach(), *others):
                os.close(each)
            asked: dict[str, Any] = json.loads(request)
            return asked
        os.close(output)
        ends = socket.socket(fileno=telling)
        self._running[os.pidfd_open(pid)] = pid, ends
        with suppress(BrokenPipeError):
            ends.send(b"%d" % pid)
        return None

    def _tell_end(self, descriptor: int) -> None:
        pid, ends = self._running.pop(descriptor)
        os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with ends, suppress(BrokenPipeError):
            ends.send(b"%d" % code)

    def _end_all(self) -> NoReturn:
        for pid, _ in self._running.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        sys.exit()


def _become(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Take over the environment of the program that was asked for; return its empty module's names."""
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["directory"])
    sys.argv = ["-c"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    return vars(sys.modules["__main__"])


if __name__ == "__main__":
    _prepare()
    gc.collect()
    gc.freeze()  # or the first collection of a fork would copy all of this
    _asked = _Forks(socket.socket(fileno=int(sys.argv[1]))).next_program()
    exec(_asked["program"], _become(_asked))  # noqa: S102 - the program is a test's
