"""Official files of visual question answering, scored by command, against an oracle of the official program.

The oracle follows its published rules (VQA v2, PythonEvaluationTools) by itself: white space is mended; where the ten
annotators differ, punctuation, number words, articles and contractions are normalised; then for each annotator
min(1, others who gave the answer / 3), and their mean. Figures by type are means over the questions of the type.
"""

import gzip
import json
import random
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gradewire_cli.group import gradewire

COUNT = 2000
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
CONTRACTED = {"dont": "don't", "isnt": "isn't", "cant": "can't", "im": "i'm", "lets": "let's"}
WORDS = (
    *("a", "The", "an", "cat", "Cats", "dog", "red", "blue", "yes", "no", "Yes", "none", "3", "1,000", "2.5", "10:30"),
    *("p.m.", "t-shirt", "black/white", "(left)", "what?", "end.", "C++", "U.S.", "don't", "it's"),
    *NUMBERS,
    *CONTRACTED,
)
NOTHING = ("the", "?", "An", "...", "a-the", "( )")
"""Answers of which normalisation leaves the empty text."""
PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'


def normalised(text: str) -> str:
    with_number = re.search(r"\d,\d", text) is not None
    out = text
    for mark in PUNCTUATION:
        beside_blank = f"{mark} " in text or f" {mark}" in text
        out = out.replace(mark, "" if beside_blank or with_number else " ")
    out = re.sub(r"\.(?!\d)", "", out)
    known = {word: str(number) for number, word in enumerate(NUMBERS)} | {"none": "0"}
    words = [known.get(word, word) for word in out.lower().split()]
    return " ".join(CONTRACTED.get(word, word) for word in words if word not in {"a", "an", "the"})


def oracle(prediction: str, answers: list[str]) -> float:
    given = prediction.replace("\n", " ").replace("\t", " ").strip()
    told = [answer.replace("\n", " ").replace("\t", " ").strip() for answer in answers]
    if len(set(told)) > 1:
        given, told = normalised(given), [normalised(answer) for answer in told]
    return fmean(
        min(1.0, sum(other == given for place, other in enumerate(told) if place != own) / 3)
        for own in range(len(told))
    )


def drawn() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Questions, annotations and results."""
    draw = random.Random(16)  # noqa: S311 - a test's
    questions, annotations, results = [], [], []
    for number in range(COUNT):
        pool = [" ".join(draw.choices(WORDS, k=draw.randint(1, 3))) for _ in range(draw.randint(1, 4))]
        if number % 5 == 0:
            pool += draw.choices(NOTHING, k=2)
        answers = [draw.choice(pool) for _ in range(10)]
        prediction = draw.choice([*pool, pool[0].upper(), f" the {pool[0]}", f"{pool[-1]}.", "other", *NOTHING[:2]])
        questions.append({"question_id": number, "image_id": number // 3, "question": f"What is {number}?"})
        annotations.append(
            {
                "question_id": number,
                "image_id": number // 3,
                "question_type": draw.choice(["what is", "how many", "is the"]),
                "answer_type": draw.choice(["yes/no", "number", "other"]),
                "multiple_choice_answer": answers[0],
                "answers": [
                    {"answer": answer, "answer_confidence": "yes", "answer_id": place}
                    for place, answer in enumerate(answers, 1)
                ],
            }
        )
        results.append({"question_id": number, "answer": prediction})
    return questions, annotations, results


@pytest.fixture
def score(tmp_path: Path) -> Any:
    """Runs the command over documents; gives its result, the output's rows and the summary."""

    def run(results: Any, questions: Any, annotations: Any = None, *more: str) -> tuple[Result, list[Any], Any]:
        named = {"results": results, "questions": questions, "annotations": annotations}
        paths = {name: tmp_path / f"{name}.json" for name in named}
        for name, document in named.items():
            paths[name].write_text(json.dumps(document))
        out, summary = tmp_path / "out.jsonl", tmp_path / "summary.json"
        options = ["--from", "vqa", "--questions", paths["questions"], "--out", out, "--summary-json", summary]
        options += [] if annotations is None else ["--annotations", paths["annotations"]]
        metrics = () if "--metrics" in more else ("--metrics", "vqa_accuracy")
        words = ["score", paths["results"], *options, *metrics, "--embedded", *more]
        result = CliRunner().invoke(gradewire, list(map(str, words)))
        rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        return result, rows, json.loads(summary.read_text()) if summary.exists() else None

    return run


def test_scores_equal_the_official_programs_overall_and_by_type(score: Any) -> None:
    questions, annotations, results = drawn()
    expected = [
        oracle(result["answer"], [each["answer"] for each in annotation["answers"]])
        for result, annotation in zip(results, annotations, strict=True)
    ]
    assert 0.2 < fmean(expected) < 0.8  # the draws are worth something
    empty = [value for value, result in zip(expected, results, strict=True) if not normalised(result["answer"])]
    assert sum(value > 0 for value in empty) > 50
    done, rows, summary = score(results, {"questions": questions}, {"annotations": annotations})
    assert done.exit_code == 0, done.stderr
    found = [row["scores"]["vqa_accuracy"]["score"] for row in rows]
    differing = [
        (results[n]["answer"], annotations[n]["answers"][0]["answer"], a, b)
        for n, (a, b) in enumerate(zip(found, expected, strict=True))
        if abs(a - b) > 1e-9
    ]
    assert differing == []
    assert summary["metrics"]["vqa_accuracy"]["mean"] == pytest.approx(fmean(expected), abs=1e-9)
    for column in ("answer_type", "question_type"):
        by_type = defaultdict(list)
        for annotation, value in zip(annotations, expected, strict=True):
            by_type[annotation[column]].append(value)
        told = {value: means["vqa_accuracy"] for value, means in summary["by"][column].items()}
        assert told.keys() == by_type.keys()
        for value, values in by_type.items():
            means = told[value]
            assert (means["rows"], means["scored"]) == (len(values), len(values))
            assert means["mean"] == pytest.approx(fmean(values))
            assert means["interval_95"][0] <= means["mean"] <= means["interval_95"][1]
    assert "vqa_accuracy by answer_type" in done.stderr
    assert "vqa_accuracy by question_type" in done.stderr


def test_empty_answers_count_as_wrong_by_type_as_in_the_official_program(score: Any) -> None:
    questions, annotations, results = (rows[:60] for rows in drawn())
    results = [{**result, "answer": "" if n % 3 else result["answer"]} for n, result in enumerate(results)]
    done, _, summary = score(results, {"questions": questions}, {"annotations": annotations})
    assert "mean, empty wrong" in done.stderr.partition("by answer_type")[2]
    by_type = defaultdict(list)
    for result, annotation in zip(results, annotations, strict=True):
        # But for annotators who answered with articles alone, to which the official program takes it for equal.
        value = oracle(result["answer"], [each["answer"] for each in annotation["answers"]]) if result["answer"] else 0
        by_type[annotation["answer_type"]].append(value)
    told = {value: means["vqa_accuracy"] for value, means in summary["by"]["answer_type"].items()}
    assert {value: mean["mean_empty_as_wrong"] for value, mean in told.items()} == {
        value: pytest.approx(fmean(values)) for value, values in by_type.items()
    }


def test_a_question_without_a_usable_annotation_is_named_and_the_rest_is_scored(score: Any) -> None:
    questions, annotations, _ = (rows[:5] for rows in drawn())
    annotations[1]["answers"][3]["answer"] = None
    annotations[2]["answers"] = []
    del annotations[3]
    results = [{"question_id": n, "answer": "cat"} for n in (0, 1, 2, 3)]
    done, rows, _ = score(results, {"questions": questions}, {"annotations": annotations})
    assert done.exit_code == 1
    told = [(row["id"], row["scores"]["vqa_accuracy"].get("message", "")) for row in rows]
    assert [identifier for identifier, _ in told] == list("01234")
    assert [
        words in message
        for (_, message), words in zip(
            told[1:], ("is not text (null)", *["no answers"] * 2, "no answer in the results"), strict=True
        )
    ] == [True] * 4
    assert rows[0]["scores"]["vqa_accuracy"]["status"] == "OK"


def test_a_row_without_a_score_has_the_id_of_its_question_and_not_that_of_another(score: Any) -> None:
    questions, annotations, _ = (rows[:5] for rows in drawn())
    results = [{"question_id": 4.0, "answer": "cat"}, {"question_id": 4, "answer": "cat"}, {"question_id": 9}]
    _, rows, _ = score(results, {"questions": questions}, {"annotations": annotations})
    assert [row["id"] for row in rows] == ["4", "4", "9", "0", "1", "2", "3"]


def test_results_of_another_form_say_what_they_have(score: Any) -> None:
    question = {"question_id": 1, "question": "What?", "answers": ["cat", "cat", "dog"]}
    done, _, _ = score([{"question_id": 1, "text": "cat"}], {"data": [question]})
    assert "the first rows are all unreadable (" in done.stderr
    assert "results.json result 1 has no answer (its fields: question_id, text))" in done.stderr


def test_a_prediction_goes_before_the_data_sets_own_answer(score: Any) -> None:
    question = {"question_id": 1, "question": "What?", "answers": ["cat", "cat", "dog"]}
    results = [{"question_id": 1, "answer": "cat", "prediction": "bird"}]
    _, rows, _ = score(results, {"data": [question]})
    assert rows[0]["scores"]["vqa_accuracy"]["score"] == 0.0


def test_missing_doubled_and_unknown_ids_are_named_and_the_rest_is_scored(score: Any) -> None:
    questions, annotations, _ = drawn()
    answer = annotations[0]["answers"][0]["answer"]
    results = [
        {"question_id": 0, "answer": answer},
        {"question_id": 77_777, "answer": "x"},
        {"question_id": "0", "answer": "again"},
        {"answer": "whose?"},
        {"question_id": 1},
        17,
        {"question_id": 2, "answer": ""},
    ]
    done, rows, summary = score(results, {"questions": questions[:4]}, {"annotations": annotations})
    assert done.exit_code == 1
    told = [(row["scores"]["vqa_accuracy"]["status"], row["scores"]["vqa_accuracy"].get("message", "")) for row in rows]
    assert [status for status, _ in told] == ["OK", *["INVALID_INPUT"] * 5, "EMPTY_PREDICTION", *["INVALID_INPUT"] * 2]
    for message, words in zip(
        (text for _, text in told[1:6]),
        (
            "question 77777, which is not in the questions file",
            "question 0 again, but only result 1 counts",
            "no question_id",
            "no answer",
            "object",
        ),
        strict=True,
    ):
        assert words in message
    assert [text.split(" has no answer")[0] for _, text in told[7:]] == ["question 1", "question 3"]
    assert summary["by"]["answer_type"][annotations[0]["answer_type"]]["vqa_accuracy"]["scored"] >= 1
    assert summary["metrics"]["vqa_accuracy"]["scored"] == 1


def test_other_forms_are_told_apart_by_what_is_in_them(score: Any) -> None:
    textvqa = {"data": [{"question_id": 5, "question": "What?", "image_id": "x", "answers": ["stop", *["halt"] * 9]}]}
    done, rows, _ = score([{"question_id": 5, "answer": "stop"}], textvqa, None, "--keep-columns", "image_id")
    assert (done.exit_code, rows[0]["scores"]["vqa_accuracy"]["score"]) == (0, pytest.approx(0.3))
    assert rows[0]["id"] == "5"
    assert rows[0]["input"]["image_id"] == "x"
    gqa = {
        "201": {
            "question": "Is it red?",
            "answer": "no",
            "imageId": "n1",
            "types": {"structural": "verify", "semantic": "attr"},
        }
    }
    single = ("--metrics", "vqa_accuracy?consensus=single&normalise=always,exact_match", "--overwrite")
    done, rows, summary = score([{"questionId": "201", "prediction": "No"}], gqa, None, *single)
    assert done.exit_code == 0, done.stderr
    assert rows[0]["scores"]["vqa_accuracy?consensus=single&normalise=always"]["score"] == 1.0
    assert summary["by"]["answer_type"]["verify"]["exact_match"]["mean"] == 1.0
    assert summary["by"]["question_type"].keys() == {"attr"}


def test_annotators_confidence_is_kept_beside_their_answers(score: Any) -> None:
    answers = [("zebra", "no"), ("cat", "maybe"), ("dog", "yes")]
    annotation = {"question_id": 1, "answers": [{"answer": a, "answer_confidence": sure} for a, sure in answers]}
    kept = ("--keep-columns", "answer_confidence,references")
    questions = {"questions": [{"question_id": 1, "question": "What?"}]}
    _, rows, _ = score([{"question_id": 1, "answer": "dog"}], questions, {"annotations": [annotation]}, *kept)
    assert rows[0]["input"]["references"] == ["zebra", "cat", "dog"]
    assert rows[0]["input"]["answer_confidence"] == ["no", "maybe", "yes"]
    assert rows[0]["scores"]["vqa_accuracy"]["matched_reference"] == 2


def test_a_mark_of_byte_order_before_a_file_is_no_part_of_it(score: Any, tmp_path: Path) -> None:
    question = {"question_id": 1, "question": "What?", "answers": ["cat", "cat", "dog"]}
    score([{"question_id": 1, "answer": "cat"}], {"data": [question]})
    names = ("results", "questions")
    for path in (tmp_path / f"{name}.json" for name in names):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    results, questions = (str(tmp_path / f"{name}.json") for name in names)
    words = ["score", results, "--from", "vqa", "--questions", questions, "--metrics", "vqa_accuracy", "--embedded"]
    assert CliRunner().invoke(gradewire, words).exit_code == 0


def test_a_run_is_taken_up_and_its_files_may_be_gzipped(score: Any, tmp_path: Path) -> None:
    questions, annotations, results = drawn()
    score(results[:40], {"questions": questions[:40]}, {"annotations": annotations[:40]})
    for name in ("questions", "annotations"):
        path = tmp_path / f"{name}.json"
        (tmp_path / f"{name}.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    words = ["score", tmp_path / "results.json", "--from", "vqa", "--questions", tmp_path / "questions.json.gz"]
    words += ["--annotations", tmp_path / "annotations.json.gz", "--metrics", "vqa_accuracy", "--embedded", "--resume"]
    words += ["--out", tmp_path / "out.jsonl", "--summary-json", tmp_path / "again.json"]
    done = CliRunner().invoke(gradewire, list(map(str, words)))
    assert done.exit_code == 0, done.stderr
    before, after = (json.loads((tmp_path / name).read_text()) for name in ("summary.json", "again.json"))
    assert after["by"] == before["by"]
    assert after["run"]["scored_rows"] == 0


@pytest.mark.parametrize(
    ("questions", "annotations", "message"),
    [
        ({"rows": 3}, None, "unknown format"),
        ({"questions": [{"question": "Who?"}]}, None, "an entry has no question_id"),
        ({"questions": [{"question_id": 1, "question": "a"}] * 2}, None, "question 1 appears twice"),
        ({"questions": [{"question_id": 1, "question": "a"}]}, None, "question 1 has no answers. Use --annotations"),
        ({"questions": [{"question_id": 1, "question": "a"}]}, {"annotations": []}, "Use another --annotations"),
        ({"data": [{"question_id": 1, "question": "a", "answers": [None]}]}, None, "an answer that is not text (null)"),
        (
            {"questions": [{"question_id": 1, "question": "a"}]},
            {"annotations": [{"question_id": 1, "answers": ["a"]}, {"question_id": "1", "answers": ["b"]}]},
            "annotations.json: question 1 appears twice",
        ),
    ],
)
def test_files_that_cannot_be_used_are_named(score: Any, questions: Any, annotations: Any, message: str) -> None:
    done, rows, _ = score([{"question_id": 1, "answer": "b"}], questions, annotations)
    assert (done.exit_code, rows) == (2, [])
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "vqa"), "needs --questions"),
        (("--questions", "q.json"), "needs --from vqa"),
        (("--from", "vqa", "--questions", "none.json"), "none.json"),
        (("--from", "vqa", "--questions", "q.json", "--input-format", "csv"), "Leave out --input-format"),
        (("--from", "vqa", "--questions", "q.json", "--encoding", "latin-1"), "Leave out --encoding"),
        (("--from", "vqa", "--questions", "q.json", "--delimiter", ";"), "Leave out --delimiter"),
    ],
)
def test_options_that_do_not_go_together_are_named(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "r.json").write_text("[]")
    done = CliRunner().invoke(gradewire, ["score", str(tmp_path / "r.json"), *words, "--metrics", "bleu"])
    assert done.exit_code == 2
    assert message in done.stderr


def test_the_label_of_an_annotators_answer_is_its_vqa_accuracy(tmp_path: Path) -> None:
    """Against the other nine annotators, where only agreement counts."""
    draw = random.Random(1)  # noqa: S311 - no secret
    words = ("cat", "dog", "kitten", "red", "blue")
    answers = [[{"answer": draw.choice(words)} for _ in range(10)] for _ in range(60)]
    asked = [{"question_id": number, "question": f"What is {number}?"} for number in range(60)]
    said = [{"question_id": number, "answers": each} for number, each in enumerate(answers)]
    for name, entries in (("questions", asked), ("annotations", said)):
        (tmp_path / f"{name}.json").write_text(json.dumps({name: entries}))
    files = (tmp_path / "annotations.json", "--from", "vqa-annotators", "--questions", tmp_path / "questions.json")
    options = ("--metrics", "vqa_accuracy?consensus=direct", "--map", "label=agreement", "--resamples", "100")
    words_of = ["agree", *files, *options, "--embedded", "--json", tmp_path / "agree.json"]
    done = CliRunner().invoke(gradewire, list(map(str, words_of)))
    assert done.exit_code == 0, done.stderr
    (found,) = json.loads((tmp_path / "agree.json").read_text())["metrics"].values()
    cell = found["cells"][-1]
    assert cell["rows"] > 120
    assert cell["pearson"]["value"] == pytest.approx(1)
