"""Prometheus without containers: from the PATH, an earlier download, or Debian's unpacked package."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from deploy.local.apt_package import PackageMissingError, unpacked


class PrometheusMissingError(RuntimeError):
    """An error for a missing Prometheus that cannot be downloaded; the message has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class PrometheusBinaries:
    """The two programs in the same version."""

    server: Path
    promtool: Path


def prometheus_binaries(cache: Path | None = None) -> PrometheusBinaries:
    """Find Prometheus, or unpack Debian's package into `cache`; concurrent calls are safe.

    Raises:
        PrometheusMissingError: Prometheus is not installed, and apt cannot download it.
    """
    server, promtool = shutil.which("prometheus"), shutil.which("promtool")
    if server and promtool:
        return PrometheusBinaries(Path(server), Path(promtool))
    try:
        tree = unpacked("prometheus", cache=cache)
    except PackageMissingError as error:
        raise PrometheusMissingError(
            f"prometheus and promtool are not on PATH and cannot be downloaded: {error}"
        ) from error
    return PrometheusBinaries(tree / "usr/bin/prometheus", tree / "usr/bin/promtool")
