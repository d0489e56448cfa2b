"""The supervisor of `make up`, with small programs in place of servers."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from deploy.local import up
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
def shape(tmp_path: Path) -> Iterator[up.Shape]:
    shape = up.Shape(tmp_path)
    yield shape
    shape.stop()


def test_parts_end_in_the_reverse_of_their_order(tmp_path: Path, shape: up.Shape) -> None:
    shape.start([_part(tmp_path, "a")])
    shape.start([_part(tmp_path, "b"), _part(tmp_path, "c")])
    shape.check()
    shape.stop()
    assert (tmp_path / "ends").read_text() == "c b a "


def test_a_part_that_ends_is_named_with_its_last_words(tmp_path: Path, shape: up.Shape) -> None:
    shape.start([_part(tmp_path, "a")])
    with pytest.raises(up.UpError, match=r"(?s)b ended with exit code 3; .*no such model"):
        shape.start([_part(tmp_path, "b", "import sys; print('no such model'); sys.exit(3)")])
    shape.stop()
    assert (tmp_path / "ends").read_text() == "a "


def test_a_part_that_never_gets_ready_is_named(tmp_path: Path, shape: up.Shape) -> None:
    with pytest.raises(up.UpError, match=r"slow was not ready within 0\.2 s"):
        shape.start([_part(tmp_path, "slow", "import time; time.sleep(60)", start_s=0.2)])


def test_a_part_that_will_not_end_is_killed(tmp_path: Path) -> None:
    shape = up.Shape(tmp_path)
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {_WAITS}"
    part = _part(tmp_path, "deaf", deaf)
    shape.start([Part(part.name, part.command, part.is_ready, start_s=20, stop_s=0.2)])
    shape.stop()
    shape.check()


def test_settings_of_the_caller_stay_outside(tmp_path: Path, shape: up.Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_AUTH_TOKENS", "secret")
    monkeypatch.setenv("GRADEWIRE_TRITON_ENVIRONMENT", "/somewhere")
    names = "import os; print(sorted(name for name in os.environ if name[:9] == 'GRADEWIRE'), flush=True)"
    shape.start([_part(tmp_path, "a", f"{names}; {_WAITS}")])
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
up.Shape(ready.parent).start([Part("a", command, ready.exists, start_s=20, stop_s=1)])
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
        with pytest.raises(up.UpError, match=rf"port {port} is taken; --valkey-port"):
            up.up(tmp_path, {"valkey": port}, repository=None)
    assert not list(tmp_path.glob("*.log"))


def test_down_where_nothing_runs_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pid").write_text(str(os.getpid()))  # of a run that was killed; the number may be anybody's by now
    up.down(tmp_path)
    assert capsys.readouterr().out == "nothing runs\n"
