"""What the tasks beside this compute, as tasks of lmms-eval do."""

from statistics import fmean
from typing import Any

from PIL import Image


def picture(doc: dict[str, Any]) -> list[Any]:
    """A square of the document's colour."""
    return [Image.new("RGB", (2, 2), tuple(doc["rgb"]))]


def question(doc: dict[str, Any], lmms_eval_specific_kwargs: dict[str, str]) -> str:
    """The question with what the task says after it."""
    return doc["question"] + lmms_eval_specific_kwargs["post_prompt"]


def lettered(doc: dict[str, Any]) -> str:
    """The question with its options."""
    options = "".join(f"\n{chr(ord('A') + place)}. {text}" for place, text in enumerate(doc["options"]))
    return f"{doc['question']}{options}\nAnswer with the option's letter."


def pictures_results(doc: dict[str, Any], results: list[str]) -> dict[str, Any]:
    """A number, and an object by which the task makes means of its own."""
    right = float(results[0] in doc["answers"])
    known = {"question_id": doc["question_id"], "question_type": doc["question_type"], "answers": doc["answers"]}
    return {"exact_match": right, "by_type": {**known, "pred": results[0], "score": right}}


def mean_of(results: list[dict[str, Any]]) -> float:
    """The mean of what `pictures_results` gives."""
    return fmean(each["score"] for each in results)
