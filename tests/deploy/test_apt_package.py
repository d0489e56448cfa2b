"""Packages come as they are, together with those they need, and a failure leaves nothing that looks whole."""

import socket
from pathlib import Path

import pytest
from deploy.local.apt_package import PackageMissingError, unpacked, unpacked_before


def test_the_tree_holds_the_packages_files_and_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = unpacked("wordnet-sense-index", "netbase", cache=tmp_path)
    assert (tree / "usr/share/wordnet/index.sense").stat().st_size > 1_000_000
    assert (tree / "etc/services").exists()
    monkeypatch.setenv("PATH", "")  # a second download would have no apt
    assert unpacked("wordnet-sense-index", "netbase", cache=tmp_path) == tree
    # Found again by who does not know the dependencies, and not taken for another package's.
    assert unpacked_before("wordnet-sense-index", cache=tmp_path) == [tree]
    assert unpacked_before("wordnet", cache=tmp_path) == []


def test_without_a_network_the_message_holds_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No lists, and a proxy on a port where nobody listens.
    lists = tmp_path / "lists"
    (lists / "partial").mkdir(parents=True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        proxy = f"http://127.0.0.1:{taken.getsockname()[1]}"
        configuration = tmp_path / "apt.conf"
        configuration.write_text(
            f'Dir::State::lists "{lists}";\nAcquire::Retries "0";\n'
            f'Acquire::http::Proxy "{proxy}";\nAcquire::https::Proxy "{proxy}";\n'
        )
        monkeypatch.setenv("APT_CONFIG", str(configuration))
        with pytest.raises(PackageMissingError, match=r"[Cc]onnect to 127\.0\.0\.1"):
            unpacked("wordnet-sense-index", cache=tmp_path / "cache")


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
    with pytest.raises(PackageMissingError, match="apt is missing"):
        unpacked("wordnet-base", cache=tmp_path)
