"""Tests that GPUs from nvidia-smi get CUDA's order, and that processes take turns on them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.settings.gpus import GPU_PROCESS_BYTES, GpuShare, VisibleGpu, gpu_shares, parse_gpus, visible_gpus
from gradewire_server.settings.server import Settings

LISTED = """\
0, GPU-aaaa1111-0000, 80000, Default
1, GPU-bbbb2222-0000, 40000, Exclusive_Process
2, GPU-cccc3333-0000, [N/A], Default
3, GPU-dddd4444-0000, 70000, Prohibited
"""
MIB = 1 << 20


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [(0, 80_000, False), (1, 40_000, True), (2, 0, False)]),
        ("0,1", [(0, 80_000, False), (1, 40_000, True)]),
        ("2, 0", [(0, 0, False), (1, 80_000, False)]),
        ("GPU-bbbb", [(0, 40_000, True)]),
        ("3,0", [(1, 80_000, False)]),  # CUDA counts the GPU that nobody may use
        ("0,9,1", [(0, 80_000, False)]),
        ("MIG-eeee,0", [(0, 0, False), (1, 80_000, False)]),
        ("", []),
        ("-1", []),
    ],
)
def test_gpus_have_the_indices_by_which_cuda_knows_them(
    visible: str | None, expected: list[tuple[int, int, bool]]
) -> None:
    found = [(gpu.index, gpu.free_bytes // MIB, gpu.exclusive) for gpu in parse_gpus(LISTED, visible)]
    assert found == expected


@settings(max_examples=example_count(100), deadline=None)
@given(st.text(max_size=200), st.none() | st.text(max_size=20))
def test_any_output_can_be_read(listed: str, visible: str | None) -> None:
    for gpu in parse_gpus(listed, visible):
        assert gpu.max_processes >= 1


@pytest.mark.parametrize(
    ("script", "count"),
    [("printf '0, GPU-a, 81559, Default\\n'", 1), ("echo 'No devices were found'; exit 6", 0), (None, 0)],
)
def test_nvidia_smi_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, count: int) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    if script is not None:
        command = tmp_path / "nvidia-smi"
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
    assert len(visible_gpus()) == count
    assert all(gpu.free_bytes == 81_559 * MIB for gpu in visible_gpus())


GPUS = st.lists(st.builds(VisibleGpu, st.just(0), st.just(0), exclusive=st.booleans()), min_size=1, max_size=5).map(
    lambda gpus: [VisibleGpu(index, gpu.free_bytes, exclusive=gpu.exclusive) for index, gpu in enumerate(gpus)]
)


@settings(max_examples=example_count(200), deadline=None)
@given(GPUS, st.integers(1, 20))
def test_gpus_take_turns_and_exclusive_ones_have_one(gpus: list[VisibleGpu], count: int) -> None:
    shares = gpu_shares({"device": "cuda"}, gpus, count)
    used = [share.device for share in shares]
    assert len(used) == count
    assert all(share.processes == used.count(share.device) for share in shares)
    assert len(set(used)) == min(count, len(gpus))
    shared = [gpu for gpu in gpus if not gpu.exclusive]
    if shared:
        for gpu in gpus:
            if gpu.exclusive:
                assert used.count(f"cuda:{gpu.index}") <= 1
        loads = [used.count(f"cuda:{gpu.index}") for gpu in shared]
        assert max(loads) - min(loads) <= 1


def test_a_gpu_that_is_nearly_full_has_no_further_turn() -> None:
    gpus = [VisibleGpu(0, 2 * GPU_PROCESS_BYTES), VisibleGpu(1, 16 * GPU_PROCESS_BYTES), VisibleGpu(2, 0)]
    used = [share.device for share in gpu_shares({"device": "cuda"}, gpus, 8)]
    assert [used.count(f"cuda:{index}") for index in range(3)] == [2, 5, 1]
    # More processes than there is room for are the user's wish.
    used = [share.device for share in gpu_shares({"device": "cuda"}, gpus, 22)]
    assert [used.count(f"cuda:{index}") for index in range(3)] == [3, 17, 2]


def test_without_a_choice_the_settings_decide(tmp_path: Path) -> None:
    gpus = [VisibleGpu(0, 0), VisibleGpu(1, 0)]
    assert gpu_shares({"device": "cuda:1"}, gpus, 3) == [GpuShare("cuda:1", 3)] * 3
    assert gpu_shares({"device": "auto"}, gpus, 2) == [GpuShare("auto", 2)] * 2
    assert gpu_shares({"device": "cuda"}, [], 2) == [GpuShare("cuda", 2)] * 2
    loaded = Settings.load(disk_directory=tmp_path, device="cpu")
    assert loaded.gpu_shares(2) == [GpuShare("cpu", 2)] * 2
