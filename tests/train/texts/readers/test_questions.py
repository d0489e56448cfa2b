"""Questions with annotators' answers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.train.texts.tiny_wordnet import Entry, write_wordnet

from gradewire_train.errors import TrainingError
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.readers.questions import Question, question_draws, read_questions
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


def read(path: Path, most: int = 100, **columns: str) -> list[Question]:
    return read_questions([path], most, seed=1, columns=columns, skip_bad_lines=False)


def test_answers_are_counted_over_their_forms_and_the_most_common_comes_first(tmp_path: Path) -> None:
    path = rows(tmp_path, {"question": "what is it", "answers": ["couch", "Sofa", "sofa", "a sofa", "bed"], "image": 7})
    assert read(path) == [Question("what is it", ("Sofa", "couch", "bed"))]


def test_one_answer_annotators_objects_and_other_names_of_fields(tmp_path: Path) -> None:
    path = rows(tmp_path, {"q": "what", "labels": [{"answer": "sofa", "id": 1}]}, {"q": "who", "answer": "Ann"})
    assert set(read(path, question="q", answers="labels")) == {Question("what", ("sofa",)), Question("who", ("Ann",))}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"question": "what"}, 'no field "answer"'),
        ({"question": "what", "answers": "sofa"}, 'field "answers": a list of texts is expected'),
        ({"question": "what", "answers": []}, 'field "answers": a list of texts is expected'),
        ({"question": "what", "answers": ["sofa", None]}, 'field "answers": a text is expected, not NoneType'),
        ({"question": "what", "answers": ["x"] * 1001}, "1001 answers, at most 1000"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, entry: Mapping[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=rf"line 1: .*{message}"):
        read(rows(tmp_path, entry))


def test_a_sample_of_the_lines_is_drawn_by_seed(tmp_path: Path) -> None:
    path = rows(tmp_path, *({"question": f"which {number}", "answer": str(number)} for number in range(50)))
    assert len(read(path, 10)) == 10
    assert read(path, 10) == read(path, 10)


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
