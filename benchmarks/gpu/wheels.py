"""Download wheels for the Python of another machine, and unpack the files that a run there needs."""

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Final

UNUSED: Final = ("tests", "f2py", "tools", "quantization", "transformers", "datasets")
"""Folders of the server's packages that a run does not need."""
VLLM: Final = "vllm==0.23.0"
TORCH_OF_VLLM: Final = "2.11.0"
UNUSED_OF_VLLM: Final = ("*/_vllm_fa2_C*", "*/deep_gemm/*", "vllm/vllm-rs")
"""Files of vLLM that a Hopper card does not need: attention for older cards, a library for fp8, and a second server."""
UNUSED_BY_VLLM: Final = (
    "torch*",
    "triton",
    "nvidia-*",
    "cuda-*",
    "flashinfer-*",
    "tilelang",
    "fastsafetensors",
    "quack-kernels",
    "tokenspeed-*",
    "humming-kernels",
    "apache-tvm-ffi",
    "z3-solver",
    "opencv-python-headless",
)
"""Packages that torch brings, or that vLLM imports only for kernels and files that the run does not use."""
_PLATFORM: Final = "x86_64-manylinux_2_35"
_GLIBCS: Final = range(17, 36)
"""Minor versions of glibc whose wheels run on `_PLATFORM`; pip compares them exactly."""


@dataclass(frozen=True, slots=True)
class Target:
    """The Python of the machine that is measured.

    Attributes:
        python: The version, such as "3.12".
        installed: Versions of the packages there, by normalised name; empty if they are not known.
    """

    python: str
    installed: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_torch(self) -> bool:
        """True if torch, and therefore NVIDIA's libraries, are installed there."""
        return "torch" in self.installed

    def pip_options(self) -> list[str]:
        """Return the options with which pip chooses this Python's wheels."""
        named = f"cp{self.python.replace('.', '')}"
        options = ["--python-version", self.python, "--implementation", "cp", "--only-binary", ":all:"]
        options += [text for abi in (named, "abi3", "none") for text in ("--abi", abi)]
        return options + [text for minor in _GLIBCS for text in ("--platform", f"manylinux_2_{minor}_x86_64")]


def installed_there(freeze: Path) -> dict[str, str]:
    """Read the output of ``pip freeze``: versions without a local part such as +cu130, by normalised name.

    Raises:
        OSError: The file cannot be read.
    """
    pairs = (line.split("==", 1) for line in freeze.read_text("utf-8").splitlines() if "==" in line)
    return {normalised(name): version.split("+")[0].strip() for name, version in pairs}


def normalised(name: str) -> str:
    """Return a package's name as registries compare names."""
    return re.sub(r"[-_.]+", "-", name).strip().lower()


def pinned(names: Iterable[str]) -> list[str]:
    """Return requirements for the installed versions of packages.

    Raises:
        PackageNotFoundError: A package is not installed.
    """
    return [f"{name}=={version(name)}" for name in names]


def download(requirements: Sequence[str], directory: Path, target: Target) -> None:
    """Download wheels with pip, without dependencies; exit if pip fails."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(directory)]
    done = subprocess.run(
        [*command, *target.pip_options(), *requirements], check=False, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit(f"pip cannot download {', '.join(requirements)}: {done.stderr.strip()[-500:]}")


def needed(requirement: str, target: Target) -> list[str]:
    """Return the requirement and all that it needs, pinned, without what the machine has in the same version.

    The program exits if uv finds no versions that fit together.
    """
    command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    command += ["--only-binary", ":all:", "--python-version", target.python, "--python-platform", _PLATFORM, "-"]
    done = subprocess.run(command, input=requirement, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"uv finds no versions for {requirement}: {done.stderr.strip()[-500:]}")
    pairs = (line.split("==", 1) for line in done.stdout.split())
    return [
        f"{name}=={version}"
        for name, version in pairs
        if not any(fnmatch(name, pattern) for pattern in UNUSED_BY_VLLM) and target.installed.get(name) != version
    ]


def unpack_wheels(wheels: Path, site: Path, *, without: Sequence[str] = ()) -> None:
    """Unpack wheels, except for files that match a pattern of `without`."""
    site.mkdir(parents=True, exist_ok=True)
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            names = [
                name
                for name in archive.namelist()
                if not name.endswith(".pyi") and not any(fnmatch(name, pattern) for pattern in without)
            ]
            archive.extractall(site, names)


def remove_unused(site: Path) -> None:
    """Remove the folders of the server's packages that a run does not need."""
    for path in sorted(site.rglob("*")):
        if path.is_dir() and path.name in UNUSED and path.parent != site:
            shutil.rmtree(path)
