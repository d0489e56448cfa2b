"""The engine's synonyms: found where WordNet's files are, told in words where they are not."""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.support.debian.wordnet import wordnet_files

from gradewire_server.domain.result import Failure, Status
from gradewire_server.lexicon.thesaurus import Thesaurus, usual_directory


async def test_synonyms_by_word() -> None:
    thesaurus = Thesaurus(wordnet_files())
    found = await thesaurus.synonyms(("car", "zzzz"))
    assert not isinstance(found, Failure)
    assert "automobile" in found["car"]
    assert found["zzzz"] == frozenset()


async def test_many_may_ask_at_once() -> None:
    thesaurus = Thesaurus(wordnet_files())
    found = await asyncio.gather(*(thesaurus.synonyms(("car", f"word{n}")) for n in range(20)))
    assert all(not isinstance(each, Failure) and "auto" in each["car"] for each in found)


async def test_missing_files_are_told_with_what_to_do_and_found_when_they_come(tmp_path: Path) -> None:
    thesaurus = Thesaurus(tmp_path / "wordnet")
    failure = await thesaurus.synonyms(())
    assert isinstance(failure, Failure)
    assert failure.status is Status.MODEL_UNAVAILABLE
    for word in ("wordnet-base", "wordnet_directory", "synonyms=none"):
        assert word in failure.message
    assert str(tmp_path) not in failure.message  # a caller need not know where things lie on the server
    shutil.copytree(wordnet_files(), tmp_path / "wordnet")
    assert await thesaurus.synonyms(()) == {}


async def test_broken_files_are_told_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(wordnet_files(), tmp_path, dirs_exist_ok=True)
    (tmp_path / "data.verb").write_text("")
    failure = await Thesaurus(tmp_path).synonyms(("run",))
    assert isinstance(failure, Failure)
    assert failure.status is Status.MODEL_UNAVAILABLE
    assert str(tmp_path) in caplog.text


async def test_files_that_break_off_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(wordnet_files(), tmp_path, dirs_exist_ok=True)
    verbs = tmp_path / "data.verb"
    verbs.write_bytes(verbs.read_bytes()[:100_000] + b"x" * 1_000_000)
    failure = await Thesaurus(tmp_path).synonyms(("run", "throw", "walk"))
    assert isinstance(failure, Failure)
    assert "log" in failure.message
    assert "data at" in caplog.text


def test_the_usual_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WNSEARCHDIR", "WNHOME"):
        monkeypatch.delenv(name, raising=False)
    assert usual_directory() == Path("/usr/share/wordnet")
    monkeypatch.setenv("WNHOME", "/opt/wordnet")
    assert usual_directory() == Path("/opt/wordnet/dict")
    monkeypatch.setenv("WNSEARCHDIR", "/opt/dict")
    assert usual_directory() == Path("/opt/dict")
