"""Small files under the names that pages use, each with the columns that its commands read."""

import csv
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from tests.docs.documented_commands import ROOT

_LOGS = ROOT / "tests/support/harness_logs"
_MODELS = ("gpt35", "gpt4", "fid")
_EXAMPLES = [json.loads(line) for line in (ROOT / "examples/answers.jsonl").read_text("utf-8").splitlines()]


def rows() -> list[dict[str, Any]]:
    """Every other of the example's answers, with all columns that a page speaks of."""
    return [
        {
            "id": each["id"],
            "question": each["question"],
            "references": [*each["references"], "something else"],
            "prediction": each["prediction"],
            "label": each["label"],
            "labels": [each["label"], 1, each["label"]],
            "dataset": ("nq", "tq")[number % 4 // 2],
            "model": _MODELS[number % 3],
            "flags": ["time-dependent"] if number % 5 == 0 else [],
        }
        for number, each in enumerate(_EXAMPLES[::2])
    ]


def _vqa() -> list[dict[str, Any]]:
    return [
        {
            "question": row["question"],
            "answer": json.dumps(row["references"]),
            "prediction": row["prediction"],
            "model_output": row["prediction"],
            **{f"rater{number}": label for number, label in enumerate(row["labels"], 1)},
            "answer_type": row["dataset"],
        }
        for row in rows()
    ]


def _pairs() -> list[dict[str, Any]]:
    votes = (["A", "A", "B", "A", "A"], ["B", "B", "B", "A", "tie"])
    return [
        {
            "instruction": f"task {number}",
            "response_a": "a cat sits",
            "response_b": "dogs run in the yard",
            "references": ["the cat sits"],
            "votes": votes[number % 2],
            "choices": {"judge": "A", "other": "tie"},
            "judge_choice": "AB"[number % 2],
            "judge_column": "B",
        }
        for number in range(8)
    ]


def _flips() -> list[dict[str, Any]]:
    return [
        {
            "kind": ("name", "number")[number % 2],
            "question": row["question"],
            "references": row["references"],
            "answer": row["references"][0],
            "changed": f"{row['references'][0]}. No, the other" if number % 4 else f"{row['references'][0]}.",
            "label": int(number % 4 == 0),
        }
        for number, row in enumerate(rows()[::4])
    ]


def _judged() -> list[dict[str, Any]]:
    """Pairs of two models, each of which wins, with answers of other lengths on either side."""
    words = ("a cat", "a small cat sits there", "no", "dogs run in the yard")
    return [
        {
            "question_id": f"q{number // 2}",
            "model_a": _MODELS[number % 2],
            "model_b": _MODELS[1 - number % 2],
            "winner": ("model_a", "model_b", "tie (bothbad)", "model_a", "model_a")[number % 5],
            "conversation_a": [{"role": "assistant", "content": words[number % 4]}],
            "conversation_b": [{"role": "assistant", "content": words[number % 3]}],
        }
        for number in range(30)
    ]


def _write_visit_bench(directory: Path) -> None:
    """Write VisIT-Bench's files: answers by model, the data set, predictions of two models, and preferences."""
    models = {"llava-13b": "{} apples.", "otter-9b": "a basket of {}", "pandagpt-13b": "a red car and a street"}
    asked = [
        {
            "instruction_category": ("Counting", "Naming")[number % 2],
            "image": f"https://images.example/{number}_basket.png",
            "instruction": f"How many apples are in basket {number // 2}?",
            "gpt4_prediction": f"There are {number} apples.",
            "image_dense_captions": "A basket.",
        }
        for number in range(16)
    ]
    lines = [
        {
            "id": f"vb-{number}",
            "instruction": each["instruction"],
            "family": each["instruction_category"],
            "caption": each["image_dense_captions"],
            "reference": each["gpt4_prediction"],
            "answers": {model: said.format(number) for model, said in models.items()},
        }
        for number, each in enumerate(asked)
    ]
    (directory / "visit_bench.jsonl").write_text(_jsonl(lines))
    votes = [
        {
            "image_url": each["image"],
            "instruction": each["instruction"],
            "A": said_a.format(number),
            "B": said_b.format(number),
            "A_model": a,
            "B_model": b,
            "model_selection.A": str(vote > number % 4).upper(),
            "model_selection.B": str(vote <= number % 4).upper(),
        }
        for number, each in enumerate(asked)
        for (a, said_a), (b, said_b) in itertools.combinations(models.items(), 2)
        for vote in range(5)
    ]
    (directory / "predictions").mkdir()
    for name, records in (
        ("single_image", asked),
        ("human_preferences", votes),
        ("predictions/llava", [{**each, "llava13b_output": "six apples"} for each in asked]),
        ("predictions/otter", [{**each, "otter": each["gpt4_prediction"]} for each in asked]),
    ):
        with (directory / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
    (directory / "printed.csv").write_text("model,rating\nhuman,1200\ngpt4,1100\nfid,900\n")
    for judge, own in (("gpt", 3), ("claude", 2)):
        pairs = [
            {
                **pair,
                "model_a": "gpt4",
                "model_b": "fid",
                "winner": ("model_a", "model_b")[number % own == 0],
                "by": judge,
            }
            for number, pair in enumerate(_judged())
        ]
        (directory / f"by_{judge}.jsonl").write_text(_jsonl(pairs))


def _ave() -> list[dict[str, Any]]:
    """A sample in both of the shapes that pages speak of: a public file's columns, and the stand-in's."""
    return [
        {
            "question": row["question"],
            "references": row["references"],
            "response": row["prediction"],
            "prediction": row["prediction"],
            **{f"desc{number}": f"one would say {row['prediction']}, {number} times" for number in (1, 2, 3)},
            "descriptions": [f"it is {row['prediction']}"],
            "synonym": [f"the {text}" for text in row["references"]],
            "grade": 10 * row["label"],
            "label": row["label"],
            "dataset": row["dataset"],
        }
        for row in rows()[::3]
    ]


def _sts(folder: Path) -> None:
    """Two test sets in the forms of SemEval and SICK."""
    texts = [(row["references"][0], row["prediction"], 5 * row["label"]) for row in rows()]
    year = folder / "STS12-en-test"
    year.mkdir(parents=True)
    (year / "STS.input.MSRpar.txt").write_text("".join(f"{first}\t{second}\n" for first, second, _ in texts))
    (year / "STS.gs.MSRpar.txt").write_text("".join(f"{grade}\n" for *_, grade in texts))
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    lines = (f"{number}\t{first}\t{second}\t{grade}\tNEUTRAL\n" for number, (first, second, grade) in enumerate(texts))
    (folder / "SICK_test_annotated.txt").write_text(header + "".join(lines))


def _official() -> dict[str, Any]:
    """Files as VQA v2 and SQuAD 2 have them."""
    said = (*[("a cat", "yes")] * 8, ("a kitten", "yes"), ("a mat", "no"))
    answers = [
        {"answer": answer, "answer_confidence": sure, "answer_id": place}
        for place, (answer, sure) in enumerate(said, 1)
    ]
    asked = {"question_id": 7, "image_id": 3}
    types = {"question_type": "what is", "answer_type": "other", "multiple_choice_answer": "a cat"}
    has_answer = {"id": "a", "question": "What is on the mat?", "answers": [{"text": "a cat"}]}
    no_answer = {"id": "b", "question": "Who owns the mat?", "answers": [], "is_impossible": True}
    return {
        "questions": {"questions": [{**asked, "question": "What is on the mat?"}]},
        "annotations": {"annotations": [{**asked, **types, "answers": answers}]},
        "results": [{"question_id": 7, "answer": "a cat"}],
        "dev-v2.0": {"data": [{"title": "Cats", "paragraphs": [{"qas": [has_answer, no_answer]}]}]},
        "predictions": {"a": "a cat", "b": ""},
    }


def _write_labels(directory: Path) -> None:
    """Labels apart from their answers, by one person and by two."""
    given = rows()
    lines = ["id,correct", *(f"{row['id']},{'yes' if row['label'] else 'no'}" for row in given[1:])]
    (directory / "labels.csv").write_text("\n".join(lines))
    rated = ["answer_id,ann,ben", *(f"{row['id']},{row['label']},1" for row in given)]
    (directory / "ratings.csv").write_text("\n".join(rated))
    (directory / "answers.labels.csv").write_text("\n".join(["id,ann,ben", *rated[1:]]))


def _write_rollouts(directory: Path) -> None:
    """Rows as verl has them, with a prediction."""
    table = [
        {
            "data_source": row["dataset"],
            "prompt": [{"role": "user", "content": row["question"]}],
            "reward_model": {"style": "rule", "ground_truth": row["references"][0]},
            "prediction": row["prediction"],
        }
        for row in rows()
    ]
    parquet.write_table(pa.Table.from_pylist(table), directory / "rollouts.parquet")


def _write_human_labels(directory: Path) -> None:
    """Files as VerifierBench, the answer equivalence data set and EVOUNA have them."""
    given = rows()
    texts = [(row["question"], row["references"][0], row["prediction"], row["label"]) for row in given]
    judged = [
        {"question": question, "gold_answer": reference, "llm_response": said, "gold_judgment": "BA"[label]}
        for question, reference, said, label in texts
    ]
    rated = [
        {"qid": question, "question": question, "reference": reference, "candidate": said, "score": float(label)}
        for question, reference, said, label in texts
    ]
    systems = [
        {
            "question": question,
            "golden_answer": reference,
            "answer_fid": said,
            "judge_fid": bool(label),
            "improper": False,
        }
        for question, reference, said, label in texts
    ]
    (directory / "verifierbench.json").write_text(json.dumps(judged))
    (directory / "ae_dev.jsonl").write_text(_jsonl(rated))
    (directory / "NQ.json").write_text(json.dumps(systems))


def _write_harness_logs(directory: Path) -> None:
    """Logs that harnesses wrote, under the names that pages use."""
    (directory / "results/my-model").mkdir(parents=True)
    # The other tasks have rows without an answer.
    for path in (
        path for task in ("choices", "facts", "letters") for path in _LOGS.glob(f"lm_eval/samples_gw_{task}_*")
    ):
        shutil.copy(path, directory / "results/my-model")
    for folder in ("logs", "outputs/model"):
        (directory / folder).mkdir(parents=True)
    shutil.copyfile(_LOGS / "inspect/eval/sums.eval", directory / "logs/run.eval")
    shutil.copyfile(_LOGS / "vlmevalkit/table_GwQuestions.xlsx", directory / "outputs/model/model_MMStar.xlsx")


def _load(*, repeated: float, cpu_s: float) -> dict[str, Any]:
    """What two steps of a load on a server gave, with rows of one file."""
    step = {"outcome": "holds", "batch": 1, "answers_repeated_share": repeated, "words_mean": 12.0}
    steps = [{**step, "rate_per_s": rate, "server_cpu_s_per_item": cpu_s} for rate in (40.0, 60.0)]
    return {"metrics": {"smile": "smile:v1/1?model=m@0"}, "steps": steps}


def _jsonl(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def write_samples(directory: Path) -> None:
    """Writes all of them."""
    answers = _jsonl(rows())
    for name in (
        "answers",
        "labelled",
        "development",
        "benchmark",
        "part",
        "references",
        "vqa",
        "nli",
        "my-vqa",
        "my-nli",
        "runs",
        "base",
        "new",
        "third",
        "unlabelled",
        "mine",
        "drawn",
        "drawn.scores",
        "evouna_dev",
        "pupils_dev",
        "development",
        "development-2",
        "counterfactual",
        "held_out",
    ):
        (directory / f"{name}.jsonl").write_text(answers)
    (directory / "condaqa_dev.json").write_text("[]")
    (directory / ".data").mkdir()
    for name in ("evouna_dev", "nq301_human"):
        (directory / ".data" / f"{name}.jsonl").write_text(answers)
    (directory / "examples").mkdir()
    (directory / "examples/answers.jsonl").write_text(_jsonl(_EXAMPLES[::2]))
    pictures = (ROOT / "examples/visual_questions.jsonl").read_text("utf-8").splitlines(keepends=True)
    (directory / "examples/visual_questions.jsonl").write_text("".join(pictures[:60]))
    asked = {row["question"]: row for row in rows()}.values()
    models = [{**row, "id": f"{row['id']}-{model}", "model": model} for model in _MODELS for row in asked]
    (directory / "models.jsonl").write_text(_jsonl(models))
    (directory / "pairs.jsonl").write_text(_jsonl(_pairs()))
    samples = [{"prompt": row["question"], "answers": [row["prediction"], *row["references"]]} for row in rows()]
    (directory / "samples.jsonl").write_text(_jsonl(samples))
    (directory / "examples/choices").mkdir()
    choices = (ROOT / "examples/choices/development.jsonl").read_text("utf-8").splitlines(keepends=True)
    (directory / "examples/choices/development.jsonl").write_text("".join(choices[::10]))
    (directory / "examples/values").mkdir()
    values = (ROOT / "examples/values/report.jsonl").read_text("utf-8").splitlines(keepends=True)
    (directory / "examples/values/report.jsonl").write_text("".join(values[::20]))
    (directory / "examples/flips").mkdir()
    for name in ("flips", "examples/flips/development"):
        (directory / f"{name}.jsonl").write_text(_jsonl(_flips()))
    for name in ("arena", "votes", "judged"):
        (directory / f"{name}.jsonl").write_text(_jsonl(_judged()))
    (directory / "answers").mkdir()
    for model in ("human", "gpt4", "fid"):
        (directory / f"answers/{model}.jsonl").write_text(_jsonl([{**row, "model": model} for row in rows()]))
    (directory / "ave.json").write_text(json.dumps(_ave()))
    (directory / "standin.jsonl").write_text(_jsonl(_ave()))
    (directory / "nq301-standin.jsonl").write_text(_jsonl(_ave()))
    (directory / "f1.toml").write_text("")
    _sts(directory / "sts")
    loads = {"new": _load(repeated=0.0, cpu_s=0.01), "warm": _load(repeated=1.0, cpu_s=0.002)}
    for name, document in {**_official(), **loads}.items():
        (directory / f"{name}.json").write_text(json.dumps(document))
    for name, records in (("vqa.csv", _vqa()), ("pairs.csv", _pairs())):
        with (directory / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, records[0])
            writer.writeheader()
            for record in records:
                writer.writerow(
                    {
                        key: json.dumps(value) if isinstance(value, list | dict) else value
                        for key, value in record.items()
                    }
                )
    _write_human_labels(directory)
    _write_visit_bench(directory)
    _write_labels(directory)
    _write_rollouts(directory)
    _write_harness_logs(directory)
    for name in ("DIR", "wheels", "my-adapter", "my-grader", "my-run/adapter", "my-encoder", "repository"):
        (directory / name).mkdir(parents=True)
