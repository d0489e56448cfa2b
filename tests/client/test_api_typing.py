"""Who checks types finds a wrong option of a call before it is made."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
from gradewire import AsyncClient, Client
client = Client()
client.score([], "smile", preset="fast", judge=None, deadline_s=1.0, progress=None)
client.prepare([], generate=True, synthetic="prepared", model="m")
client.score([], presett="fast")
client.score_stream([], preset="slow")
client.prepare([], judge="j")
client.submit([], model=3)
AsyncClient().submit([], jugde="j")
"""


def test_wrong_options_are_found_by_name_and_by_type(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    sources = os.pathsep.join(str(ROOT / folder) for folder in ("proto/src", "client/src"))
    check = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--cache-dir", str(tmp_path), str(program)]
    done = subprocess.run(
        check, cwd=tmp_path, env=os.environ | {"MYPYPATH": sources}, capture_output=True, text=True, check=False
    )
    errors = [line.partition("program.py:")[2] for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.partition(":")[0] for line in errors] == ["6", "7", "8", "9", "10"], done.stdout + done.stderr
    found = ("presett", "slow", '"judge" for "prepare"', '"model" to "submit"', "jugde")
    assert all(name in error for name, error in zip(found, errors, strict=True)), errors
