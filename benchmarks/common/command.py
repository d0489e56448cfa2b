"""The command `gradewire`, as benchmarks run it."""

import subprocess
import sys
from pathlib import Path
from typing import Final

GRADEWIRE: Final = str(Path(sys.executable).with_name("gradewire"))


def run_gradewire(*arguments: object) -> None:
    """Runs the command, arguments as `str` writes them; where it fails, ends the program with its exit code."""
    if code := subprocess.run([GRADEWIRE, *map(str, arguments)], check=False).returncode:
        raise SystemExit(code)
