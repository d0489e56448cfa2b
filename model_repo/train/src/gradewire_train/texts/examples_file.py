"""Examples as JSON lines, one an example, with the fields of `Example`."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from gradewire_train.errors import TrainingError
from gradewire_train.examples import TASKS, Example
from gradewire_train.texts.sound import contradiction
from gradewire_train.well_formed import well_formed


def read_examples(path: Path) -> list[Example]:
    """Reads examples.

    Raises:
        TrainingError: The file cannot be read, a line is no example or teaches the opposite of what it should (the
            message names it), or there is none.
    """
    found = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    found.append(_example(line, f"{path}, line {number}"))
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingError(f"cannot read {path}: {error}") from error
    if not found:
        raise TrainingError(f"{path} holds no example")
    return found


def _example(line: str, where: str) -> Example:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TrainingError(f"{where}: no JSON ({error})") from error
    if not isinstance(raw, dict):
        raise TrainingError(f"{where}: should be an object")
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
        raise TrainingError(f"{where}: half a surrogate pair, which is no character, is in it")
    if wrong := contradiction(example):
        raise TrainingError(f"{where}: {wrong}")
    return example


def write_examples(examples: Iterable[Example], path: Path) -> None:
    """Writes examples as `read_examples` reads them."""
    with path.open("w", encoding="utf-8") as file:
        for example in examples:
            file.write(json.dumps(asdict(example), ensure_ascii=False) + "\n")
