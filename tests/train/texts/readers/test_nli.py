"""Sentence pairs with labels, and triplets."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gradewire_train.errors import TrainingError
from gradewire_train.examples import Example
from gradewire_train.texts.readers.nli import read_nli


def read(tmp_path: Path, *entries: Mapping[str, Any], columns: Mapping[str, str] | None = None) -> list[Example]:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return list(read_nli([path], 50, seed=1, columns=columns or {}, skip_bad_lines=False))


def pair(premise: str, hypothesis: str, label: object) -> Mapping[str, Any]:
    return {"premise": premise, "hypothesis": hypothesis, "label": label}


def test_pairs_of_one_premise_become_one_example_wherever_their_lines_are(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        pair("a dog runs", "an animal moves", "entailment"),
        pair("a man eats", "a person eats", 0),
        pair("a dog runs", "a dog sleeps", "contradiction"),
        pair("a dog runs", "a dog runs home", "neutral"),
        pair("a man eats", "nobody eats", "2"),
        pair("a man eats", "nobody agrees", "-"),
    )
    assert set(found) == {
        Example("nli", "", "a dog runs", "an animal moves", ("a dog sleeps",)),
        Example("nli", "", "a man eats", "a person eats", ("nobody eats",)),
    }


def test_a_premise_without_contradiction_gets_anothers_hypothesis(tmp_path: Path) -> None:
    found = read(tmp_path, *(pair(f"premise {number}", f"hypothesis {number}", "entailment") for number in range(20)))
    assert len(found) == 20
    numbers = {(example.anchor.split()[1], *(each.split()[1] for each in example.negatives)) for example in found}
    assert all(len(set(each)) == len(each) for each in numbers)
    assert any(example.negatives for example in found)


def test_what_only_contradicts_is_left_out(tmp_path: Path) -> None:
    assert read(tmp_path, pair("a dog runs", "a dog sleeps", "contradiction")) == []


def test_triplets_under_other_names(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"a": "one", "positive": "1", "negatives": ["two", "three"]},
        {"a": "four", "positive": "4", "negative": "five"},
        columns={"anchor": "a"},
    )
    assert {(each.anchor, each.positive, frozenset(each.negatives)) for each in found} == {
        ("one", "1", frozenset({"two", "three"})),
        ("four", "4", frozenset({"five"})),
    }


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (pair("a", "b", "maybe"), 'field "label": entailment, neutral, contradiction, 0, 1 or 2 is expected'),
        (pair("a", "b", None), 'field "label"'),
        ({"premise": "a", "label": 0}, 'no field "hypothesis"'),
        ({"anchor": "a", "positive": "b", "negatives": "c"}, 'field "negatives": a list of texts is expected'),
        ({"anchor": "a"}, 'no field "positive"'),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, entry: Mapping[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=rf"line 1: .*{message}"):
        read(tmp_path, entry)
