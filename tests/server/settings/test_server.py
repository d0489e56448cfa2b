"""How many processes serve, and what each of them gets."""

from pathlib import Path

import pytest

from gradewire_server.settings.gpus import GpuShare, VisibleGpu
from gradewire_server.settings.server import Settings
from gradewire_server.settings.setting import SettingsError
from gradewire_server.settings.shares import process_count, shared_bytes

_GIB = 1 << 30


def _given(tmp_path: Path, **values: object) -> Settings:
    return Settings.load(**({"disk_directory": tmp_path, "judge_backend": "none", "memory_limit": 64 * _GIB} | values))


@pytest.mark.parametrize(("cores", "count"), [(1, 1), (2, 1), (3, 1), (4, 2), (16, 8), (96, 8)])
def test_the_default_follows_the_cores(tmp_path: Path, cores: int, count: int) -> None:
    assert process_count(_given(tmp_path).given, cores=cores) == count


def test_the_default_follows_memory_and_what_is_shared(tmp_path: Path) -> None:
    assert process_count(_given(tmp_path, memory_limit=3 * _GIB).given, cores=16) == 3
    assert process_count(_given(tmp_path, judge_backend="embedded").given, cores=16) == 8
    assert process_count(_given(tmp_path, disk_directory="").given, cores=16) == 1
    assert process_count(_given(tmp_path, processes=5).given, cores=2) == 5


@pytest.mark.parametrize(
    ("device", "cores", "memory_gib", "gpus", "count"),
    [
        ("cuda", 16, 64, [VisibleGpu(0, 80 * _GIB)], 8),
        ("cuda", 5, 64, [VisibleGpu(0, 80 * _GIB)], 2),
        ("cuda", 16, 9, [VisibleGpu(0, 80 * _GIB)], 4),
        ("cuda", 16, 64, [VisibleGpu(0, 5 * _GIB)], 3),
        ("cuda", 16, 64, [VisibleGpu(0, _GIB // 2)], 1),
        ("cuda", 16, 64, [VisibleGpu(0, 3 * _GIB), VisibleGpu(1, 3 * _GIB)], 4),
        ("cuda:1", 16, 64, [VisibleGpu(0, 80 * _GIB), VisibleGpu(1, 3 * _GIB)], 2),
        ("cuda", 16, 64, [VisibleGpu(0, 80 * _GIB, exclusive=True)], 1),
        ("cuda", 16, 64, [VisibleGpu(0, 0, exclusive=True), VisibleGpu(1, 0, exclusive=True)], 2),
        ("cuda", 16, 64, [], 1),
        ("auto", 16, 64, [VisibleGpu(0, 0, exclusive=True)], 8),
    ],
)
def test_the_default_follows_the_gpus(
    tmp_path: Path, device: str, cores: int, memory_gib: int, gpus: list[VisibleGpu], count: int
) -> None:
    given = _given(tmp_path, device=device, memory_limit=memory_gib * _GIB).given
    assert process_count(given, cores=cores, gpus=gpus) == count


def test_a_number_that_is_set_wins_unless_the_gpus_let_fewer_processes_in(tmp_path: Path) -> None:
    given = _given(tmp_path, device="cuda:1", processes=5).given
    assert process_count(given, cores=2, gpus=[VisibleGpu(0, 0, exclusive=True), VisibleGpu(1, 0)]) == 5
    with pytest.raises(SettingsError, match=r"exclusive compute mode. Set processes = 1, or run: nvidia-smi"):
        process_count(given, cores=2, gpus=[VisibleGpu(1, 80 * _GIB, exclusive=True)])


def test_several_without_what_they_share_are_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="set disk_directory or redis_url"):
        process_count(_given(tmp_path, disk_directory="", processes=2).given)


def test_a_share_is_its_part_of_what_is_set_for_all(tmp_path: Path) -> None:
    values = {
        "disk_directory": tmp_path,
        "judge_backend": "none",
        "memory_limit": 4 * _GIB,
        "workers": 3,
        "max_connections": 101,
        "http_api_port": 0,
        "gpu_memory_limit": 2 * _GIB,
    }
    share = Settings.load_share(2, **values)
    assert share.given["gpu_memory_limit"] == _GIB
    # Half of the supervisor's, the gateway's, and what both processes share.
    assert share.memory.limit_bytes == 2 * _GIB - (32 << 20) - (320 << 20) - (128 << 20)
    assert share.engine.compute.worker_count == 2
    assert share.engine.cache.remembered_results_max_bytes == 16 << 20
    assert share.capacity.max_connections == 51
    assert (share.capacity.max_items, share.capacity.max_streams) == (16384 // 2, 1024 // 2)
    assert share.capacity.max_bytes == share.capacity.max_stream_bytes == 120 << 20
    assert share.http_api.port is None
    assert share.listen.http_port is None


def test_a_gpu_is_shared_by_the_processes_that_use_it(tmp_path: Path) -> None:
    values = {"disk_directory": tmp_path, "gpu_memory_limit": 4 * _GIB}
    for device, gpu, expected, limit in [
        ("cuda", GpuShare("cuda:1", 2), "cuda:1", 2 * _GIB),
        ("cuda:1", GpuShare("cuda:1", 4), "cuda:1", _GIB),
        ("cuda", None, "cuda", _GIB),
        # The setting was changed since the server started.
        ("cpu", GpuShare("cuda:1", 2), "cpu", _GIB),
        ("cuda:0", GpuShare("cuda:1", 2), "cuda:0", _GIB),
    ]:
        share = Settings.load_share(4, gpu, **values, device=device)
        assert share.engine.gpu.device == expected
        assert share.engine.gpu.memory_limit_bytes == limit


def test_what_the_judge_gets_is_set_once_for_all_processes(tmp_path: Path) -> None:
    values = {"disk_directory": tmp_path, "memory_limit": 4 * _GIB, "judge_threads": 3}
    share = Settings.load_share(2, **values)
    judge = share.engine.judge
    assert judge.embedded is not None
    assert judge.embedded.threads == 3
    assert share.memory.limit_bytes == 2 * _GIB - (80 << 20) - (128 << 20)


@pytest.mark.parametrize(
    ("limit", "count", "expected"),
    [(4 * _GIB, 1, 0), (4 * _GIB, 2, 256 << 20), (2 * _GIB, 2, 96 << 20), (_GIB, 2, 16 << 20)],
)
def test_shared_memory_is_a_share_of_what_the_processes_leave(
    tmp_path: Path, limit: int, count: int, expected: int
) -> None:
    assert shared_bytes(_given(tmp_path, memory_limit=limit).given, count) == expected


@pytest.mark.parametrize("count", [2, 3, 4])
def test_shared_memory_that_is_set_is_a_part_of_the_limit(tmp_path: Path, count: int) -> None:
    values = {"disk_directory": tmp_path, "judge_backend": "none", "memory_limit": 8 * _GIB, "shared_max_bytes": "1GiB"}
    share = Settings.load_share(count, **values)
    assert shared_bytes(Settings.load(**values).given, count) == _GIB
    assert count * share.memory.limit_bytes <= 7 * _GIB - (64 << 20)
