"""Read training texts from the user's files of questions with answers, and of sentence pairs."""

import hashlib
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, Generic, TypeVar

from pydantic_core import from_json

from gradewire_train import TrainingError
from gradewire_train.examples import Example, Files, numbered_lines
from gradewire_train.texts.draw import Draw, normal, some
from gradewire_train.texts.lexicon import Lexicon

_BLANKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_MOST_CHARACTERS: Final = 2_000
"""Maximum number of characters in a text; encoders read only about the first 500."""
_MOST_NAMES: Final = 10

_log = logging.getLogger(__name__)
T = TypeVar("T")
Row = Mapping[str, Any]

_MOST_NEGATIVES: Final = 2
_NLI_LABELS: Final[Mapping[Any, str]] = {
    "entailment": "entailment", "neutral": "neutral", "contradiction": "contradiction",
    "e": "entailment", "n": "neutral", "c": "contradiction", "0": "entailment", "1": "neutral", "2": "contradiction",
    "-1": "", "-": "", "": "",
}  # fmt: skip

_MOST_WRONG_ANSWERS = 4
_TRIES = 20
_MOST_ANSWERS = 1_000


class FieldError(ValueError):
    """Raised for an error in a line; the message states the field and its expected content."""


def read(path: Path, parse: Callable[[Row], T | None], *, skip_bad_lines: bool) -> Iterator[tuple[int, T]]:
    """Yield each line's number, from 1, with the result of `parse`; skip blank lines and None results.

    A line is bad if `parse` raises `FieldError`. If `skip_bad_lines` is set, bad lines are skipped, and a warning at
    the end contains their count and the first error.

    Raises:
        TrainingError: The file is not readable, a line is bad and not skipped, or no line is usable.
    """
    skipped, first, good = 0, "", 0
    for number, line in numbered_lines(path):
        try:
            parsed = parse(_object(line))
        except FieldError as error:
            if not skip_bad_lines:
                raise TrainingError(
                    f"{path}, line {number}: {error}. Correct the line, or skip bad lines with --skip-bad-lines"
                ) from error
            skipped, first = skipped + 1, first or f"line {number}: {error}"
            continue
        good += 1
        if parsed is not None:
            yield number, parsed
    if skipped:
        _log.warning("%s: skipped %d bad lines; the first error: %s", path, skipped, first)
    if not good:
        raise TrainingError(f"{path} contains no usable line: {first or 'it is empty'}")


def text(row: Row, field: str) -> str:
    """Return a field's text in NFC, with a single blank in place of white space and control characters.

    Raises:
        FieldError: The field is missing, not a string, blank, or longer than 2 000 characters.
    """
    if field not in row:
        there = ", ".join(f"{name!r:.40}" for name in sorted(row)[:_MOST_NAMES])
        raise FieldError(f'field "{field}" is missing (fields: {there or "none"})')
    return clean(row[field], field)


def clean(value: object, field: str) -> str:
    """Return the value of `field`, normalised in the same way as in `text`."""
    if not isinstance(value, str):
        raise FieldError(f'field "{field}": must be a string, not {type(value).__name__}')
    if len(value) > _MOST_CHARACTERS:
        raise FieldError(f'field "{field}": {len(value)} characters, but the maximum is {_MOST_CHARACTERS}')
    cleaned = _BLANKS.sub(" ", unicodedata.normalize("NFC", value)).strip()
    if not cleaned:
        raise FieldError(f'field "{field}" is blank')
    return cleaned


def _object(line: bytes) -> Row:
    try:
        row = from_json(line)
    except ValueError as error:
        raise FieldError(f"not JSON in UTF-8 ({error})") from error
    if not isinstance(row, dict):
        raise FieldError(f"must be a JSON object, not {type(row).__name__}")
    return row


class Sample(Generic[T]):
    """A random sample of `size` keys (at least 1) with all of their entries.

    The sampled keys are those with the smallest seeded hashes, so the sample does not depend on the keys' order.
    """

    def __init__(self, size: int, *, seed: int) -> None:
        self._size = size
        self._salt = f"{seed}/".encode()
        self._groups: dict[bytes, list[T]] = {}
        self._limit: bytes | None = None

    def add(self, key: str, entry: T) -> None:
        """Add an entry for a key."""
        name = hashlib.blake2b(self._salt + key.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if self._limit is not None and name > self._limit:
            return
        self._groups.setdefault(name, []).append(entry)
        if len(self._groups) > 2 * self._size:
            self._cut()

    def groups(self) -> Iterator[list[T]]:
        """Return each sampled key's entries, in the random order of the hashes."""
        self._cut()
        return (self._groups[name] for name in sorted(self._groups))

    def _cut(self) -> None:
        names = sorted(self._groups)
        if len(names) > self._size:
            self._limit = names[self._size - 1]
            for name in names[self._size :]:
                del self._groups[name]


@dataclass(frozen=True, slots=True)
class Pair:
    """A premise, with sentences that follow from it or contradict it."""

    premise: str
    entailed: tuple[str, ...]
    contradicting: tuple[str, ...]


def read_nli(files: Files, most: int, *, seed: int) -> Iterator[Example]:
    """Yield at most `most` examples, one per premise, drawn at random from all files of sentence pairs.

    A line has `premise`, `hypothesis` and `label` (entailment, neutral, contradiction, or 0, 1, 2), or `anchor`,
    `positive` and `negative` or `negatives`. Lines with the label "-" or -1, on which annotators disagreed, are
    skipped. A premise without a contradiction gets another premise's hypothesis as its negative.

    Raises:
        TrainingError: A file or a line is invalid.
    """
    sample: Sample[Pair] = Sample(most, seed=seed)
    for path in files.nli_pairs:
        for _, pair in read(path, lambda row: _pair(row, files.columns), skip_bad_lines=files.skip_bad_lines):
            sample.add(pair.premise, pair)
    groups = list(sample.groups())
    rng = Random(f"{seed}/nli")  # noqa: S311 - no secret
    elsewhere = [(group[0].premise, each) for group in groups for pair in group for each in pair.entailed]
    for group in groups:
        premise = group[0].premise
        entailed = [each for pair in group for each in pair.entailed if each != premise]
        against = [each for pair in group for each in pair.contradicting]
        if not entailed:
            continue
        positive = rng.choice(entailed)
        negatives = rng.sample(against, min(_MOST_NEGATIVES, len(against)))
        other_premise, other = rng.choice(elsewhere)
        if not negatives and other_premise != premise and other not in entailed:
            negatives.append(other)
        negatives = [each for each in negatives if each not in {premise, *entailed}]
        yield Example("nli", "", premise, positive, tuple(negatives))


def _pair(row: Row, columns: Mapping[str, str]) -> Pair | None:
    def column(name: str) -> str:
        return columns.get(name, name)

    if column("anchor") in row:
        negatives = row.get(column("negatives"), [row[column("negative")]] if column("negative") in row else [])
        if not isinstance(negatives, list):
            raise FieldError(f'field "{column("negatives")}": must be a list of strings')
        against = tuple(clean(each, column("negatives")) for each in negatives)
        return Pair(text(row, column("anchor")), (text(row, column("positive")),), against)
    premise, hypothesis = text(row, column("premise")), text(row, column("hypothesis"))
    written = row.get(column("label"))
    label = _NLI_LABELS.get(str(written).strip().lower()) if isinstance(written, str | int) else None
    if label is None:
        raise FieldError(
            f'field "{column("label")}": must be entailment, neutral, contradiction, 0, 1 or 2, not {written!r:.40}'
        )
    entailed = (hypothesis,) if label == "entailment" else ()
    contradicting = (hypothesis,) if label == "contradiction" else ()
    return Pair(premise, entailed, contradicting) if entailed or contradicting else None


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its distinct answers, the most common first."""

    text: str
    answers: tuple[str, ...]


def read_questions(files: Files, most: int, *, seed: int) -> list[Question]:
    """Return at most `most` questions, drawn at random from all files of questions.

    Each line has `question`, and `answer` or `answers` (for each annotator, a string or an object with `answer`). Other
    fields are ignored. `files.columns` maps these names to the names in the files.

    Raises:
        TrainingError: A file or a line is invalid.
    """
    sample: Sample[Question] = Sample(most, seed=seed)
    columns, skip_bad_lines = files.columns, files.skip_bad_lines
    for path in files.questions:
        for number, question in read(path, lambda row: _question(row, columns), skip_bad_lines=skip_bad_lines):
            sample.add(f"{path.name}/{number}", question)
    return [question for group in sample.groups() for question in group]


def question_draws(questions: Sequence[Question], lexicon: Lexicon, *, seed: int) -> Iterator[Draw]:
    """Yield a draw for each question, with annotators' other answers, synonyms of the first answer, and wrong answers.

    Wrong answers are antonyms of the first answer, and answers to other questions, which usually begin with the same
    words. Answers to other questions are excluded if they are also answers to this question, or synonyms of the first
    answer in any sense.

    Source: Ji, Si, Lin et al. 2024, section 4.1.
    """
    rng = Random(f"{seed}/questions")  # noqa: S311 - no secret
    alike: dict[str, list[str]] = {}
    for question in questions:
        alike.setdefault(_opening(question.text), []).append(question.answers[0])
    for question in questions:
        answer, *others = question.answers
        senses = [lexicon.synset(key) for key in lexicon.keys_of(answer)[:1]]
        same = [word.text for synset in senses for word in synset.words if word.text.lower() != answer.lower()]
        against = [antonym for synset in senses for antonym in lexicon.antonyms(synset)]
        own = {normal(each) for each in (*question.answers, *same)} | {normal(mate) for mate in lexicon.mates(answer)}
        pool = alike[_opening(question.text)]
        for _ in range(_TRIES):
            other = rng.choice(pool if rng.random() < 0.7 else rng.choice(questions).answers)
            if normal(other) not in own and other not in against:
                against.append(other)
            if len(against) >= _MOST_WRONG_ANSWERS:
                break
        yield Draw(question.text, "", answer, tuple(same), tuple(some(rng, others, 3)), tuple(against))


def _question(row: Row, columns: Mapping[str, str]) -> Question:
    name = columns.get("answers", "answers")
    asked = text(row, columns.get("question", "question"))
    if name not in row:
        return Question(asked, (text(row, columns.get("answer", "answer")),))
    given = row[name]
    if not isinstance(given, list) or not given:
        raise FieldError(f'field "{name}": must be a list of strings')
    if len(given) > _MOST_ANSWERS:
        raise FieldError(f'field "{name}": {len(given)} answers, but the maximum is {_MOST_ANSWERS}')
    answers = [clean(each.get("answer") if isinstance(each, dict) else each, name) for each in given]
    forms: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for answer in answers:
        forms.setdefault(normal(answer), answer)
        counts[normal(answer)] += 1
    return Question(asked, tuple(forms[form] for form, _ in counts.most_common()))


def _opening(question: str) -> str:
    """Return a question's first two words: "what color", "how many"."""
    return " ".join(question.lower().split()[:2])
