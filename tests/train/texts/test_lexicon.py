"""Which words are safe as wrong answers: a negative that is right would teach the opposite."""

import pytest
from tests.train.texts.seeded import seeded
from tests.train.texts.tiny_wordnet import Entry, write_wordnet

from gradewire_train.texts.lexicon import Lexicon, plain
from gradewire_train.texts.wordnet import Synset, WordNet

ENTRIES = {
    "animal": Entry(["animal"]),
    "dog": Entry(["dog", "hound"], above=["animal"], links=["$ wolf"]),
    "cat": Entry(["cat"], above=["animal"]),
    "canine": Entry(["canine"], above=["animal"]),
    "puppy": Entry(["puppy"], above=["dog"]),
    "hound": Entry(["chaser"], above=["animal"]),
    "hound too": Entry(["chaser", "hound"], above=["cat"]),  # "chaser" means "hound" in another sense
    "pup": Entry(["pup"], above=["animal"]),
    "pup too": Entry(["pup"], above=["dog"]),  # "pup" is a kind of dog in another sense
    "hot dog": Entry(["hot dog"], above=["animal"]),
    "wolf": Entry(["wolf"], above=["animal"]),
    "cur": Entry(["cur"], "(ethnic slur) somebody", above=["animal"]),
    "city": Entry(["City"], links=["#p county"]),
    "county": Entry(["County"], links=["#p land"]),
    "land": Entry(["Land"], links=["#p city"]),  # a circle, as broken files may have it
    "hot": Entry(["hot", "very hot"], links=["! cold 0101", "! mild 0201"], part="a", topic=0),
    "cold": Entry(["cold"], part="a", topic=0),
    "mild": Entry(["mild"], part="a", topic=0),
}


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> Lexicon:
    return Lexicon(WordNet(write_wordnet(tmp_path_factory.mktemp("wordnet"), ENTRIES)))


def only(lexicon: Lexicon, word: str) -> Synset:
    return lexicon.synset(lexicon.keys_of(word)[0])


def test_siblings_are_none_that_mean_the_same_include_it_are_alike_or_insult(lexicon: Lexicon) -> None:
    found = {each for seed in range(50) for each in lexicon.siblings(only(lexicon, "dog"), seeded(seed), 8)}
    assert found == {"cat", "canine"}


def test_no_sibling_is_found_where_there_is_no_broader_word(lexicon: Lexicon) -> None:
    assert lexicon.siblings(only(lexicon, "animal"), seeded(1), 3) == []


def test_what_is_broader_and_what_is_narrower_does_not_differ(lexicon: Lexicon) -> None:
    puppy = only(lexicon, "puppy")
    assert not lexicon.differs("animal", puppy)
    assert not lexicon.differs("dog", puppy)
    assert not lexicon.differs("puppy", only(lexicon, "animal"))
    assert lexicon.differs("cat", puppy)


def test_antonyms_are_those_of_the_first_word(lexicon: Lexicon) -> None:
    assert lexicon.antonyms(only(lexicon, "hot")) == ["cold"]
    assert lexicon.antonyms(only(lexicon, "cold")) == []


def test_wholes_end_though_they_go_round(lexicon: Lexicon) -> None:
    assert [whole.words[0].text for whole in lexicon.wholes(only(lexicon, "city").key)] == ["County", "Land"]


def test_offensive_synsets_may_not_be_drawn(lexicon: Lexicon) -> None:
    assert "cur" not in {synset.words[0].text for synset in lexicon.decent}


@pytest.mark.parametrize(
    ("word", "expected"),
    [("dog", True), ("ice cream cone", True), ("o'clock", True), ("Paris", False), ("a", False), ("b2", False)],
)
def test_plain_words(word: str, expected: bool) -> None:  # noqa: FBT001 - a parameter of pytest's
    assert plain(word) is expected
