from pathlib import Path

import pytest

from gradewire_server.engine.judge.processor import computes_int8_well


@pytest.mark.parametrize(
    ("text", "well"),
    [
        ("processor: 0\nflags\t\t: fpu avx2 avx512_vnni\n", True),
        ("flags : avx2 avx_vnni", True),
        ("flags : avx2 avx512f avx512bw", False),
        ("flags : avx512_vnni_not_quite", False),
        ("Features\t: fp asimd asimddp", True),
        ("", False),
    ],
)
def test_it_takes_dot_products_of_bytes(tmp_path: Path, text: str, *, well: bool) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(text)
    assert computes_int8_well(info) is well


def test_a_system_that_does_not_say_does_not(tmp_path: Path) -> None:
    assert not computes_int8_well(tmp_path / "cpuinfo")
