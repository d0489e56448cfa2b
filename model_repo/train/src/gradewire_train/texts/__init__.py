"""Make training examples from the user's files and from the built-in generator, without torch."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path

from gradewire_train import TrainingError
from gradewire_train.examples import TASKS, Example, Files, lines_digest
from gradewire_train.texts.files import user_examples
from gradewire_train.texts.generate import Generator
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.wordnet import WordNet, usual_directory

__all__ = ["examples_digest", "make_examples"]


def make_examples(
    counts: Mapping[str, int],
    files: Files,
    *,
    seed: int,
    wordnet: Path | None = None,
    only: Collection[str] = TASKS,
) -> list[Example]:
    """Return an encoder's training examples, task by task: examples from the user's files, then generated examples.

    The user's questions become examples for the tasks ``candidates``, ``synonyms`` and ``descriptions``. The user's
    sentence pairs become examples for the task ``nli``. The same files, counts and seed always give the same examples.
    `wordnet` is the directory with WordNet's files, by default `usual_directory`.

    Raises:
        TrainingError: A WordNet file or a user's file cannot be read or used.
    """
    if unknown := set(counts) - set(TASKS):
        raise TrainingError(f"unknown task {', '.join(sorted(unknown))}. Tasks are {', '.join(TASKS)}")

    @cache
    def lexicon() -> Lexicon:
        return Lexicon(WordNet(wordnet or usual_directory()))

    @cache
    def generator() -> Generator:
        return Generator(lexicon())

    brought = user_examples(files, counts, lexicon, seed=seed, only=only)
    examples: list[Example] = []
    for task, count in counts.items():
        own = brought.get(task, [])
        examples += own
        if task in only and count > len(own):
            examples += generator().examples(task, count - len(own), seed=seed)
    return examples


def examples_digest(examples: Iterable[Example]) -> str:
    """Return the SHA-256 of all examples in order, 64 hex characters, the same on every machine."""
    return lines_digest(json.dumps(asdict(example), sort_keys=True) for example in examples)
