"""The process whose forks are the tests' servers: `python -m tests.support.servers.fork_server FD`.

`forked_process` starts it. It does once what each server would do again: it imports, and opens the default encoder
and its grader, which makes up nine tenths of a start. It has no thread that a fork would lose.
"""

import fcntl
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import types
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy.ma  # noqa: F401 - numpy imports it late
import pytest
from tests.support.models.kept_graphs import keep_opened
from tests.support.servers import forked_process

import gradewire_gateway.serving  # noqa: F401 - programs import this and the next four
import gradewire_server.app
import gradewire_server.judges.worker.main
import gradewire_server.processes.supervisor
import gradewire_server.server_child  # noqa: F401 - see above
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.errors import ModelNotBuiltError
from gradewire_models.repository.built import default_repository, load_built
from gradewire_server.encoders import local
from gradewire_server.encoders.encoder import warm_up_ids
from gradewire_server.settings.server import Settings

_REQUEST_BYTES: Final = 1 << 18
_MOST_DESCRIPTORS: Final = 16
_HIGH: Final = 512
"""From here on nobody asks for a number of a descriptor."""
_END_WITH_OWNER: Final = ("gradewire_server.server_child", "gradewire_server.judge_host")
"""Modules that the system would kill with their parent, which the fork server is instead of their owner."""


def _prepare() -> None:
    load_catalog()
    Settings.load()
    patch = pytest.MonkeyPatch()
    keep_opened(patch)
    for name in ("all-MiniLM-L6-v2", "grader-mini"):
        with suppress(ModelNotBuiltError):
            model = load_built(default_repository(), name)
            warm_up_ids(model, local.open_tokenizer(model))
            local._open(model, threads=1)
    for module in ("processes.server_process", "processes.http_gateway", "judges.local.supervisor"):
        patch.setattr(f"gradewire_server.{module}.start_module", forked_process.start_module)


@dataclass(frozen=True)
class _Fork:
    """A fork that runs, and the socket that tells of its end."""

    pid: int
    module: str
    owner: int
    answers: socket.socket


class _Forks:
    """The forks that run, by descriptor of their process, and the sockets through which requests come."""

    def __init__(self, requests: socket.socket) -> None:
        self._first = requests
        self._requests = {requests.fileno(): requests}
        self._running: dict[int, _Fork] = {}

    def next_program(self) -> dict[str, Any]:
        """Fork for each request, and return it in the fork. Exit once the tests have ended."""
        while True:
            for descriptor in self._ready():
                if descriptor in self._running:
                    self._tell_end(descriptor)
                elif descriptor in self._requests and (asked := self._answer(self._requests[descriptor])):
                    return asked

    def _ready(self) -> list[int]:
        with selectors.DefaultSelector() as selector:
            for descriptor in (*self._requests, *self._running):
                selector.register(descriptor, selectors.EVENT_READ)
            return [key.fd for key, _ in selector.select()]

    def _answer(self, requests: socket.socket) -> dict[str, Any] | None:
        request, descriptors, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, _MOST_DESCRIPTORS)
        if not request:
            if requests is self._first:
                self._end_all()
            del self._requests[requests.fileno()]
            requests.close()
            return None
        asked: dict[str, Any] = json.loads(request)
        answers = socket.socket(fileno=descriptors.pop(0))
        if "modules_of" in asked:
            found = [(each.pid, each.module) for each in self._running.values() if each.owner == asked["modules_of"]]
            with answers:
                answers.send(json.dumps(found).encode())
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if not (pid := os.fork()):
            kept = [answers, ours, *self._requests.values(), *(each.answers for each in self._running.values())]
            for descriptor in (*self._running, *(each.detach() for each in kept)):
                os.close(descriptor)
            _take(dict(zip(asked["descriptors"], descriptors, strict=True)), theirs.detach())
            return asked
        for descriptor in (*descriptors, theirs.detach()):
            os.close(descriptor)
        self._requests[ours.fileno()] = ours
        self._running[os.pidfd_open(pid)] = _Fork(pid, asked.get("module", ""), asked.get("owner", 0), answers)
        with suppress(BrokenPipeError):
            answers.send(b"%d" % pid)
        return None

    def _tell_end(self, descriptor: int) -> None:
        ended = self._running.pop(descriptor)
        os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(ended.pid, 0)[1])
        for each in self._running.values():
            if each.owner == ended.pid and each.module in _END_WITH_OWNER:
                os.kill(each.pid, signal.SIGKILL)
        with ended.answers, suppress(BrokenPipeError):
            ended.answers.send(b"%d" % code)

    def _end_all(self) -> NoReturn:
        for each in self._running.values():
            os.kill(each.pid, signal.SIGKILL)
            os.waitpid(each.pid, 0)
        sys.exit()


def _take(given: Mapping[int, int], asking: int) -> None:
    """Give descriptors the numbers that were asked for, and leave others to `asking`."""
    high = {number: _moved(descriptor) for number, descriptor in given.items()}
    forked_process.ask_through(socket.socket(fileno=_moved(asking)))
    for number, descriptor in high.items():
        os.dup2(descriptor, number)
    _close(high.values())


def _moved(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(descriptor)
    return moved


def _close(descriptors: Iterable[int]) -> None:
    for each in descriptors:
        os.close(each)


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a terminal or a time limit sends to all processes of the tests. The fork server ends after them."""


def _run(asked: Mapping[str, Any]) -> None:
    """Run what was asked for as the main module of a Python of its own."""
    for number in _SIGNALS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["directory"])
    if module := asked.get("module"):
        os.setsid()
        os.getppid = lambda: asked["owner"]
        sys.argv = [module, *asked["arguments"]]
        sys.modules.pop(module, None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c"]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(asked["program"], vars(main))  # noqa: S102 - the program is a test's


if __name__ == "__main__":
    for _number in _SIGNALS:
        signal.signal(_number, signal.SIG_IGN)
    _prepare()
    gc.collect()
    gc.freeze()  # or the first collection of a fork would copy all of this
    _run(_Forks(socket.socket(fileno=int(sys.argv[1]))).next_program())
