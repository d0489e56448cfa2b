import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from gradewire_models.build import verify_built
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
