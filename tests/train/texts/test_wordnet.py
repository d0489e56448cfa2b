"""WordNet's files, read wholly."""

import gc
from pathlib import Path

import pytest
from tests.train.texts.tiny_wordnet import Entry, write_wordnet

from gradewire_train import TrainingError
from gradewire_train.texts.wordnet import Word, WordNet, usual_directory

ENTRIES = {
    "animal": Entry(["animal"]),
    "dog": Entry(["dog", "domestic dog"], 'a pet; "the dog barked"', above=["animal"]),
    "hot": Entry(["hot"], "warm", links=["! cold 0101"], part="a", topic=0),
    "cold": Entry(["cold(ip)"], "not warm", links=["! hot 0101"], part="a", topic=0),
    "icy": Entry(["icy"], "offensive to some", links=["& cold"], part="s", topic=0),
}


@pytest.fixture
def wordnet(tmp_path: Path) -> WordNet:
    return WordNet(write_wordnet(tmp_path, ENTRIES, {"dog%1:05:00::": 42, "icy%5:00:00:cold:00": 3}))


def test_a_synset_has_its_words_with_how_often_they_were_met_its_links_and_its_definition(wordnet: WordNet) -> None:
    (key,) = wordnet.senses["domestic dog"]
    synset = wordnet.synsets[key]
    assert synset.words == (Word("dog", 42), Word("domestic dog", 0))
    assert (synset.topic, synset.definition, synset.met) == (5, "a pet", 42)
    assert [wordnet.synsets[parent].words[0].text for parent in synset.linked("@")] == ["animal"]


def test_adjectives_lose_their_marks_and_satellites_are_found_where_adjectives_are(wordnet: WordNet) -> None:
    hot, cold, icy = (wordnet.synsets[key] for word in ("hot", "cold", "icy") for key in wordnet.senses[word])
    assert hot.antonyms() == ((cold.key, 1),)
    assert icy.linked("&") == (cold.key,)
    assert icy.met == 3


def test_words_that_insult_are_known_by_their_definition(wordnet: WordNet) -> None:
    assert [synset.words[0].text for synset in wordnet.synsets.values() if synset.coarse] == ["icy"]


@pytest.mark.parametrize(
    ("file", "broken"),
    [
        ("data.noun", "00001000 05 n 01 dog"),
        ("data.noun", "00001000 05 n zz dog 0 000 | a pet"),
        ("data.verb", "00001000 05 v 01 run 0 002 @ 00001000 | to go"),
        ("data.adv", "00001000 05 r 01 run 0 001 @ 00001000 n 00x0 | to go"),
        ("data.adj", "nonsense"),
        ("cntlist.rev", "dog%1:05:00::"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, file: str, broken: str) -> None:
    write_wordnet(tmp_path, ENTRIES)
    with (tmp_path / file).open("a") as lines:
        lines.write(broken + "\n")
    number = len((tmp_path / file).read_text().splitlines())
    with pytest.raises(TrainingError, match=rf"{file}, line {number}\b.*--wordnet"):
        WordNet(tmp_path)
    assert gc.isenabled()


def test_files_that_are_not_there_are_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"No such file.*WNSEARCHDIR.*wordnet-base"):
        WordNet(tmp_path / "nowhere")


def test_the_usual_directory_is_where_wordnets_own_programs_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WNSEARCHDIR", raising=False)
    monkeypatch.delenv("WNHOME", raising=False)
    assert usual_directory() == Path("/usr/share/wordnet")
    monkeypatch.setenv("WNHOME", "/opt/wn")
    assert usual_directory() == Path("/opt/wn/dict")
    monkeypatch.setenv("WNSEARCHDIR", "/opt/files")
    assert usual_directory() == Path("/opt/files")
