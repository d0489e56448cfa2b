"""Packages come as they are, together with those they need, and a failure leaves nothing that looks whole."""

from pathlib import Path

import pytest
from deploy.local.apt_package import PackageMissingError, unpacked


def test_the_tree_holds_the_packages_files_and_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = unpacked("wordnet-sense-index", "netbase", cache=tmp_path)
    assert (tree / "usr/share/wordnet/index.sense").stat().st_size > 1_000_000
    assert (tree / "etc/services").exists()
    monkeypatch.setenv("PATH", "")  # a second download would have no apt
    assert unpacked("wordnet-sense-index", "netbase", cache=tmp_path) == tree


def test_a_package_that_is_not_there_is_named_and_leaves_no_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("apt-get", "dpkg-deb"):
        program = programs / name
        program.write_text('#!/bin/sh\necho "E: Unable to locate package $9" >&2\nexit 100\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/bin")
    with pytest.raises(PackageMissingError, match="Unable to locate"):
        unpacked("no-such-package", cache=tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache" / "no-such-package").iterdir()] == ["lock"]


def test_without_apt_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PackageMissingError, match="no apt"):
        unpacked("wordnet-base", cache=tmp_path)
