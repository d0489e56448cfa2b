"""Debian packages without installation: downloaded with apt and unpacked into the user's cache."""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import platformdirs

_TIMEOUT_S = 300


class PackageMissingError(RuntimeError):
    """An error for a package that cannot be downloaded; the message has the reason and the remedy."""


def unpacked(package: str, *dependencies: str, cache: Path | None = None) -> Path:
    """Unpack a package and its `dependencies` once, and return the tree's root; concurrent calls are safe.

    No package is configured and no script runs. To run a program from the tree, set its library path.

    Raises:
        PackageMissingError: apt is missing or cannot download a package.
    """
    names = (package, *dependencies)
    key = package
    if dependencies:
        key += "-" + hashlib.sha256(" ".join(sorted(dependencies)).encode()).hexdigest()[:12]
    directory = (cache or platformdirs.user_cache_path("gradewire")) / key
    directory.mkdir(parents=True, exist_ok=True)
    tree = directory / "package"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tree.exists():
            _unpack(names, directory, tree)
    return tree


def unpacked_before(package: str, *, cache: Path | None = None) -> list[Path]:
    """Return the unpacked trees with the package, newest first, whatever their dependencies."""
    directory = cache or platformdirs.user_cache_path("gradewire")
    trees = [*directory.glob(f"{package}/package"), *directory.glob(f"{package}-{'[0-9a-f]' * 12}/package")]
    return sorted(trees, key=lambda tree: tree.stat().st_mtime, reverse=True)


def _unpack(names: tuple[str, ...], directory: Path, tree: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise PackageMissingError(f"apt is missing; install {', '.join(names)} by hand")
    with tempfile.TemporaryDirectory(dir=directory) as scratch_name:
        scratch = Path(scratch_name)
        _download(names, scratch)
        archives = sorted(scratch.glob("*.deb"))
        if len(archives) != len(set(names)):
            raise PackageMissingError(f"apt downloaded {len(archives)} archives for {', '.join(names)}")
        for archive in archives:
            _run(["dpkg-deb", "--extract", str(archive), str(scratch / "package")], scratch)
        # Rename last, so that an interrupted download leaves nothing that looks complete.
        (scratch / "package").rename(tree)


def _download(names: tuple[str, ...], scratch: Path) -> None:
    """Download with the machine's package lists, or with new lists in `scratch` if the machine's fail."""
    command = ["apt-get", "--quiet", "--quiet", "-o", "APT::Sandbox::User=root"]
    private = ["-o", f"Dir::State={scratch}/state", "-o", f"Dir::Cache={scratch}/cache"]
    try:
        _run([*command, "download", *names], scratch)
    except PackageMissingError:
        for part in ("state/lists/partial", "cache/archives/partial"):
            (scratch / part).mkdir(parents=True)
        # Without this mode, apt reports success for an update that fetched nothing. Still try the download, because a
        # reachable archive may have the package.
        unreachable = ""
        try:
            _run([*command, *private, "-o", "APT::Update::Error-Mode=any", "update"], scratch)
        except PackageMissingError as error:
            unreachable = f"{error}; then "
        try:
            _run([*command, *private, "download", *names], scratch)
        except PackageMissingError as error:
            raise PackageMissingError(f"{unreachable}{error}. Install the missing packages by hand") from error


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
        raise PackageMissingError(f"cannot run `{command[0]}`: {error}") from error
    if done.returncode:
        words = " ".join(done.stderr.split())[:500]  # apt states the cause first
        raise PackageMissingError(f"`{command[0]}` failed: {words}")
