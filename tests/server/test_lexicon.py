"""The engine's synonyms: found where WordNet's files are, told in words where they are not."""

import asyncio
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.meteor_score import meteor_score
from tests.support.debian.wordnet import nltk_reader, wordnet_files

from gradewire_server.domain.items import Failure, Item, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.lexicon import Thesaurus, WordNet, WordNetError, usual_directory
from gradewire_server.metrics.overlap.meteor import Meteor, MeteorParameters


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


# The sentences of NLTK's own examples.
GUIDE = "It is a guide to action which ensures that the military always obeys the commands of the party"
TROOPS = "It is to insure the troops forever hearing the activity guidebook that party direct"
REFERENCES = (
    "It is a guide to action that ensures that the military will forever heed Party commands",
    "It is the guiding principle which guarantees the military forces always being under the command of the Party",
    "It is the practical guide for the army always to heed the directions of the party",
)
WORDS = st.sampled_from(sorted({*f"{GUIDE} {TROOPS} {' '.join(REFERENCES)}".lower().split(), "guy", "man", "cars"}))
SENTENCES = st.lists(WORDS, min_size=1, max_size=12)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return nltk_reader(tmp_path_factory.mktemp("nltk") / "wordnet")


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return WordNet(wordnet_files())


def lemma_names(reader: Any, word: str) -> frozenset[str]:
    return frozenset(
        lemma.name() for synset in reader.synsets(word) for lemma in synset.lemmas() if "_" not in lemma.name()
    )


def run(wordnet: WordNet, program: Generator[Any, Any, Any]) -> Any:
    answers: Any = None
    try:
        while True:
            (need,) = program.send(answers)
            answers = ({word: wordnet.synonyms(word) for word in need.words},)
    except StopIteration as stop:
        return stop.value


def meteor(wordnet: WordNet, prediction: str, *references: str) -> float:
    score = run(wordnet, Meteor().score(Item("1", "", references, prediction), MeteorParameters(), NO_MODEL)).score
    assert isinstance(score, float)
    return score


@pytest.mark.parametrize(
    ("word", "some"),
    [
        ("car", {"car", "auto", "automobile"}),
        ("cars", {"car", "auto"}),  # the base form's
        ("men", {"man"}),  # by the list of exceptions
        ("guy", {"guy", "cat", "bozo"}),
        ("galore", {"galore", "abounding"}),  # stands in the file as galore(ip)
        ("paris", {"Paris"}),  # in its own case, as in the file
    ],
)
def test_synonyms(wordnet: WordNet, word: str, some: set[str]) -> None:
    assert some <= wordnet.synonyms(word)


@pytest.mark.parametrize(
    "word", ["", "zzzz", "猫", "é", "~", "or the", "x\ny", "car ", "x" * 100_000, "the", "_", "(p)"]
)
def test_what_wordnet_does_not_know_has_no_synonyms(wordnet: WordNet, word: str) -> None:
    assert wordnet.synonyms(word) == frozenset()


def test_they_are_those_of_nltks_reader(wordnet: WordNet, reader: Any) -> None:
    lemmas: set[str] = set()
    for name in ("index.noun", "index.verb", "index.adj", "index.adv", "noun.exc", "verb.exc"):
        text = (wordnet_files() / name).read_text(encoding="ascii")
        lines = [line.split()[0] for line in text.splitlines() if not line.startswith(" ")]
        lemmas |= {lines[0], lines[-1], *lines[7 :: len(lines) // 50]}
    words = {lemma + ending for lemma in lemmas for ending in ("", "s", "es", "ed", "ing", "er", "est", "men")}
    assert {word for word in words if wordnet.synonyms(word) != lemma_names(reader, word)} == set()


@pytest.mark.parametrize(
    ("prediction", "references", "score"),
    # values that NLTK's documentation states
    [
        (GUIDE, REFERENCES[:1], 0.6944),
        (GUIDE, REFERENCES, 0.6944),
        ("non matching hypothesis", ("this is a cat",), 0.0),
    ],
)
def test_meteor_is_that_of_nltks_examples(
    wordnet: WordNet, prediction: str, references: tuple[str, ...], score: float
) -> None:
    assert meteor(wordnet, prediction, *references) == pytest.approx(score, abs=5e-5)


@given(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=3))
@settings(deadline=None)
def test_meteor_is_nltks(wordnet: WordNet, reader: Any, prediction: list[str], references: list[list[str]]) -> None:
    theirs = meteor_score(references, prediction, wordnet=reader)
    assert meteor(wordnet, " ".join(prediction), *map(" ".join, references)) == pytest.approx(theirs, abs=1e-12)


def test_synonyms_raise_the_score(wordnet: WordNet) -> None:
    # "guy" and "cat" share a sense: all three words match, in one chunk
    assert meteor(wordnet, "the guy sat", "the cat sat") == pytest.approx(53 / 54)


@pytest.mark.parametrize("missing", ["index.noun", "data.adv", "verb.exc"])
def test_a_missing_file_is_told(tmp_path: Path, missing: str) -> None:
    shutil.copytree(wordnet_files(), tmp_path, dirs_exist_ok=True)
    (tmp_path / missing).unlink()
    with pytest.raises(FileNotFoundError, match=missing):
        WordNet(tmp_path)


def test_files_of_another_format_are_told(tmp_path: Path) -> None:
    for name in ("noun", "verb", "adj", "adv"):
        for kind in (f"index.{name}", f"data.{name}", f"{name}.exc"):
            (tmp_path / kind).write_text("something else\n")
    with pytest.raises(WordNetError, match=r"lack the word .cat."):
        WordNet(tmp_path)
    (tmp_path / "index.noun").write_text("")
    with pytest.raises(ValueError, match="empty"):
        WordNet(tmp_path)


def test_data_that_do_not_fit_the_index_are_told(tmp_path: Path) -> None:
    shutil.copytree(wordnet_files(), tmp_path, dirs_exist_ok=True)
    data = tmp_path / "data.noun"
    data.write_bytes(b"x" + data.read_bytes())
    with pytest.raises(WordNetError, match="data at"):
        WordNet(tmp_path)


def test_the_senses_of_nouns_are_nltks_in_its_order(wordnet: WordNet, reader: Any) -> None:
    for phrase in ("car", "seed", "united kingdom", "edward iv", "hot dog", "turkey", "goose"):
        senses = wordnet.noun_senses(phrase)
        lemma = phrase.replace(" ", "_")
        expected = [synset.lemma_names() for synset in reader.synsets(lemma, "n")]
        assert [[name.replace(" ", "_") for name in sense] for sense in senses] == expected
        assert expected
    assert wordnet.noun_senses("United  Kingdom".lower()) == wordnet.noun_senses("united kingdom")
    for unknown in ("", " ", "zzxy", "caf\u00e9 x", "x" * 10**6):
        assert wordnet.noun_senses(unknown) == ()
