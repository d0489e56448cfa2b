"""What encoders are trained on: examples from the user's files and from the built-in generator; no torch."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from gradewire_train.errors import TrainingError
from gradewire_train.examples import TASKS, Example
from gradewire_train.texts.files import Files, user_examples
from gradewire_train.texts.generate import Generator
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.wordnet import WordNet, usual_directory

__all__ = ["examples_digest", "make_examples"]


def make_examples(  # noqa: PLR0913 - files of two kinds, all by name
    counts: Mapping[str, int],
    *,
    seed: int,
    wordnet: Path | None = None,
    questions: Sequence[Path] = (),
    nli: Sequence[Path] = (),
    columns: Mapping[str, str] | None = None,
    skip_bad_lines: bool = False,
    only: Collection[str] = TASKS,
) -> list[Example]:
    """The examples that an encoder is trained on, task after task: the user's first, then generated ones.

    Args:
        counts: Number of examples by task (`gradewire_train.examples.TASKS`).
        seed: The same files, counts and seed give the same examples.
        wordnet: Directory of WordNet's files (data.*, cntlist.rev); None: `wordnet.usual_directory`.
        questions: JSON lines of questions with answers, for candidates, synonyms and descriptions; see
            `readers.questions`.
        nli: JSON lines of sentence pairs, for nli; see `readers.nli`.
        columns: The files' own names of fields, by ours.
        skip_bad_lines: Leaves bad lines out, with a warning, where they are an error otherwise.
        only: Tasks to make, the same examples as if all were made.

    Raises:
        TrainingError: WordNet's files or the user's cannot be read or used; the message says where and what to do.
    """
    if unknown := set(counts) - set(TASKS):
        raise TrainingError(f"there is no task {', '.join(sorted(unknown))}; tasks: {', '.join(TASKS)}")

    @cache
    def lexicon() -> Lexicon:
        return Lexicon(WordNet(wordnet or usual_directory()))

    @cache
    def generator() -> Generator:
        return Generator(lexicon())

    files = Files(questions, nli, columns or {}, skip_bad_lines)
    brought = user_examples(files, counts, lexicon, seed=seed, only=only)
    examples: list[Example] = []
    for task, count in counts.items():
        own = brought.get(task, [])
        examples += own
        # Where the user's files suffice, no WordNet is needed.
        if task in only and count > len(own):
            examples += generator().examples(task, count - len(own), seed=seed)
    return examples


def examples_digest(examples: Iterable[Example]) -> str:
    """SHA-256 over all examples in their order, in hexadecimal; equal texts give equal digests anywhere."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps(asdict(example), ensure_ascii=True, sort_keys=True).encode("ascii") + b"\n")
    return digest.hexdigest()
