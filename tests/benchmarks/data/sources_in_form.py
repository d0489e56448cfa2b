"""Small files of our own in the form of the public ones."""

import json
from pathlib import Path
from typing import Any

# The hash of the first begins with 76, that of the second with 77.
DEVELOPMENT = "question 42"
UNSEEN = "question 70"
_MODELS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")


def question(text: str = DEVELOPMENT, *, golden: str = "one/1 ", improper: bool = False, **of_models: Any) -> Any:
    """A question as EVOUNA's files have it; `fid="answer"` or `fid=("answer", True)` says an answer and its verdict."""
    given = {name: value if isinstance(value, tuple) else (value, True) for name, value in of_models.items()}
    found = {"question": text, "golden_answer": golden}
    for model in _MODELS:
        found[f"answer_{model}"], found[f"judge_{model}"] = given.get(model, ("an answer", False))
    return {**found, "improper": improper}


def write_evouna(directory: Path, *, nq: list[Any], tq: list[Any]) -> list[Path]:
    paths = [directory / "NQ.json", directory / "TQ.json"]
    for path, questions in zip(paths, (nq, tq), strict=True):
        path.write_text(json.dumps(questions, indent=1))
    return paths


def write_nq301(directory: Path, lines: list[str], answers: dict[str, list[str]]) -> list[Path]:
    """`lines` have tabs between id, question, answer, verdict and three annotators."""
    table, answered = directory / "NQ301_human.tsv", directory / "zeroshot.jsonl"
    header = "id\tQuestion\tModel answer\tAcceptable?\tannotator1\tannotator2\tannotator3"
    table.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    answered.write_text(
        "".join(
            json.dumps({"question": text, "answer": each, "prediction": "x"}) + "\n" for text, each in answers.items()
        )
    )
    return [table, answered]
