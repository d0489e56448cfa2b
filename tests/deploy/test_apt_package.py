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


def test_a_package_that_is_not_there_is_named_and_leaves_no_tree(tmp_path: Path) -> None:
    with pytest.raises(PackageMissingError, match="no-such-package-of-debian"):
        unpacked("no-such-package-of-debian", cache=tmp_path)
    assert not list(tmp_path.glob("*/package"))


def test_without_apt_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PackageMissingError, match="no apt"):
        unpacked("wordnet-base", cache=tmp_path)
