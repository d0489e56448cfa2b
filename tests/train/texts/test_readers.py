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

from gradewire_train import TrainingError
from gradewire_train.examples import Example, Files
from gradewire_train.texts.readers import (
    FieldError,
    Row,
    Sample,
    clean,
    read,
    read_nli,
    text,
)


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


BREAKING_NLI = [{"sentence1": "a dog runs", "sentence2": "an animal moves", "gold_label": "entailment", "pairID": 3}]
TABLES = {
    "MED": "index\tsentence1\tsentence2\tgold_label\n1\ta dog runs\tan animal moves\tentailment\n",
    "HELP": "\tgold_label\tori_sentence\tnew_sentence\r\n0\tentailment\ta dog runs\tan animal moves\r\n",
}


def test_pairs_under_the_names_of_public_files_need_no_columns(tmp_path: Path) -> None:
    found = pairs_of(tmp_path, *BREAKING_NLI, {"sentence1": "a dog runs", "sentence2": "no", "gold_label": "neutral"})
    assert [(each.anchor, each.positive) for each in found] == [("a dog runs", "an animal moves")]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_with_tabs_is_read_by_its_first_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(TABLES[name], encoding="utf-8", newline="")
    found = list(read_nli(Files(nli_pairs=[path]), 50, seed=1))
    assert [(each.anchor, each.positive) for each in found] == [("a dog runs", "an animal moves")]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('"They call it "" home "" now"', 'They call it " home " now'),
        ('"""No"""', '"No"'),
        ('"Yes"', '"Yes"'),
        ('"Yes" and "no"', '"Yes" and "no"'),
        ('a 5"" nail', 'a 5"" nail'),
    ],
)
def test_marks_of_a_tables_writer_are_no_part_of_a_text(cell: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"ori_sentence\tnew_sentence\tgold_label\n{cell}\tan answer\tentailment\n", encoding="utf-8")
    assert [each.anchor for each in read_nli(Files(nli_pairs=[path]), 50, seed=1)] == [said]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1\ta dog runs\n", "2 columns, but the first line names 4"),
        (b"1\t\xff\tb\tentailment\n", "not UTF-8"),
        (b"1\ta\tb\tmaybe\n", 'field "gold_label": must be entailment'),
    ],
)
def test_a_bad_line_of_a_table_is_named(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(TABLES["MED"].encode() + line)
    with pytest.raises(TrainingError, match=rf"pairs\.tsv, line 3: {message}"):
        list(read_nli(Files(nli_pairs=[path]), 50, seed=1))


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
