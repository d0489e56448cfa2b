"""How many cores there are to use."""

from pathlib import Path

import pytest

from gradewire_server.settings.engine import allowed_cores, usable_cores


@pytest.mark.parametrize(
    ("quota", "cores"), [("max 100000", None), ("150000 100000", 2), ("50000 100000", 1), ("nonsense", None)]
)
def test_a_containers_quota_counts(tmp_path: Path, quota: str, cores: int | None) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    available = len(allowed_cores())
    assert usable_cores(tmp_path / "cpu.max") == min(available, cores or available)
    assert usable_cores(tmp_path / "none") == available
