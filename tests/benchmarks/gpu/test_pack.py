"""Tests of what `benchmarks/gpu.sh pack` packs for each machine. Wheels and models are small local files."""

import shutil
import subprocess
import zipfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.gpu import pack
from benchmarks.gpu.pack import GRAPH_WRITER, JUDGE_CLIENT, PACKAGES, Packing, Plan, gather, planned
from benchmarks.gpu.wheels import Target, installed_there, needed

FREEZE = "torch==2.11.0+cu130\nPyYAML==6.0.3\nsome-project @ file:///opt/some\n"
FILES = {
    "vllm": (
        "vllm/__init__.py",
        "vllm/vllm-rs",
        "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so",
        "vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so",
        "vllm/third_party/deep_gemm/_C.so",
        "vllm/model_executor/layers/quantization/__init__.py",
    ),
    "numpy": ("numpy/__init__.py", "numpy/__init__.pyi", "numpy/tests/test_all.py"),
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the script, in which packs are made."""

    def download(requirements: Sequence[str], directory: Path, _: Target) -> None:
        directory.mkdir(parents=True)
        for name in (requirement.split("==")[0] for requirement in requirements):
            with zipfile.ZipFile(directory / f"{name}-1-py3-none-any.whl", "w") as wheel:
                for file in FILES.get(name, (f"{name.replace('-', '_')}/__init__.py",)):
                    wheel.writestr(file, "")

    def build(name: str) -> None:
        monkeypatch.setattr(pack, name, lambda packing: write_model(packing, name))

    def write_model(packing: Packing, name: str) -> None:
        directory = packing.scratch / name / "models"
        directory.mkdir(parents=True)
        (directory / name).touch()
        packing.add(name, name, directory)

    machine = tmp_path / "machine"
    (machine / "benchmarks").mkdir(parents=True)
    shutil.copy(pack.ROOT / "benchmarks" / "gpu.sh", machine / "benchmarks")
    (machine / "python").write_text("#!/bin/sh\n")
    (machine / "python").chmod(0o755)
    monkeypatch.setattr(pack, "PACK", machine / ".gpu-pack")
    monkeypatch.setattr(pack, "download", download)
    monkeypatch.setattr(pack, "needed", lambda requirement, _target: [requirement, "blake3==1"])
    monkeypatch.setattr(pack, "DEFAULT_DATA", tmp_path / "rows.jsonl")
    build("add_encoders")
    build("add_drawn_encoder")
    return machine


def plan(*, max_mb: float = 1e6, whole: bool = True, freeze: str = "", tmp_path: Path) -> Plan:
    (tmp_path / "freeze").write_text(freeze)
    return Plan(max_mb, 0.001, whole, Target("3.12", installed_there(tmp_path / "freeze")))


def files_after(machine: Path) -> set[str]:
    """The files after the script has joined the parts."""
    command = ["bash", str(machine / "benchmarks" / "gpu.sh")]
    given = {"PATH": "/usr/bin:/bin", "PYTHON": str(machine / "python")}
    done = subprocess.run(command, env=given, check=False)
    assert done.returncode == 0
    pack = machine / ".gpu-pack"
    return {str(path.relative_to(pack)) for path in pack.rglob("*") if path.is_file()}


def test_a_whole_pack_for_a_machine_with_torch_has_vllm_but_no_library_of_nvidia(machine: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}\n")
    lines = gather(plan(freeze=FREEZE, tmp_path=tmp_path))
    assert {state for *_, state in lines} == {"in"}
    files = files_after(machine)
    assert {f"site/{name.replace('-', '_')}/__init__.py" for name in (*PACKAGES, *JUDGE_CLIENT, *GRAPH_WRITER)} <= files
    assert {"models/add_encoders", "rows/rows.jsonl", "gpu-site/onnxruntime_gpu/__init__.py"} <= files
    assert not any("nvidia" in file for file in files)
    assert {file for file in files if file.startswith("vllm-site")} == {
        "vllm-site/blake3/__init__.py",
        "vllm-site/vllm/__init__.py",
        "vllm-site/vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so",
        "vllm-site/vllm/model_executor/layers/quantization/__init__.py",
    }
    assert not any("tests" in file or file.endswith(".pyi") for file in files)
    assert (machine / ".gpu-pack" / "site" / "python-version").read_text() == "3.12"


def test_a_whole_pack_for_a_machine_without_torch_has_cuda_but_no_vllm(machine: Path, tmp_path: Path) -> None:
    lines = gather(plan(tmp_path=tmp_path))
    left_out = {title: state for title, _, state in lines if state != "in"}
    assert left_out == {
        "rows of EVOUNA": "left out: python -m benchmarks.data get brings them",
        "vllm==0.23.0": "left out: it needs torch 2.11.0 there; --machine says none",
    }
    assert "gpu-site/nvidia_cublas/__init__.py" in files_after(machine)


def test_a_small_pack_has_a_drawn_encoder_and_no_cuda(machine: Path, tmp_path: Path) -> None:
    room_mb = pack.tree_mb() + 5
    lines = gather(plan(max_mb=room_mb, whole=False, tmp_path=tmp_path))
    assert [title for title, _, state in lines if state.startswith("left out: no room")] == [
        "onnxruntime-gpu==1.31.1",
        *pack.CUDA_MB,
    ]
    files = files_after(machine)
    assert "models/add_drawn_encoder" in files
    assert not any(file.startswith(("gpu-site", "vllm-site", "rows")) for file in files)


def test_packages_of_single_steps_are_left_out_without_room(machine: Path, tmp_path: Path) -> None:
    lines = gather(plan(max_mb=pack.tree_mb(), whole=False, tmp_path=tmp_path))
    states = {title: state for title, _, state in lines}
    assert states[f"{len(JUDGE_CLIENT)} packages that call a judge's server"] == "left out"
    assert states[f"{len(PACKAGES)} packages for Python 3.12, repacked"] == "in"
    assert "site/httpx2/__init__.py" not in files_after(machine)


def test_options_make_a_plan(tmp_path: Path) -> None:
    (tmp_path / "freeze").write_text(FREEZE)
    small = planned(Namespace(pieces=None, max_mb=None, python="3.11", machine=None))
    assert (small.max_mb, small.whole, small.target) == (96.0, False, Target("3.11"))
    whole = planned(Namespace(pieces=60.0, max_mb=None, python="3.12", machine=tmp_path / "freeze"))
    assert (whole.max_mb, whole.part_mb, whole.whole) == (float("inf"), 60.0, True)
    assert whole.target == Target("3.12", {"torch": "2.11.0", "pyyaml": "6.0.3"})
    assert whole.target.has_torch


def test_vllm_brings_what_the_machine_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "uv"
    uv.write_text(
        f"#!/bin/sh\ncat >{tmp_path}/given\n"
        "printf 'blake3==1.0\\npyyaml==6.0.3\\nsix==1.17\\ntorch==2.11.0\\nnvidia-cublas==13\\nvllm==0.23.0\\n'\n"
    )
    uv.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    target = Target("3.12", {"pyyaml": "6.0.3", "six": "1.16"})
    assert needed("vllm==0.23.0", target) == ["blake3==1.0", "six==1.17", "vllm==0.23.0"]
    assert (tmp_path / "given").read_text() == "vllm==0.23.0"
    uv.write_text("#!/bin/sh\necho no way >&2\nexit 1\n")
    with pytest.raises(SystemExit, match=r"uv finds no versions for vllm==0\.23\.0: no way"):
        needed("vllm==0.23.0", target)
