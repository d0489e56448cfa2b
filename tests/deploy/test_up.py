"""The supervisor of `make up`, with small programs in place of servers."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from deploy.local import up
from deploy.local.holding import held
from deploy.local.parts import Part
from tests.deploy.conftest import ROOT

_TELLS_ITS_END = """
import pathlib, signal, sys, time
def end(*_):
    with open("{state}/ends", "a") as ends: ends.write("{name} ")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
pathlib.Path("{state}/{name}.ready").touch()
time.sleep(60)
"""

_WAITS = "import pathlib, time; pathlib.Path('{state}/{name}.ready').touch(); time.sleep(60)"


def _part(state: Path, name: str, program: str = _TELLS_ITS_END, start_s: float = 20) -> Part:
    command = (sys.executable, "-c", program.format(state=state, name=name))
    return Part(name, command, (state / f"{name}.ready").exists, start_s=start_s, stop_s=10)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[up.Supervisor]:
    supervisor = up.Supervisor(tmp_path)
    yield supervisor
    supervisor.stop()


def test_parts_end_in_the_reverse_of_their_order(tmp_path: Path, supervisor: up.Supervisor) -> None:
    supervisor.start([_part(tmp_path, "a")])
    supervisor.start([_part(tmp_path, "b"), _part(tmp_path, "c")])
    supervisor.check()
    supervisor.stop()
    assert (tmp_path / "ends").read_text() == "c b a "


def test_a_part_that_ends_is_named_with_the_end_of_its_log(tmp_path: Path, supervisor: up.Supervisor) -> None:
    supervisor.start([_part(tmp_path, "a")])
    with pytest.raises(up.UpError, match=r"(?s)b ended with exit code 3; .*no such model"):
        supervisor.start([_part(tmp_path, "b", "import sys; print('no such model'); sys.exit(3)")])
    supervisor.stop()
    assert (tmp_path / "ends").read_text() == "a "


def test_a_part_that_never_gets_ready_is_named(tmp_path: Path, supervisor: up.Supervisor) -> None:
    with pytest.raises(up.UpError, match=r"slow was not ready within 0\.2 s"):
        supervisor.start([_part(tmp_path, "slow", "import time; time.sleep(60)", start_s=0.2)])


def test_a_part_that_will_not_end_is_killed(tmp_path: Path) -> None:
    supervisor = up.Supervisor(tmp_path)
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {_WAITS}"
    part = _part(tmp_path, "deaf", deaf)
    supervisor.start([Part(part.name, part.command, part.is_ready, start_s=20, stop_s=0.2)])
    supervisor.stop()
    supervisor.check()


def test_settings_of_the_caller_stay_outside(
    tmp_path: Path, supervisor: up.Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_AUTH_TOKENS", "secret")
    monkeypatch.setenv("GRADEWIRE_TRITON_ENVIRONMENT", "/somewhere")
    names = "import os; print(sorted(name for name in os.environ if name[:9] == 'GRADEWIRE'), flush=True)"
    supervisor.start([_part(tmp_path, "a", f"{names}; {_WAITS}")])
    assert (tmp_path / "a.log").read_text() == "['GRADEWIRE_TRITON_ENVIRONMENT']\n"


def test_a_killed_parent_takes_its_parts_along(tmp_path: Path) -> None:
    program = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from deploy.local import up
from deploy.local.parts import Part
ready = Path({str(tmp_path / "a.ready")!r})
command = (sys.executable, "-c", {_WAITS.format(state=tmp_path, name="a")!r})
up.Supervisor(ready.parent).start([Part("a", command, ready.exists, start_s=20, stop_s=1)])
print("started", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        children = psutil.Process(parent.pid).children()
        assert children
        os.kill(parent.pid, signal.SIGKILL)
    assert not psutil.wait_procs(children, timeout=10)[1]


def test_a_port_that_is_taken_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(up.UpError, match=rf"port {port} is taken\. Choose another with --valkey-port"):
            up.up(tmp_path, {"valkey": port}, repository=None)
    assert not list(tmp_path.glob("*.log"))


def test_down_where_nothing_runs_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    up.down(tmp_path)
    assert capsys.readouterr().out == "nothing runs\n"


def _holder(state: Path) -> "subprocess.Popen[str]":
    program = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from deploy.local.holding import held
with held(Path({str(state)!r})) as ours:
    print(ours, flush=True)
    time.sleep(60)
"""
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("left", ["bystander", ""])
def test_down_asks_the_kernel_who_runs_and_not_a_file(tmp_path: Path, left: str) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with bystander, _holder(tmp_path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        # A killed run's leftovers; its number may be anybody's by now.
        (tmp_path / "pid").write_text(str(bystander.pid) if left else "")
        try:
            up.down(tmp_path)
            assert holder.wait(10) == -signal.SIGTERM
            assert bystander.poll() is None
        finally:
            holder.kill()
            bystander.kill()


def test_one_at_a_time(tmp_path: Path) -> None:
    with _holder(tmp_path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with held(tmp_path) as ours:
            assert not ours
        holder.kill()
    with held(tmp_path) as ours:
        assert ours


_SLOW_TO_END = """
import pathlib, signal, time
def end(*_):
    pathlib.Path("{state}/stopping").touch()
    time.sleep(0.5)
    pathlib.Path("{state}/{name}.ended").touch()
    raise SystemExit
signal.signal(signal.SIGTERM, end)
pathlib.Path("{state}/{name}.ready").touch()
time.sleep(60)
"""
_DEAF = """
import pathlib, signal, time
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path("{state}/stopping").touch())
pathlib.Path("{state}/{name}.ready").touch()
while True: time.sleep(60)
"""
_ENDS_WHEN_ASKED = """
import pathlib, sys, time
pathlib.Path("{state}/{name}.ready").touch()
while not pathlib.Path("{state}/break").exists(): time.sleep(0.02)
sys.exit(3)
"""


def _up_of(state: Path, valkey: str) -> "subprocess.Popen[str]":
    """`up` over small programs: "valkey" is the one given, the others end when the file `break` is there."""
    program = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from deploy.local import up
from deploy.local.parts import Part
state = Path({str(state)!r})
def part(name, program):
    ready = state / (name + ".ready")
    return Part(name, (sys.executable, "-c", program.format(state=state, name=name)), ready.exists, 20, 20)
up.parts.valkey = lambda *_: part("valkey", {valkey!r})
for name in ("triton", "gradewire", "prometheus"):
    setattr(up.parts, name, lambda *_, name=name: part(name, {_ENDS_WHEN_ASKED!r}))
try:
    up.up(state, {{"gradewire": 0}}, repository=None)
except up.UpError as error:
    print(error)
"""
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _until_there(path: Path) -> None:
    give_up = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < give_up, path
        time.sleep(0.02)


def test_a_signal_while_it_stops_by_itself_does_not_cut_the_end_short(tmp_path: Path) -> None:
    with _up_of(tmp_path, _SLOW_TO_END) as running:
        _until_there(tmp_path / "addresses.json")
        (tmp_path / "break").touch()
        _until_there(tmp_path / "stopping")
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=20)
    assert running.returncode == 0
    assert "ended with exit code 3" in said
    assert "Traceback" not in said
    assert (tmp_path / "valkey.ended").exists()
    assert not (tmp_path / "addresses.json").exists()


def test_a_second_signal_ends_everything_at_once(tmp_path: Path) -> None:
    with _up_of(tmp_path, _DEAF) as running:
        _until_there(tmp_path / "addresses.json")
        parts = psutil.Process(running.pid).children()
        assert len(parts) == 4
        running.send_signal(signal.SIGINT)
        _until_there(tmp_path / "stopping")
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=10)
    assert running.returncode == 1
    assert "stopping" in said
    assert not psutil.wait_procs(parts, timeout=10)[1]


def test_a_signal_while_it_starts_is_heard(tmp_path: Path) -> None:
    never_ready = _TELLS_ITS_END.replace("{name}.ready", "{name}.runs")
    with _up_of(tmp_path, never_ready) as running:
        _until_there(tmp_path / "valkey.runs")
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=20)
    assert running.returncode == 0
    assert said.endswith("stopping …\nstopped\n")
    assert (tmp_path / "ends").read_text() == "valkey "
