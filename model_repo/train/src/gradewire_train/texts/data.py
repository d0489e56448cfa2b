"""The words that questions and answers are made of, from `lists.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


def word_list(name: str) -> tuple[str, ...]:
    """The words of a list."""
    return tuple(_lists()["words"][name])


def table(name: str) -> Mapping[str, Any]:
    """A table of the file: its keys with their words."""
    entries: Mapping[str, Any] = _lists()[name]
    return entries


@cache
def _lists() -> Mapping[str, Any]:
    text = resources.files("gradewire_train.texts").joinpath("lists.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
