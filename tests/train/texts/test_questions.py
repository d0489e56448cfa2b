"""The user's questions: lines, arrays and VQA's official files give the same questions."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tests.train.texts.tiny_wordnet import Entry, write_wordnet

from gradewire_stats.calibration.labelled_rows import half_of
from gradewire_train import TrainingError
from gradewire_train.examples import Files
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.questions import Question, question_draws, read_questions
from gradewire_train.texts.wordnet import WordNet

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


def test_a_minoritys_no_is_no_right_answer_for_yes(lexicon: Lexicon) -> None:
    given = [Question("is it hot", ("yes", "No", "very")), Question("is it cold", ("no", "yes"))]
    first, second = question_draws(given, lexicon, seed=1)
    assert (first.looser, second.looser) == (("very",), ())


def test_labelled_answers_are_questions_once_each(tmp_path: Path) -> None:
    row = {"question": "who sang", "references": ["Ann", "Ann Lee"], "label": 1}
    path = rows(tmp_path, {**row, "prediction": "Ann"}, {**row, "prediction": "Bo"}, {**row, "references": ["Cy"]})
    assert set(questions_of(path)) == {Question("who sang", ("Ann", "Ann Lee")), Question("who sang", ("Cy",))}


def test_an_array_is_read_as_its_lines_would_be(tmp_path: Path) -> None:
    entries = [{"question": f"which {number}", "direct_answers": ["a", "b", "b"]} for number in range(5)]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    found = questions_of(path, answers="direct_answers")
    assert set(found) == {Question(f"which {number}", ("b", "a")) for number in range(5)}
    path.write_text(json.dumps([entries[0], 3]), encoding="utf-8")
    with pytest.raises(TrainingError, match=r"rows\.json, line 2: must be a JSON object, not int"):
        questions_of(path, answers="direct_answers")


def test_one_half_of_the_questions_can_be_kept(tmp_path: Path) -> None:
    path = rows(tmp_path, *({"question": f"which {number}", "answer": str(number)} for number in range(50)))
    halves = [{each.text for each in read_questions(Files([path], half=half), 100, seed=1)} for half in ("a", "b")]
    assert not halves[0] & halves[1]
    assert len(halves[0] | halves[1]) == 50
    assert {half_of(text) for text in halves[0]} == {"a"}
    only = rows(tmp_path, {"question": "what is it", "answer": "x"})
    other = "b" if half_of("what is it") == "a" else "a"
    with pytest.raises(TrainingError, match=f"the files have no question in half {other}"):
        read_questions(Files([only], half=other), 100, seed=1)


def official(tmp_path: Path, asked: list[dict[str, Any]], answered: list[dict[str, Any]]) -> list[Path]:
    """Writes VQA's two files."""
    paths = []
    for name, entries in (("questions", asked), ("annotations", answered)):
        path = tmp_path / f"v2_{name}.json"
        path.write_text(json.dumps({"info": {"version": "2.0"}, name: entries}), encoding="utf-8")
        paths.append(path)
    return paths


def annotation(key: object, *answers: str) -> dict[str, Any]:
    said = [{"answer": each, "answer_confidence": "yes", "answer_id": place} for place, each in enumerate(answers, 1)]
    return {"question_id": key, "multiple_choice_answer": answers[0], "answers": said}


@settings(max_examples=example_count(20))
@given(
    asked=st.dictionaries(
        st.integers(0, 99),
        st.tuples(st.sampled_from("abcdef"), st.lists(st.sampled_from(["red", "blue", "two"]), min_size=1)),
        min_size=1,
    ),
    shuffled=st.randoms(),
)
def test_official_files_are_joined_by_their_ids_in_any_order(
    asked: dict[int, tuple[str, list[str]]], shuffled: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("official")
    questions = [{"question_id": key, "question": f"is it {name}?"} for key, (name, _) in asked.items()]
    annotations = [annotation(key, *answers) for key, (_, answers) in asked.items()]
    shuffled.shuffle(annotations)
    paths = official(folder, questions, annotations)
    shuffled.shuffle(paths)
    lines = folder / "lines.jsonl"
    told = [{"question": f"is it {name}?", "answers": answers} for name, answers in asked.values()]
    lines.write_text("".join(json.dumps(each) + "\n" for each in told), encoding="utf-8")
    found = read_questions(Files(paths), 1000, seed=1)
    assert set(found) == set(questions_of(lines, 1000))
    assert len(set(found)) == len(found)


def test_one_official_file_alone_asks_for_the_other(tmp_path: Path) -> None:
    paths = official(tmp_path, [{"question_id": 1, "question": "what"}], [annotation(1, "x")])
    for path, absent in zip(paths, ("annotations", "questions"), strict=True):
        with pytest.raises(TrainingError, match=rf"Give the other one, too, which has the {absent}"):
            questions_of(path)


@pytest.mark.parametrize(
    ("asked", "answered", "message"),
    [
        ({"question_id": 1, "question": "what"}, annotation(2, "x"), r"v2_annotations\.json, line 1: no file of quest"),
        ({"question_id": 1, "question": "what"}, {"answers": ["x"]}, r"v2_annotations\.json, line 1: .*question_id"),
        ({"question_id": 1}, annotation(1, "x"), r"v2_questions\.json, line 1: field .question. is missing"),
        ({"question_id": [1], "question": "a"}, annotation(1, "x"), "must be a number or a string"),
    ],
)
def test_official_files_that_do_not_fit_are_named(
    asked: dict[str, Any], answered: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match=message):
        read_questions(Files(official(tmp_path, [asked], [answered])), 10, seed=1)


def test_questions_without_annotations_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked = [{"question_id": key, "question": f"what {key}"} for key in (1, 2, 3)]
    with caplog.at_level(logging.WARNING):
        found = read_questions(Files(official(tmp_path, asked, [annotation(2, "x")])), 10, seed=1)
    assert found == [Question("what 2", ("x",))]
    assert "2 official questions have no annotations" in caplog.text
