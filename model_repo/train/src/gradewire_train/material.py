"""Load the files in `data/`: words, questions and sentences from which texts are drawn."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any


def _read(file: str) -> Mapping[str, Any]:
    text = resources.files("gradewire_train").joinpath("data", f"{file}.toml").read_text(encoding="utf-8")
    tables: Mapping[str, Any] = _with_tuples(tomllib.loads(text))
    return tables


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_tuples(each) for key, each in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


WORDS = _read("words")
"""Lists of names, things and qualities."""

QUESTIONS = _read("questions")
"""Questions by kind of answer, each with a sentence that answers the question."""

ANSWERS = _read("answers")
"""Answers, and sentences that contain an answer."""

GRADED = _read("graded")
"""Words, questions and sentences for labelled rows."""

FLIPS = _read("flips")
"""Sentences and words for labelled rows in which one place decides the label."""

MENTIONS = _read("mentions")
"""Sentences that give an answer and mention another value."""
