"""Run a whole deployment as plain processes on this machine; a part starts when the parts before it are healthy.

`make up` runs `python -m deploy.local.up`: Triton (the real server, emulated backend) and Valkey, then gradewire, then
Prometheus, on loopback addresses. Ctrl-C, or `--down` elsewhere, stops all parts in reverse order. When a part ends,
the program prints its name and stops the others. Linux only, like Triton.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from deploy.local import parts
from deploy.local.holding import ask_to_end, held, holder
from deploy.local.parts import PORTS, Part
from deploy.local.prometheus_binary import PrometheusMissingError

_POLL_S = 0.1
_SHOWN_LINES = 15
_DOWN_S = 120.0


class UpError(RuntimeError):
    """An error for a deployment that cannot start or a part that has ended; the message names the part."""


class Stopped(BaseException):
    """A signal to end the deployment."""


class Supervisor:
    """Running parts; `stop` ends them in reverse order of their start."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._running: list[tuple[Part, subprocess.Popen[bytes]]] = []
        self._asked = False
        self._interruptible = False

    def on_signal(self, number: int, frame: object) -> None:
        """Keep the first signal, which `check` raises between steps; on a second signal, end everything at once."""
        del number, frame
        if self._asked:
            self.kill()
            os._exit(1)
        self._asked = True
        if self._interruptible:
            raise Stopped

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Allow a signal to interrupt this block, which may take minutes and starts no part."""
        self._interruptible = True
        try:
            self.check()
            yield
        finally:
            self._interruptible = False

    def start(self, stage: Sequence[Part]) -> None:
        """Start parts together and wait until all are ready.

        Raises:
            UpError: A part ended, or was not ready in time.
            Stopped: A signal arrived.
        """
        for part in stage:
            self._running.append((part, self._spawn(part)))
        waiting = {part.name: (part, time.monotonic() + part.start_s) for part in stage}
        while waiting:
            self.check()
            for part, give_up in list(waiting.values()):
                if part.is_ready():
                    del waiting[part.name]
                elif time.monotonic() > give_up:
                    raise UpError(f"{part.name} was not ready within {part.start_s:g} s; {self._end_of_log(part)}")
            time.sleep(_POLL_S)

    def check(self) -> None:
        """Raise UpError if a part has ended, or Stopped if a signal has arrived."""
        if self._asked:
            raise Stopped
        for part, process in self._running:
            code = process.poll()
            if code is not None:
                raise UpError(f"{part.name} ended with exit code {code}; {self._end_of_log(part)}")

    def stop(self) -> None:
        """Stop the parts (SIGTERM), the last first; kill parts that take too long."""
        while self._running:
            part, process = self._running[-1]
            process.terminate()
            try:
                process.wait(part.stop_s)
            except subprocess.TimeoutExpired:
                _say(f"{part.name} did not stop within {part.stop_s:g} s; killing it")
                process.kill()
                process.wait()
            self._running.pop()

    def kill(self) -> None:
        """Kill everything without waiting, because the signal may have interrupted a wait."""
        for _, process in reversed(self._running):
            process.kill()

    def _spawn(self, part: Part) -> subprocess.Popen[bytes]:
        # The kernel ends a part when this process ends for any reason.
        guard = ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()
        # A user's settings (another repository, tokens, addresses) must not affect these processes.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRADEWIRE_")} | {
            name: os.environ[name] for name in ("GRADEWIRE_TRITON_ENVIRONMENT",) if name in os.environ
        }
        with (self._state / f"{part.name}.log").open("wb") as log:
            return subprocess.Popen(
                [*guard, *part.command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches only this process, which stops the parts in order
            )

    def _end_of_log(self, part: Part) -> str:
        path = self._state / f"{part.name}.log"
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
        return f"the end of {path}:\n" + "\n".join(lines)


def up(state: Path, ports: Mapping[str, int], *, repository: Path | None, processes: int = 0) -> None:
    """Run the deployment until SIGINT or SIGTERM; a second signal kills it.

    Args:
        state: Directory for logs, data and addresses.
        ports: Ports by name, as in `PORTS`; 0 means a free port.
        repository: Model repository; None means the default repository.
        processes: Server processes of gradewire; 0 means a number that fits the cores.

    Raises:
        UpError: A port is taken, or a part did not start or has ended.
    """
    ports = _choose(ports)
    supervisor = Supervisor(state)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, supervisor.on_signal)
    try:
        _say(
            "starting Triton and Valkey (the first start installs Triton's environment, which takes a minute or two) …"
        )
        supervisor.start([parts.valkey(state, ports), parts.triton(state, ports, repository)])
        _say("starting gradewire …")
        supervisor.start([parts.gradewire(ports, repository, processes)])
        try:
            with supervisor.interruptible():
                prometheus = parts.prometheus(state, ports)
            supervisor.start([prometheus])
        except PrometheusMissingError as error:
            _say(f"without Prometheus: {error}")
            ports = {name: port for name, port in ports.items() if name != "prometheus"}
        _announce(state, ports)
        while True:
            supervisor.check()
            time.sleep(_POLL_S)
    except Stopped:
        _say("stopping …")
    except UpError:
        _say("a part failed; stopping the others …")
        raise
    finally:
        (state / "addresses.json").unlink(missing_ok=True)
        supervisor.stop()
    _say("stopped")


def down(state: Path) -> None:
    """Stop the deployment that uses `state` and wait until it ends; do nothing if no deployment runs.

    Raises:
        UpError: The deployment did not stop in time.
    """
    give_up = time.monotonic() + _DOWN_S
    first = holder(state)
    if first:
        ask_to_end(state, first)
    while first and holder(state) == first:
        if time.monotonic() > give_up:
            raise UpError(f"the deployment in {state} did not stop within {_DOWN_S:g} s")
        time.sleep(_POLL_S)
    _say("stopped" if first else "nothing runs")


def _choose(ports: Mapping[str, int]) -> dict[str, int]:
    """Replace each port 0 by a free port.

    Raises:
        UpError: A requested port is taken.
    """
    probes = {}
    try:
        for name, port in ports.items():
            probes[name] = probe = socket.socket()
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise UpError(f"port {port} is taken. Choose another with --{name}-port (0: any free one)") from error
        return {name: int(probe.getsockname()[1]) for name, probe in probes.items()}
    finally:
        for probe in probes.values():
            probe.close()


def _announce(state: Path, ports: Mapping[str, int]) -> None:
    addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    scratch = state / "addresses.json.new"
    scratch.write_text(json.dumps(addresses, indent=1), encoding="utf-8")
    scratch.replace(state / "addresses.json")
    for name, address in addresses.items():
        _say(f"  {name:<20}{address}")
    _say(f"logs: {state}/*.log | try: gradewire score examples/answers.jsonl --server {addresses['gradewire']}")
    _say("Ctrl-C or `make down` stops everything")


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    """Run or stop the deployment; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--down", action="store_true", help="stop the deployment of an earlier call")
    parser.add_argument("--state", type=Path, default=Path(".up"), help="logs, data and addresses (default: .up)")
    parser.add_argument("--repository", type=Path, help="Triton model repository (default: where models are built)")
    parser.add_argument(
        "--processes", type=int, default=0, help="server processes of gradewire (default: 0, one for every two cores)"
    )
    for name, port in PORTS.items():
        parser.add_argument(f"--{name}-port", type=int, default=port, help=f"default: {port}; 0: any free one")
    arguments = parser.parse_args()
    state: Path = arguments.state.absolute()
    state.mkdir(parents=True, exist_ok=True)
    try:
        if arguments.down:
            down(state)
            return 0
        with held(state) as ours:
            if not ours:
                _say(f"a deployment is already running (addresses: {state}/addresses.json). To stop it, run: make down")
                return 0
            ports = {name: getattr(arguments, f"{name.replace('-', '_')}_port") for name in PORTS}
            up(state, ports, repository=arguments.repository, processes=arguments.processes)
    except UpError as error:
        _say(f"make up: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
