"""METEOR by hand and without synonyms; tests/server/test_lexicon.py holds it against NLTK with WordNet."""

from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.meteor_score import meteor_score

from gradewire_proto.parts import MeteorParts
from gradewire_server.domain.items import Failure, Item, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.domain.needs import FindSynonyms
from gradewire_server.metrics.overlap.meteor import Meteor, MeteorParameters

WORDS = ["cat", "cats", "dog", "running", "runs", "run", "the", "a", "mats", "mat"]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)


class Thesaurus:
    """Answers FindSynonyms from a table, or with a failure."""

    def __init__(self, table: dict[str, set[str]] | Failure | None = None) -> None:
        self.table = {} if table is None else table
        self.asked: list[tuple[str, ...]] = []

    def run(self, program: Generator[Any, Any, Any]) -> Any:
        answers: Any = None
        try:
            while True:
                (need,) = program.send(answers)
                assert isinstance(need, FindSynonyms)
                self.asked.append(need.words)
                answers = (self.table if isinstance(self.table, Failure) else self._found(need.words),)
        except StopIteration as stop:
            return stop.value

    def _found(self, words: tuple[str, ...]) -> dict[str, frozenset[str]]:
        assert not isinstance(self.table, Failure)
        return {word: frozenset(self.table.get(word, ())) for word in words}


def grade(prediction: str, *references: str, thesaurus: Thesaurus | None = None, **parameters: Any) -> Any:
    item = Item("1", "", references, prediction)
    return (thesaurus or Thesaurus()).run(Meteor().score(item, MeteorParameters(**parameters), NO_MODEL))


def test_equal_texts_by_hand() -> None:
    # P = R = 1, one chunk of three words: penalty 0.5 * (1/3)^3 = 1/54
    result = grade("the cat sat", "the cat sat")
    assert result.parts == MeteorParts(1, 1, pytest.approx(1 / 54), 3, 1)
    assert result.score == pytest.approx(53 / 54)


def test_broken_order_by_hand() -> None:
    # "cat the" against "the cat": two words in two chunks: penalty 0.5
    result = grade("cat the", "the cat")
    assert result.parts == MeteorParts(1, 1, pytest.approx(0.5), 2, 2)
    assert result.score == pytest.approx(0.5)


def test_precision_and_recall_by_hand() -> None:
    # 2 of 4 predicted, 2 of 3 right words, one chunk: mean = P R / (0.9 P + 0.1 R) = (1/3) / (0.45 + 0.2/3) = 20/31;
    # penalty 0.5 * (1/2)^3 = 1/16
    result = grade("the cat ran off", "the cat sat")
    assert result.parts == MeteorParts(0.5, pytest.approx(2 / 3), pytest.approx(1 / 16), 2, 1)
    assert result.score == pytest.approx(15 / 16 * 20 / 31)


def test_parameters_by_hand() -> None:
    # alpha 0: P R / R = P; gamma 0: no penalty
    assert grade("the cat ran off", "the cat sat", alpha=0, gamma=0).score == pytest.approx(1 / 2)
    assert grade("the cat ran off", "the cat sat", alpha=1, gamma=0).score == pytest.approx(2 / 3)
    assert grade("cat the", "the cat", gamma=1.0).score == 0.0
    assert grade("the cat sat", "the cat sat", beta=0).score == pytest.approx(0.5)


def test_stems_then_synonyms_match() -> None:
    assert grade("cats", "cat").parts.matches == 1
    thesaurus = Thesaurus({"feline": {"cat", "feline"}})
    assert grade("a feline", "a cat", thesaurus=thesaurus).parts.matches == 1
    assert thesaurus.asked == [("felin",)]  # NLTK's program, whose values these are, looks stems up
    thesaurus = Thesaurus({"guy": {"man", "guy"}})
    assert grade("a guy", "a man", thesaurus=thesaurus).parts.matches == 2
    assert grade("a guy", "a man", thesaurus=thesaurus, synonyms="none").parts.matches == 1


def test_synonyms_are_paired_from_the_end_each_with_its_last_free_partner() -> None:
    # both words could stand for both: the second takes the second, which leaves one chunk
    thesaurus = Thesaurus({"guy": {"man", "cat"}, "lad": {"man", "cat"}})
    assert grade("guy lad", "man cat", thesaurus=thesaurus).parts == MeteorParts(1, 1, pytest.approx(1 / 16), 2, 1)


def test_only_words_that_nothing_else_matches_are_looked_up() -> None:
    thesaurus = Thesaurus()
    grade("the cats ran", "the cat sat", "a dog ran", thesaurus=thesaurus)
    assert thesaurus.asked == [("the", "cat", "ran")]
    thesaurus = Thesaurus()
    assert grade("the cats", "the cat", thesaurus=thesaurus).score == pytest.approx(15 / 16)
    assert thesaurus.asked == [()]  # asked all the same: missing files fail every item alike


def test_without_wordnet_there_is_no_score_unless_it_is_not_wanted() -> None:
    missing = Thesaurus(Failure(Status.MODEL_UNAVAILABLE, "install it"))
    for prediction in ("a feline", "a cat"):
        result = grade(prediction, "a cat", thesaurus=missing)
        assert (result.score, result.status, result.message) == (None, Status.MODEL_UNAVAILABLE, "install it")
    assert grade("a cat", "a cat", thesaurus=missing, synonyms="none").status is Status.OK


def test_the_best_reference_counts_and_of_equals_the_first() -> None:
    assert grade("the cat", "a dog", "cat", "the cat", "the cat").matched_reference == 2
    result = grade("xyz", "a", "b")
    assert result.score == 0.0
    assert result.parts == MeteorParts(0, 0, 0, 0, 0)


def test_references_closer_than_a_millionth_are_equally_good() -> None:
    # One pair, with half of 1 / (0.9 r + 0.1 y): words r = 1001 and 1000 at y = 1000 give scores 4.5e-7 apart.
    prediction, longer, shorter = (
        " ".join(["x", *letter * count]) for letter, count in zip("abb", (999, 1000, 999), strict=True)
    )
    assert grade(prediction, longer, shorter).matched_reference == 0
    assert grade(prediction, longer + " c c c", shorter).matched_reference == 1  # r = 1004: 1.8e-6 less


class NoSynonyms:
    """In NLTK's place for WordNet."""

    def synsets(self, word: str) -> list[Any]:
        del word
        return []


@given(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=3))
def test_it_equals_nltk_without_synonyms(prediction: list[str], references: list[list[str]]) -> None:
    theirs = meteor_score(references, prediction, wordnet=NoSynonyms())
    ours = grade(" ".join(prediction), *map(" ".join, references), synonyms="none")
    assert ours.score == pytest.approx(theirs, abs=1e-12)


def test_other_scripts_and_texts_without_words() -> None:
    assert grade("Москва!", "москва").score == pytest.approx(0.5)  # one word is one chunk
    assert grade("这是猫", "猫").parts.matches == 1
    assert grade("?", "!").score == 0.0


def test_long_texts_are_cut_and_say_so() -> None:
    result = grade("cat " * 200_000, "cat " * 200_000)
    assert result.parts.matches == 1024
    assert result.warnings == (ResultWarning.TRUNCATED,)


@pytest.mark.parametrize(
    "parameters",
    [{"alpha": -0.1}, {"alpha": 1.1}, {"beta": -1}, {"beta": 101}, {"gamma": 2}, {"alpha": float("nan")}],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        MeteorParameters(**parameters)  # type: ignore[arg-type] # one at a time


def test_bad_items() -> None:
    with pytest.raises(ParameterError, match="synonyms"):
        MeteorParameters(synonyms="mine")  # type: ignore[arg-type] # what the wire could send
    assert grade("cat").status is Status.INVALID_INPUT
    assert grade("cat", "dog", "\t").message.startswith("references[1]")
    assert grade(" \n", "dog").status is Status.EMPTY_PREDICTION
    failure = Thesaurus().run(Meteor().prepare(ReferenceEntry("", ("",)), MeteorParameters()))
    assert failure.status is Status.INVALID_INPUT
