import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.models.tiny_models import Package, tiny_tokenizer
from tokenizers import Tokenizer

from gradewire_models.build.install import build_model
from gradewire_models.build.progress import ignore
from gradewire_models.build.publish import exchange, publish_model, workspace, write_tokenizer
from gradewire_models.errors import BuildError
from gradewire_models.repository.built import BuiltModel, load_built

SWAPS = 25


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory, bert: Package) -> list[BuiltModel]:
    """The tiny model for two lengths: other graphs, tokenizers and digests under one name."""
    models = [replace(bert.model, max_tokens=tokens) for tokens in (150, 100)]
    roots = [tmp_path_factory.mktemp("kind") for _ in models]
    return [build_model(model, root, wheels=bert.wheels).model for model, root in zip(models, roots, strict=True)]


def put(model: BuiltModel, repository: Path) -> None:
    with workspace(repository, model.name, ignore) as directory:
        shutil.copytree(model.directory, directory / model.name)
        publish_model(directory / model.name, repository)


@contextmanager
def meanwhile(repository: Path, kinds: list[BuiltModel]) -> Iterator[None]:
    """Replaces the model over and over while the body runs, and at least `SWAPS` times."""
    over = threading.Event()

    def swap() -> None:
        done = 0
        while done < SWAPS or not over.is_set():
            put(kinds[done % 2], repository)
            done += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_the_name_is_never_missing_while_a_model_is_replaced(tmp_path: Path, kinds: list[BuiltModel]) -> None:
    put(kinds[1], tmp_path)
    path = str(tmp_path / kinds[0].name / "config.pbtxt")
    with meanwhile(tmp_path, kinds):
        found = [os.path.exists(path) for _ in range(100_000)]  # noqa: PTH110 - as quick as can be
    assert all(found)


def test_who_reads_meanwhile_gets_the_one_or_the_other(tmp_path: Path, kinds: list[BuiltModel]) -> None:
    put(kinds[1], tmp_path)
    digests = {model.digest for model in kinds}
    with meanwhile(tmp_path, kinds):
        seen: list[BuiltModel] = []
        while len(seen) < 60 or {model.digest for model in seen} != digests:
            seen.append(load_built(tmp_path, kinds[0].name))
    for model in seen:
        (kind,) = (kind for kind in kinds if kind.digest == model.digest)
        assert (model.max_tokens, model.fingerprint) == (kind.max_tokens, kind.fingerprint)


def test_each_replacement_is_the_next_version(tmp_path: Path, kinds: list[BuiltModel]) -> None:
    for number in range(4):
        put(kinds[number % 2], tmp_path)
        assert load_built(tmp_path, kinds[0].name).version == number + 1
    put(kinds[1], tmp_path)
    assert load_built(tmp_path, kinds[0].name).version == 4


def test_without_an_exchange_a_model_is_replaced_all_the_same(
    tmp_path: Path, kinds: list[BuiltModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradewire_models.build.publish.exchange", lambda _one, _other: False)
    for kind in kinds:
        put(kind, tmp_path)
        assert load_built(tmp_path, kind.name).digest == kind.digest
    assert {path.name for path in tmp_path.iterdir()} == {kinds[0].name, f".{kinds[0].name}.lock"}


def test_an_exchange_with_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(FileNotFoundError, match="other"):
        exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "one").is_dir()


def test_padding_is_off_and_the_length_is_the_models(tmp_path: Path) -> None:
    source, target = tmp_path / "source.json", tmp_path / "target.json"
    source.write_bytes(tiny_tokenizer())
    assert len(Tokenizer.from_file(str(source)).encode("w1").ids) == 128
    write_tokenizer(source, target, max_tokens=20)
    tokenizer = Tokenizer.from_file(str(target))
    assert tokenizer.encode("w1 w2").ids == [2, 5, 6, 3]
    assert len(tokenizer.encode("w1 " * 100).ids) == 20
    assert tokenizer.encode("w1 " * 100).ids[-1] == 3
    changed = {"padding", "truncation"}
    before, after = json.loads(source.read_text()), json.loads(target.read_text())
    assert {key: value for key, value in before.items() if key not in changed} == {
        key: value for key, value in after.items() if key not in changed
    }


@pytest.mark.parametrize("content", [b"no json", b"[1]", b"\xff"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "source.json"
    source.write_bytes(content)
    with pytest.raises(BuildError, match="not a tokenizer"):
        write_tokenizer(source, tmp_path / "target.json", max_tokens=20)
