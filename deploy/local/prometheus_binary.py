"""Where Prometheus comes from without containers: the PATH, an earlier download, or Debian's package, unpacked."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from deploy.local.apt_package import PackageMissingError, unpacked


class PrometheusMissingError(RuntimeError):
    """Prometheus is not installed and cannot be downloaded; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class PrometheusBinaries:
    """Two programs of one version."""

    server: Path
    promtool: Path


def prometheus_binaries(cache: Path | None = None) -> PrometheusBinaries:
    """Finds Prometheus, or unpacks Debian's package into `cache`; two processes may ask at once.

    Args:
        cache: Directory for unpacked packages; the user's cache directory unless given.

    Raises:
        PrometheusMissingError: It is not installed, and apt cannot get it.
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
