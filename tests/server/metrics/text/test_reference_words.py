"""How many words of references are looked at."""

from typing import Any

import pytest
from tests.support.engines.programs import Table

from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.result import Status, Warning  # noqa: A004 - the domain's word for it
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.metrics.text.reference_words import MAX_REFERENCE_WORDS, words_of_references
from gradewire_server.metrics.text.word_split import MAX_WORDS, first_words

MANY = ("cat " * MAX_WORDS,) * (MAX_REFERENCE_WORDS // MAX_WORDS)
METRICS = pytest.mark.parametrize(
    ("name", "parameters"), [("bleu", {}), ("rouge_l", {"stem": True}), ("meteor", {"synonyms": "none"})]
)


def grade(name: str, parameters: dict[str, Any], prediction: str, references: tuple[str, ...]) -> Any:
    metric = REGISTRY[name]
    return Table().run(
        metric.score(Item("1", "", references, prediction), metric.parameters_type(**parameters), NO_MODEL)
    )


def test_as_many_references_as_fit_are_kept() -> None:
    kept, cut = words_of_references(MANY, first_words)
    assert (sum(map(len, kept)), cut) == (MAX_REFERENCE_WORDS, False)
    assert words_of_references((*MANY, "dog"), first_words) == (kept, True)
    assert words_of_references(("a b", "c"), first_words) == ([["a", "b"], ["c"]], False)
    assert words_of_references(("cat " * 100_000,), first_words) == ([["cat"] * MAX_WORDS], True)


def test_none_stands_in_for_one_that_does_not_fit() -> None:
    # else which ones are compared would depend on their lengths in a way that nobody can follow
    assert words_of_references((*MANY[1:], "dog", MANY[0], "cow"), first_words)[0][-1] == ["dog"]


@METRICS
def test_references_beyond_are_left_out_and_the_result_says_so(name: str, parameters: dict[str, Any]) -> None:
    right = "a dog ran off"
    found = grade(name, parameters, right, (*MANY, right))
    assert found.warnings == (Warning.TRUNCATED,)
    assert found.score == grade(name, parameters, right, MANY).score == 0
    assert grade(name, parameters, right, MANY).warnings == ()
    assert grade(name, parameters, right, (right, *MANY)).score > 0.9


@METRICS
def test_a_blank_one_among_them_is_told_all_the_same(name: str, parameters: dict[str, Any]) -> None:
    result = grade(name, parameters, "dog", (*MANY, "dog", " "))
    assert result.status is Status.INVALID_INPUT
    assert result.message.startswith(f"references[{len(MANY) + 1}]")
