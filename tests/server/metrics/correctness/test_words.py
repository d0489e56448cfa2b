"""Other forms of a reference's words count as said; words that only look like them do not."""

import gc
import tracemalloc
import weakref

import pytest
from tests.server.metrics.correctness.test_features import of

from gradewire_server.metrics.correctness import words
from gradewire_server.metrics.correctness.words import FeatureText, clause_words


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("the WHO declared it", "World Health Organization"),
        ("The World Health Organization did.", "WHO"),
        ("the USA", "U.S.A."),
        ("U.S.A.", "USA"),
        ("they sell icecream", "ice cream"),
        ("they sell ice cream", "icecream"),
        ("J. K. Rowling wrote it", "JK Rowling"),
        ("Edvard Gronlund", "Edvard Gr\u00f8nlund"),
        ("Lodz", "\u0141\u00f3d\u017a"),
        ("a Gryffindor", "Gryffindors"),
    ],
)
def test_other_forms_of_a_word_are_found(prediction: str, reference: str) -> None:
    assert of(prediction, reference)["new_recall"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("the WTO declared it", "World Health Organization"),
        ("The World Trade Organization did.", "WHO"),
        ("the USSR", "U.S.A."),
        ("who has heard of this organization", "World Health Board"),  # the pronoun
        ("we had occasional frost", "WHOF"),  # initials of words that are no name
        ("ice and cream", "icecream"),
        ("as is", "asis"),  # too short to be two words in one
    ],
)
def test_words_that_only_look_like_them_are_not(prediction: str, reference: str) -> None:
    assert of(prediction, reference)["new_recall"] < 1.0


@pytest.mark.parametrize(
    ("prediction", "reference", "near"),
    [
        ("a dairy form", "a dairy farm", False),  # both are words
        ("the prefect", "perfect", False),
        ("Johann Straus", "Johann Strauss", True),  # a name
        ("definately", "definitely", True),  # no word
        ("colonial", "colony", True),  # another ending
    ],
)
def test_a_word_is_not_misspelt_into_another_word(prediction: str, reference: str, near: bool) -> None:  # noqa: FBT001 - a case's outcome
    assert (of(prediction, reference)["spelling_least"] > 0.6) is near


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It isn't hot", ("it", "be", "not", "hot")),
        ("They don\u2019t", ("they", "do", "not")),
        ("I can't, I cannot", ("i", "ca", "not", "i", "ca", "not")),
        ("It won't", ("it", "wo", "not")),
        ("  ", ()),
    ],
)
def test_a_negation_in_a_verb_is_a_word_of_its_own(text: str, words: tuple[str, ...]) -> None:
    assert clause_words(text) == words


def test_texts_that_are_read_once_for_many_answers_need_little_memory() -> None:
    lists = [",".join(chr(0x4E00 + 100 * number + place) for place in range(127)) for number in range(30)]
    of("the cat", "the dog")  # reads the dictionaries
    words._shared.cache_clear()
    tracemalloc.start()
    try:
        for each in lists:
            of("the cat", each)
        gc.collect()
        full, _ = tracemalloc.get_traced_memory()
        kept, most = words._shared.cache_info().currsize, words._shared.cache_info().maxsize
        words._shared.cache_clear()
        gc.collect()
        freed = full - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept >= len(lists)
    assert most is not None
    assert 0 < freed / kept * most < 60e6


@pytest.mark.parametrize("text", ["the cat", "cats (or dogs)", "cats and dogs", "(cats)"])
def test_a_text_needs_no_garbage_collector(text: str) -> None:
    read = FeatureText.of(text)
    assert read.core.words
    assert read.parts[0].words
    left = weakref.ref(read)
    gc.disable()
    try:
        del read
        assert left() is None
    finally:
        gc.enable()
