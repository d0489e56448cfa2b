"""Examples as JSON lines, one an example, with the fields of `Example`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gradewire_train.errors import TrainingError
from gradewire_train.examples import TASKS, Example
from gradewire_train.json_lines import json_objects, well_formed
from gradewire_train.texts.sound import contradiction


def read_examples(path: Path) -> list[Example]:
    """Reads examples.

    Raises:
        TrainingError: The file cannot be read, a line is no example or teaches the opposite of what it should (the
            message names it), or there is none.
    """
    lines = json_objects(path, "task, question, anchor, positive and negatives")
    found = [_example(raw, where) for where, raw in lines]
    if not found:
        raise TrainingError(f"{path} holds no example")
    return found


def _example(raw: Mapping[str, Any], where: str) -> Example:
    for name in ("task", "question", "anchor", "positive"):
        if not isinstance(raw.get(name), str):
            raise TrainingError(f"{where}: {name} should be a text")
    negatives = raw.get("negatives")
    if not isinstance(negatives, list) or not all(isinstance(each, str) for each in negatives):
        raise TrainingError(f"{where}: negatives should be a list of texts")
    if raw["task"] not in TASKS:
        raise TrainingError(f"{where}: task should be one of {', '.join(TASKS)}")
    example = Example(raw["task"], raw["question"], raw["anchor"], raw["positive"], tuple(negatives))
    if not all(map(well_formed, (example.question, *example.answers))):
        raise TrainingError(f"{where}: a lone surrogate, which is no character, is in it")
    if wrong := contradiction(example):
        raise TrainingError(f"{where}: {wrong}")
    return example


def write_examples(examples: Iterable[Example], path: Path) -> None:
    """Writes examples as `read_examples` reads them."""
    with path.open("w", encoding="utf-8") as file:
        for example in examples:
            file.write(json.dumps(asdict(example), ensure_ascii=False) + "\n")
