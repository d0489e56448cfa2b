"""The browser of the tests is found again without apt, which may have no network."""

import os
from pathlib import Path

import pytest
from tests.support.debian.apt import PackageMissingError
from tests.support.debian.chromium import headless_chromium


def test_a_browser_taken_before_is_used_without_asking_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tree(name: str, *, exit_status: int, taken_s: int) -> Path:
        root = tmp_path / f"chromium-headless-shell-{name}" / "package"
        program = root / "usr/lib/chromium/chromium-headless-shell"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\nexit {exit_status}\n")
        program.chmod(0o755)
        os.utime(root, (taken_s, taken_s))
        return program

    monkeypatch.setenv("PATH", "")  # neither a browser nor apt
    tree("0123456789ab", exit_status=127, taken_s=2)  # as when a library of the machine's is gone
    with pytest.raises(PackageMissingError, match="no apt"):
        headless_chromium(cache=tmp_path)
    works = tree("ba9876543210", exit_status=0, taken_s=1)
    assert headless_chromium(cache=tmp_path).program == works
