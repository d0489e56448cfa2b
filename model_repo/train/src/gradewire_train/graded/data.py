"""The sentences and words that drawn rows are made of, from `material.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


def words(name: str) -> tuple[str, ...]:
    """A list of texts."""
    return _lists()[name]


def entries(name: str) -> tuple[Mapping[str, Any], ...]:
    """The tables of a list of tables."""
    return tuple(_material()[name])


@cache
def _lists() -> Mapping[str, tuple[str, ...]]:
    return {name: tuple(texts) for name, texts in _material()["lists"].items()}


@cache
def _material() -> Mapping[str, Any]:
    text = resources.files("gradewire_train.graded").joinpath("material.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
