"""Labelled rows from VQA's annotators: labels worked out by hand, and files of any content."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.cli.conftest import Command
from tests.cli.judged import judging_stub
from tests.support.damaged_documents import check_rows, mangled
from tests.support.examples import example_count

from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.official.vqa_annotators import annotator_records

Write = Callable[..., tuple[str, str]]


def answers(*given: str) -> list[dict[str, Any]]:
    """Return VQA's answers from texts such as "white 8 yes": the answer, a number of annotators, their confidence."""
    found = []
    for text in given:
        answer, count, confidence = text.rsplit(" ", 2)
        found += [{"answer": answer, "answer_confidence": confidence}] * int(count)
    return [{**each, "answer_id": place} for place, each in enumerate(found, 1)]


SHOES = answers("white 6 yes", "white and black 1 yes", "cream 1 maybe", "sneakers 1 no", "not sure 1 yes")
TAPS = answers("brass 5 yes", "gold 2 yes", "metal 3 no")
SANDAL = answers("yes 8 yes", "no 1 yes", "maybe 1 maybe")
CATS = answers("2 6 yes", "3 2 maybe", "4 1 yes", "5 1 no")
SPOONS = answers("4 2 yes", "5 2 yes", "6 1 yes", "7 5 yes")
DOCUMENTS: list[tuple[str, str, str, list[dict[str, Any]]]] = [
    ("What color are the shoes?", "other", "what color are the", SHOES),
    ("What color are the taps?", "other", "what color are the", TAPS),
    ("Is there a sandal?", "yes/no", "is there a", SANDAL),
    ("How many cats?", "number", "how many", CATS),
    ("How many spoons?", "number", "how many", SPOONS),
]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def files(documents: Any = DOCUMENTS) -> tuple[str, str]:
        questions, annotations = tmp_path / "questions.json", tmp_path / "annotations.json"
        numbered = list(enumerate(documents, 1))
        asked = [{"question_id": number, "image_id": 9, "question": each[0]} for number, each in numbered]
        said = [
            {"question_id": number, "answer_type": each[1], "question_type": each[2], "answers": each[3]}
            for number, each in numbered
        ]
        questions.write_text(json.dumps({"questions": asked}))
        annotations.write_text(json.dumps({"annotations": said}))
        return str(annotations), str(questions)

    return files


def rows_of(records: list[Record], question_id: int) -> list[dict[str, Any]]:
    found = [dict(record.fields) for record in records if record.fields is not None]
    return [row for row in found if row["question_id"] == str(question_id)]


def told(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["prediction"], row["label"], row["evidence"], row["annotators"]) for row in rows]


def read(files: tuple[str, str]) -> list[Record]:
    return list(annotator_records(files[0], questions=files[1]))


def test_labels_of_a_question_with_open_answers(write: Write) -> None:
    found = rows_of(read(write()), 1)
    assert told(found) == [
        ("white", 1.0, "agreement", 6),
        ("white and black", 1.0, "alternative", 1),
        ("cream", None, "unsure", 1),
        ("sneakers", 0.0, "doubted", 1),
        ("not sure", None, "unsure", 1),
        ("brass", 0.0, "other_question", 0),
    ]
    assert found[0]["references"] == [*["white"] * 5, "white and black", "cream", "sneakers", "not sure"]
    assert found[1]["references"] == [*["white"] * 6, "cream", "sneakers", "not sure"]
    assert [row["answer_confidence"] for row in found[1:4]] == [["yes"], ["maybe"], ["no"]]
    assert {len(row["references"]) for row in found} == {9}
    assert (found[0]["id"], found[-1]["id"]) == ("1/1", "1/other")


def test_labels_by_agreement_follow_vqa_accuracy(write: Write) -> None:
    found = rows_of(read(write()), 2)
    # Others who agree: 4 of 9, 2 of 9 and 1 of 9. An answer that others share is not "doubted", and a confident
    # annotator makes it right.
    assert told(found)[:3] == [
        ("brass", 1.0, "agreement", 5),
        ("metal", 2 / 3, "agreement", 3),
        ("gold", 1.0, "minority", 2),
    ]
    assert [row["agreement"] for row in found] == [1.0, 2 / 3, 1 / 3, 0]
    shoes = rows_of(read(write()), 1)
    assert [row["agreement"] for row in shoes] == [1.0, 0, 0, 0, 0, 0]
    assert {(row["answer_type"], row["question_type"]) for row in shoes} == {("other", "what color are the")}


def test_answers_that_exclude_each_other_contradict_the_majority(write: Write) -> None:
    records = read(write())
    assert told(rows_of(records, 3)) == [
        ("yes", 1.0, "agreement", 8),
        ("no", 0.0, "contradiction", 1),
        ("maybe", 0.0, "contradiction", 1),
    ]
    assert told(rows_of(records, 4))[2:] == [
        ("4", 0.0, "contradiction", 1),
        ("5", 0.0, "doubted", 1),
        ("7", 0.0, "other_question", 0),
    ]


def test_without_a_majority_an_exclusive_answer_has_no_label(write: Write) -> None:
    guesses = answers("20 2 yes", "30 1 yes", "50 1 yes")
    found = rows_of(read(write([("How many birds?", "number", "how many", guesses)])), 1)
    assert told(found) == [("20", 1 / 3, "agreement", 2), ("30", None, "unsure", 1), ("50", None, "unsure", 1)]


def test_without_types_and_confidences_the_majority_tells_what_is_exclusive(tmp_path: Path) -> None:
    entries = [
        {"question_id": "a", "question": "Is it red?", "answers": ["yes", "Yes", "yes ", "no"]},
        {"question_id": "b", "question": "What is it?", "answers": ["cat", "cat", "kitten", " "]},
    ]
    path = tmp_path / "textvqa.json"
    path.write_text(json.dumps({"data": entries}))
    found = [dict(record.fields or {}) for record in annotator_records(str(path))]
    assert told(found) == [
        ("yes", 2 / 3, "agreement", 3),
        ("no", 0.0, "contradiction", 1),
        # "yes" is the only answer that three annotators share, and it is no answer to the second question.
        ("cat", 1 / 3, "agreement", 2),
        ("kitten", None, "unsure", 1),
        ("yes", 0.0, "other_question", 0),
    ]
    assert found[2]["references"] == ["cat", "kitten"]


def test_answers_of_other_questions_share_no_word_with_any_annotator(write: Write) -> None:
    green = answers("green 9 yes", "dark green 1 yes")
    documents = [
        ("What color is the door?", "other", "what color is the", green),
        ("What color is the wall?", "other", "what color is the", answers("light green 9 yes", "grey 1 yes")),
        ("What is on the wall?", "other", "what is on the", answers("clock 9 yes", "watch 1 yes")),
    ]
    found = read(write(documents))
    # No answer to a question with the same first words fits, so any other question of the type gives the answer.
    assert [rows_of(found, number)[-1]["prediction"] for number in (1, 2)] == ["clock", "clock"]


def test_a_question_with_one_answer_has_no_rows(write: Write) -> None:
    records = read(write([*DOCUMENTS, ("Who?", "other", "who", answers("Ada 1 yes"))]))
    assert (records[-1].id, records[-1].problem) == ("6", "has fewer than two answers")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [({"answers": []}, "has no answers"), ({"answers": ["cat", None]}, "has an answer that is not text (null) in")],
)
def test_a_question_without_readable_answers_says_why(tmp_path: Path, entry: Any, problem: str) -> None:
    path = tmp_path / "q.json"
    good = {"question_id": 1, "question": "What?", "answers": ["cat", "dog"]}
    path.write_text(json.dumps({"data": [good, {"question_id": 2, "question": "Who?", **entry}]}))
    record = list(annotator_records(str(path)))[-1]
    assert (record.fields, record.id) == (None, "2")
    assert record.problem.startswith(problem)


def test_annotations_without_questions_are_refused(write: Write, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no question_id or no question"):
        list(annotator_records(write()[0]))
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"questions": [{"question_id": 1, "question": "What?"}]}))
    with pytest.raises(InputError, match=r"has no answers\. Use --questions FILE"):
        list(annotator_records(str(path)))


_TEXTS = st.text(max_size=6) | st.sampled_from(["yes", "no", "2", " ", "red", "RED ", "not sure", "\ud800", "\n\t"])


@settings(max_examples=example_count(120), suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    [("What?", "other", "what", [{"answer": each, "answer_confidence": "yes"} for each in ("red", "RED ", "sky")])]
)
@given(
    st.lists(
        st.tuples(
            st.just("What?"),
            st.sampled_from(["other", "yes/no", "number", ""]),
            st.sampled_from(["what", ""]),
            st.lists(
                st.fixed_dictionaries(
                    {"answer": _TEXTS},
                    optional={"answer_confidence": st.sampled_from(["yes", "maybe", "no", "?", None, 3, ["yes"]])},
                ),
                max_size=12,
            ),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_rows_of_any_annotators(write: Write, documents: Any) -> None:
    try:
        records = read(write(documents))
    except InputError:
        assert all(not any(each["answer"] for each in document[3]) for document in documents)
        return
    assert [record.index for record in records] == list(range(len(records)))
    assert {record.id for record in records if record.fields is None} == {
        str(number)
        for number, document in enumerate(documents, 1)
        if sum(bool(each["answer"].strip()) for each in document[3]) < 2
    }
    ids = [record.fields["id"] for record in records if record.fields]
    assert len(set(ids)) == len(ids)
    for number, document in enumerate(documents, 1):
        given_answers = [each["answer"] for each in document[3] if each["answer"].strip()]
        rows = rows_of(records, number)
        own = [row for row in rows if row["evidence"] != "other_question"]
        assert sum(row["annotators"] for row in own) == (len(given_answers) if rows else 0)
        for row in rows:
            assert len(row["references"]) == len(given_answers) - 1
            assert row["label"] is None or 0 <= row["label"] <= 1
            others = sum(_same(row["prediction"], reference) for reference in row["references"])
            assert row["agreement"] == min(others / 3, 1)
            assert (row["evidence"] in {"agreement", "minority"}) == (others > 0)
            assert row["evidence"] != "minority" or (row["label"] == 1 and others <= 2)
        for row in own:
            rest = list(given_answers)
            rest.remove(row["prediction"])
            assert sorted(row["references"]) == sorted(rest)


def _same(text: str, other: str) -> bool:
    return text.casefold().split() == other.casefold().split()


@settings(max_examples=example_count(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    document=mangled({"data": [{"question_id": 1, "question": "What?", "answers": SHOES, "answer_type": "other"}] * 1})
)
def test_damaged_files_are_read_to_the_end_or_refused(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(document))
    check_rows(annotator_records, path)


def test_agree_reads_the_labels_of_the_evidence_that_is_named(command: Command, write: Write, tmp_path: Path) -> None:
    annotations, questions = write()
    run = ("agree", annotations, "--from", "vqa-annotators", "--questions", questions, "--metrics", "exact_match")

    def cell(*more: str) -> tuple[Any, dict[str, Any]]:
        out = tmp_path / f"agree-{len(more)}.json"
        done = command(*run, "--resamples", "100", "--json", out, *more, stub=judging_stub())
        assert done.exit_code == 0, done.output
        found = json.loads(out.read_text())
        return found["labels"], found["metrics"]["exact_match"]["cells"][-1]

    rows = [record.fields for record in read((annotations, questions)) if record.fields]
    labels, whole = cell()
    assert labels["unlabelled_rows"] == sum(row["label"] is None for row in rows) == 2
    assert whole["rows"] == len(rows) - 2
    _, alone = cell("--where", "evidence=alternative,doubted,other_question")
    assert alone["rows"] == sum(row["evidence"] in {"alternative", "doubted", "other_question"} for row in rows)
    labels, counted = cell("--map", "label=agreement", "--map", "group=answer_type")
    assert (labels["unlabelled_rows"], counted["rows"]) == (0, len(rows))


def test_questions_need_a_reader_that_uses_them(command: Command, write: Write) -> None:
    done = command("agree", write()[0], "--questions", "q.json", "--metrics", "exact_match")
    assert done.exit_code == 2
    assert "--questions needs --from" in done.stderr
