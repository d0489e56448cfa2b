"""Where Prometheus comes from without containers: the PATH, an earlier download, or Debian's package, unpacked."""

import fcntl
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

_PACKAGE = "prometheus"
_TIMEOUT_S = 300


class PrometheusMissingError(RuntimeError):
    """There is none, and none can be had; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class PrometheusBinaries:
    """Two programs of one version."""

    server: Path
    promtool: Path


def prometheus_binaries(cache: Path | None = None) -> PrometheusBinaries:
    """Finds Prometheus, or takes Debian's package into `cache`; two processes may ask at once.

    Args:
        cache: Directory for the unpacked package; the user's cache directory unless given.

    Raises:
        PrometheusMissingError: It is not installed, and apt cannot get it.
    """
    server, promtool = shutil.which("prometheus"), shutil.which("promtool")
    if server and promtool:
        return PrometheusBinaries(Path(server), Path(promtool))
    directory = cache or platformdirs.user_cache_path("gradewire") / "prometheus"
    directory.mkdir(parents=True, exist_ok=True)
    unpacked = directory / "package"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not unpacked.exists():
            _unpack(directory, unpacked)
    return PrometheusBinaries(unpacked / "usr/bin/prometheus", unpacked / "usr/bin/promtool")


def _unpack(directory: Path, unpacked: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise PrometheusMissingError("prometheus and promtool are not on PATH, and there is no apt to get them with")
    with tempfile.TemporaryDirectory(dir=directory) as scratch_name:
        scratch = Path(scratch_name)
        package = _download(scratch)
        _run(["dpkg-deb", "--extract", str(package), str(scratch / "package")], scratch)
        # Last, so that an interrupted download leaves nothing that looks whole.
        (scratch / "package").rename(unpacked)


def _download(scratch: Path) -> Path:
    """Takes the package by the machine's own package lists, or by fresh ones of ours where those are missing or old."""
    command = ["apt-get", "--quiet", "--quiet", "-o", "APT::Sandbox::User=root"]
    private = ["-o", f"Dir::State={scratch}/state", "-o", f"Dir::Cache={scratch}/cache"]
    try:
        _run([*command, "download", _PACKAGE], scratch)
    except PrometheusMissingError:
        for part in ("state/lists/partial", "cache/archives/partial"):
            (scratch / part).mkdir(parents=True)
        _run([*command, *private, "update"], scratch)
        _run([*command, *private, "download", _PACKAGE], scratch)
    return next(scratch.glob(f"{_PACKAGE}_*.deb"))


def _run(command: list[str], directory: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PrometheusMissingError(f"cannot get prometheus: {error}") from error
    if done.returncode:
        words = " ".join(done.stderr.split())[-500:]
        raise PrometheusMissingError(f"cannot get prometheus with `{' '.join(command)}`: {words}; install it by hand")
