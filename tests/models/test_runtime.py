import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradewire_models import runtime
from gradewire_models.runtime import cpu_session_options, onnxruntime, without_plugin_warning

EXACT = "session.x64quantprecision"
PROGRAM = """
import sys
from pathlib import Path
from gradewire_models.build.verify import verify_built
assert all(check.passed for check in verify_built(Path(sys.argv[1]), "tiny-bert", None))
"""


def test_nothing_is_recorded_about_the_machine_or_its_models(tiny_repository: Path, tmp_path: Path) -> None:
    # The library also keeps quiet where it sees a CI machine, which would hide that it does not here.
    quiet = {"CI", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "XDG_CACHE_HOME", "XDG_DATA_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in quiet}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tiny_repository)],
        env=environment | {"HOME": str(tmp_path)},
        check=True,
        timeout=60,
    )
    assert list(tmp_path.iterdir()) == []


def test_the_exact_kernel_is_for_processors_without_vnni_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "has_vnni", lambda: False)
    assert cpu_session_options(1).get_session_config_entry(EXACT) == "1"
    # With it ONNX Runtime rewrites graphs there too: encoders are a quarter slower, and no judge can be opened.
    monkeypatch.setattr(runtime, "has_vnni", lambda: True)
    with pytest.raises(RuntimeError, match=EXACT):
        cpu_session_options(1).get_session_config_entry(EXACT)


def test_onnx_runtime_is_quiet_only_while_a_session_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[int] = []
    monkeypatch.setattr(onnxruntime, "set_default_logger_severity", levels.append)

    def fail() -> None:
        with without_plugin_warning():
            assert levels == [3], "errors are logged, such as a library that is missing"
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - it has no message
        fail()
    assert levels == [3, 2]
