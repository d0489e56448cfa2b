"""Programs that check what lies in deploy/."""

import multiprocessing
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import compose
import pytest
from click.testing import CliRunner
from deploy.local.prometheus_binary import PrometheusBinaries, prometheus_binaries
from tests.deploy.rendering import HelmChart

from gradewire_models.cli.group import models

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="session")
def prometheus() -> PrometheusBinaries:
    """The real ones; `make up` takes them from the same place."""
    return prometheus_binaries()


@pytest.fixture(scope="session")
def promtool(prometheus: PrometheusBinaries) -> Callable[..., str]:
    """Runs promtool with arguments; fails with its words when it is not content."""
    return lambda *arguments: run(str(prometheus.promtool), *arguments)


@pytest.fixture(scope="session")
def chart() -> Iterator[HelmChart]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(int).result(60)  # starts the process here, for all tests
        yield HelmChart(pool)


def run(*command: str, **variables: str) -> str:
    """Output of a program that has to succeed; it sees `variables` and a PATH."""
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", **variables}
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def hadolint() -> str:
    """The linter of Dockerfiles that a package has put beside Python."""
    return str(Path(sys.executable).with_name("hadolint"))


def docker_compose() -> str:
    """Docker Compose itself: the package's own script loses its exit code."""
    return str(Path(compose.__file__).with_name("docker-compose"))


def builds(command: Iterable[str]) -> bool:
    """Whether this is a `models …` of gradewire with options that it has."""
    group, *arguments = command
    # Help is shown once everything else has been parsed.
    return group == "models" and CliRunner().invoke(models, [*arguments, "--help"]).exit_code == 0


def flags_of(command: Iterable[str]) -> dict[str, str]:
    """Values of a command's flags, of those in a shell's script too; `--name value` and `--name=value`."""
    return dict(re.findall(r"--([\w-]+)[ =](?!--)(\S+)", " ".join(command)))
