"""JSON lines of the user: what is wrong is told with its line and field."""

import json
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.train.texts.tiny_wordnet import Entry, write_wordnet

from gradewire_train import TrainingError
from gradewire_train.examples import Example, Files
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.readers import (
    FieldError,
    Question,
    Row,
    Sample,
    clean,
    question_draws,
    read,
    read_nli,
    read_questions,
    text,
)
from gradewire_train.texts.wordnet import WordNet


def question(row: Row) -> str:
    return text(row, "question")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON in UTF-8"),
        ("[1]", "must be a JSON object, not list"),
        ('{"q": "x"}', r"field .question. is missing \(fields: 'q'\)"),
        (json.dumps({"k" * 5_000: 1}), r"\(fields: 'k{39}\)"),
        ('{"question": "\\ud800"}', "not JSON in UTF-8 .unexpected end of hex escape"),
        ('{"question": 3}', 'field "question": must be a string, not int'),
        ('{"question": " \\u0000 "}', 'field "question" is blank'),
        (json.dumps({"question": "x" * 2001}), "2001 characters, but the maximum is 2000"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_is_an_error_that_names_it(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"question": "why"}}\n\n{line}\n')
    with pytest.raises(TrainingError, match=rf"rows\.jsonl, line 3: .*{message}.*--skip-bad-lines"):
        list(read(path, question, skip_bad_lines=False))


def test_bad_lines_are_left_out_and_counted_when_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"question": "why"}\n{\n\xff\xfe\n{"question": "when"}\n')
    with caplog.at_level(logging.WARNING):
        assert list(read(path, question, skip_bad_lines=True)) == [(1, "why"), (4, "when")]
    assert "skipped 2 bad lines; the first error: line 2: not JSON" in caplog.text


@pytest.mark.parametrize(("content", "message"), [("", "it is empty"), ("{\n", "line 1: not JSON")])
def test_a_file_without_a_good_line_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(TrainingError, match=rf"contains no usable line: {message}"):
        list(read(path, question, skip_bad_lines=True))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"cannot read .*nothing\.jsonl: No such file"):
        list(read(tmp_path / "nothing.jsonl", question, skip_bad_lines=True))


def test_blanks_and_control_characters_become_single_blanks_and_accents_are_composed() -> None:
    assert clean(" cafe\u0301\x1b[31m\t\nau  lait ", "a") == "caf\u00e9 [31m au lait"


@given(st.text())
def test_what_is_clean_stays_so(given_text: str) -> None:
    try:
        cleaned = clean(given_text, "a")
    except FieldError:
        assert not given_text.strip("\x1c\x1d\x1e\x1f") or not given_text.isprintable() or not given_text.strip()
        return
    assert clean(cleaned, "a") == cleaned


def pairs_of(tmp_path: Path, *entries: Mapping[str, Any], columns: Mapping[str, str] | None = None) -> list[Example]:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return list(read_nli(Files(nli_pairs=[path], columns=columns or {}), 50, seed=1))


def pair(premise: str, hypothesis: str, label: object) -> Mapping[str, Any]:
    return {"premise": premise, "hypothesis": hypothesis, "label": label}


def test_pairs_of_one_premise_become_one_example_wherever_their_lines_are(tmp_path: Path) -> None:
    found = pairs_of(
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
    found = pairs_of(
        tmp_path, *(pair(f"premise {number}", f"hypothesis {number}", "entailment") for number in range(20))
    )
    assert len(found) == 20
    numbers = {(example.anchor.split()[1], *(each.split()[1] for each in example.negatives)) for example in found}
    assert all(len(set(each)) == len(each) for each in numbers)
    assert any(example.negatives for example in found)


def test_what_only_contradicts_is_left_out(tmp_path: Path) -> None:
    assert pairs_of(tmp_path, pair("a dog runs", "a dog sleeps", "contradiction")) == []


def test_triplets_under_other_names(tmp_path: Path) -> None:
    found = pairs_of(
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
        (pair("a", "b", "maybe"), 'field "label": must be entailment, neutral, contradiction, 0, 1 or 2'),
        (pair("a", "b", None), 'field "label"'),
        ({"premise": "a", "label": 0}, 'field "hypothesis" is missing'),
        ({"anchor": "a", "positive": "b", "negatives": "c"}, 'field "negatives": must be a list of strings'),
        ({"anchor": "a"}, 'field "positive" is missing'),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, entry: Mapping[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=rf"line 1: .*{message}"):
        pairs_of(tmp_path, entry)


WORDS = {
    "sofa": Entry(["sofa", "couch"], topic=6),
    "chair": Entry(["chair"], topic=6),
    "hot": Entry(["hot"], links=["! cold 0101"], part="a", topic=0),
    "cold": Entry(["cold"], part="a", topic=0),
}


@pytest.fixture
def lexicon(tmp_path: Path) -> Lexicon:
    return Lexicon(WordNet(write_wordnet(tmp_path / "wordnet", WORDS)))


def rows(tmp_path: Path, *entries: Mapping[str, Any]) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def questions_of(path: Path, most: int = 100, **columns: str) -> list[Question]:
    return read_questions(Files([path], columns=columns), most, seed=1)


def test_answers_are_counted_over_their_forms_and_the_most_common_comes_first(tmp_path: Path) -> None:
    path = rows(tmp_path, {"question": "what is it", "answers": ["couch", "Sofa", "sofa", "a sofa", "bed"], "image": 7})
    assert questions_of(path) == [Question("what is it", ("Sofa", "couch", "bed"))]


def test_one_answer_annotators_objects_and_other_names_of_fields(tmp_path: Path) -> None:
    path = rows(tmp_path, {"q": "what", "labels": [{"answer": "sofa", "id": 1}]}, {"q": "who", "answer": "Ann"})
    assert set(questions_of(path, question="q", answers="labels")) == {
        Question("what", ("sofa",)),
        Question("who", ("Ann",)),
    }


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"question": "what"}, 'field "answer" is missing'),
        ({"question": "what", "answers": "sofa"}, 'field "answers": must be a list of strings'),
        ({"question": "what", "answers": []}, 'field "answers": must be a list of strings'),
        ({"question": "what", "answers": ["sofa", None]}, 'field "answers": must be a string, not NoneType'),
        ({"question": "what", "answers": ["x"] * 1001}, "1001 answers, but the maximum is 1000"),
    ],
)
def test_a_wrong_field_is_named_questions(tmp_path: Path, entry: Mapping[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=rf"line 1: .*{message}"):
        questions_of(rows(tmp_path, entry))


def test_a_sample_of_the_lines_is_drawn_by_seed(tmp_path: Path) -> None:
    path = rows(tmp_path, *({"question": f"which {number}", "answer": str(number)} for number in range(50)))
    assert len(questions_of(path, 10)) == 10
    assert questions_of(path, 10) == questions_of(path, 10)


def test_draws_have_wordnets_synonyms_other_annotators_and_wrong_answers(lexicon: Lexicon) -> None:
    given = [
        Question("what is it", ("sofa", "bed")),
        Question("what is it", ("chair",)),
        Question("what is it", ("couch",)),
        Question("how is it", ("hot",)),
        Question("how is it", ("warm",)),
    ]
    draws = list(question_draws(given, lexicon, seed=1))
    sofa, hot = draws[0], draws[3]
    assert (sofa.answer, sofa.same, sofa.looser) == ("sofa", ("couch",), ("bed",))
    assert sofa.wrong
    assert not {"sofa", "couch", "bed"} & set(sofa.wrong)
    assert hot.wrong[0] == "cold"


@given(st.lists(st.integers(0, 40), max_size=200), st.integers(1, 10), st.randoms())
def test_the_same_keys_are_kept_in_any_order_and_each_with_all_its_entries(
    keys: list[int], size: int, rng: object
) -> None:
    found = []
    for _ in range(2):
        sample: Sample[int] = Sample(size, seed=3)
        for key in keys:
            sample.add(str(key), key)
        found.append(list(sample.groups()))
        rng.shuffle(keys)  # type: ignore[attr-defined] # hypothesis' Random
    assert found[0] == found[1]
    assert len(found[0]) == min(size, len(set(keys)))
    assert all(len(set(group)) == 1 and len(group) == Counter(keys)[group[0]] for group in found[0])


def test_another_seed_keeps_others() -> None:
    kept = []
    for seed in (1, 2):
        sample: Sample[int] = Sample(10, seed=seed)
        for key in range(1000):
            sample.add(str(key), key)
        kept.append({group[0] for group in sample.groups()})
    assert kept[0] != kept[1]


def test_every_key_is_as_likely() -> None:
    counts: Counter[int] = Counter()
    for seed in range(400):
        sample: Sample[int] = Sample(2, seed=seed)
        for key in range(8):
            sample.add(str(key), key)
        counts.update(group[0] for group in sample.groups())
    # 400 draws of 2 out of 8: 100 a key, standard deviation 8.7; five of them on either side
    assert all(56 < counts[key] < 144 for key in range(8))
