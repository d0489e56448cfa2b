import platform
from pathlib import Path

import pytest

from gradewire_models.processor import computes_int8, has_vnni

CASES = {
    "flags\t\t: fpu avx2 avx512f avx512_vnni\n": True,
    "processor : 0\nflags : fpu avx2 avx_vnni sha_ni\n": True,
    "flags\t\t: fpu avx2 fma avx512f avx512bw\n": False,
    "model name : avx512_vnni\nflags : avx2\n": False,
    "": False,
}


@pytest.mark.parametrize(("text", "has"), CASES.items())
def test_vnni_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, has: bool) -> None:  # noqa: FBT001 - a parameter
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    path = tmp_path / "cpuinfo"
    path.write_text(text, encoding="utf-8")
    assert has_vnni(path) is has


def test_where_it_is_not_known_the_answer_is_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not has_vnni(tmp_path / "not there")
    path = tmp_path / "cpuinfo"
    path.write_text("flags : avx512_vnni\n", encoding="utf-8")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert not has_vnni(path)


@pytest.mark.parametrize(("machine", "computes"), [("x86_64", True), ("AMD64", True), ("aarch64", False)])
def test_the_int8_form_is_for_x86(monkeypatch: pytest.MonkeyPatch, machine: str, computes: bool) -> None:  # noqa: FBT001 - a parameter
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert computes_int8() is computes
