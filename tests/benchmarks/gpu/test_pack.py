"""What `benchmarks/gpu.sh pack` packs where there is room for it; nothing is downloaded."""

import subprocess
import zipfile
from pathlib import Path

import pytest
from benchmarks.gpu.pack import JUDGE_CLIENT, gather_optional


@pytest.fixture
def packing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is packed into; each package is a wheel with one file."""

    def download(requirements: list[str], target: Path) -> None:
        target.mkdir(parents=True)
        for name in requirements:
            with zipfile.ZipFile(target / f"{name}-1-py3-none-any.whl", "w") as wheel:
                wheel.writestr(f"{name}/__init__.py", "")

    pack = tmp_path / "pack"
    pack.mkdir()
    monkeypatch.setattr("benchmarks.gpu.pack.PACK", pack)
    monkeypatch.setattr("benchmarks.gpu.pack.download", download)
    monkeypatch.setattr("benchmarks.gpu.pack.pinned", lambda names: names)
    return pack


def test_what_asks_a_judge_unpacks_beside_the_other_packages(packing: Path, tmp_path: Path) -> None:
    _, size_mb, state = gather_optional("judge-client", JUDGE_CLIENT, "call", tmp_path / "scratch", 1.0)
    assert state == "in"
    archive = packing / "judge-client.tar.xz"
    assert size_mb == archive.stat().st_size / 1e6
    (packing / "site").mkdir()
    unpack = ["tar", "-xJf", str(archive), "-C", str(packing)]  # as benchmarks/gpu.sh does
    subprocess.run(unpack, check=True)
    assert {path.parent.name for path in (packing / "site").glob("*/__init__.py")} == set(JUDGE_CLIENT)


def test_without_room_it_is_left_out(packing: Path, tmp_path: Path) -> None:
    _, _, state = gather_optional("judge-client", JUDGE_CLIENT, "call", tmp_path / "scratch", 0.0)
    assert state == "left out"
    assert list(packing.iterdir()) == []
