"""The table of installations, and how it is measured with a real pip that installs a package without an index."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from benchmarks import installation
from benchmarks.installation import Environment, Installation, InstallationError, extras, table

ROOT = Path(__file__).parents[2]


def test_every_extra_is_measured() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert extras() == ["none", *settings["project"]["optional-dependencies"]]


def test_the_table_has_a_line_for_each_and_a_mark_where_nothing_was_installed() -> None:
    both = [
        Installation("none", "23.0.1", 4.4, 2.6, 0, 6.5, 52.1, 10, 1.25),
        Installation("gpu", "26.3", 61, 33, 12, None, None, 60, 3),
    ]
    assert table(both).splitlines()[2:] == [
        "| none | 23.0.1 | 4 | 3 | 0 | 6 | 52 | 10 | 1.2 |",
        "| `gpu` | 26.3 | 61 | 33 | 12 | - | - | 60 | 3.0 |",
    ]


def test_files_of_releases_are_found_in_what_pip_says() -> None:
    said = (
        "Collecting a>=1\n  Downloading a-2-py3-none-any.whl (1.2 MB)\n"
        "  Downloading a-1-py3-none-any.whl.metadata (2 kB)\n"
        "Processing ./dist/b-1.0-py3-none-any.whl\n"
        "Processing /some/place/c-3.tar.gz\n  Using cached d-1-py3-none-any.whl\n"
        "  Downloading a-2-py3-none-any.whl (1.2 MB)\n     10.9/10.9 MB 65.2 MB/s\n"
    )
    found = set(installation._RELEASE.findall(said))
    assert found == {
        *("a-2-py3-none-any.whl", "a-1-py3-none-any.whl", "b-1.0-py3-none-any.whl", "c-3.tar.gz"),
        "d-1-py3-none-any.whl",
    }


def write_wheel(folder: Path, name: str, *needs: str) -> Path:
    """A wheel with one module, made without a build."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    needed = "".join(f"Requires-Dist: {each}\n" for each in needs)
    with ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", "#" * 100_000)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needed}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environment")


@pytest.fixture(scope="module")
def environment(folder: Path) -> Iterator[Environment]:
    """One with the pip that Python brings, which asks no index; each test installs packages of its own."""
    constraints = folder / "constraints.txt"
    constraints.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        yield Environment(folder, constraints)


def test_a_real_pip_is_measured(tmp_path: Path, environment: Environment, folder: Path) -> None:
    write_wheel(tmp_path, "needed")
    wheel = write_wheel(tmp_path, "ours", "needed")
    measured = environment.measure(f"ours @ {wheel.as_uri()}", tmp_path, extra="some", install=True)
    assert (measured.extra, measured.packages, measured.tried) == ("some", 2, 0)
    assert measured.size_mb is not None
    assert measured.size_mb == pytest.approx(0.2, abs=0.1)
    assert measured.resolve_s > 0
    assert measured.resolve_cpu_s > 0
    assert measured.install_s is not None
    assert list(folder.rglob("ours.py"))


def test_what_is_only_resolved_is_not_installed(tmp_path: Path, environment: Environment, folder: Path) -> None:
    wheel = write_wheel(tmp_path, "resolved_only")
    measured = environment.measure(f"resolved_only @ {wheel.as_uri()}", tmp_path, extra="some", install=False)
    assert (measured.packages, measured.install_s, measured.size_mb) == (1, None, None)
    assert not list(folder.rglob("resolved_only.py"))


def test_an_error_of_pip_is_told(tmp_path: Path, environment: Environment) -> None:
    wheel = write_wheel(tmp_path, "failing", "not_there")
    with pytest.raises(InstallationError, match="not_there"):
        environment.measure(f"failing @ {wheel.as_uri()}", tmp_path, extra="some", install=True)
