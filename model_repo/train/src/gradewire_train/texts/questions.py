"""Read questions with annotators' answers: JSON lines, JSON arrays, and the official files of VQA."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from pydantic_core import from_json

from gradewire_stats.calibration.labelled_rows import half_of
from gradewire_train import TrainingError
from gradewire_train.examples import Files
from gradewire_train.texts.draw import Draw, normal, some
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.readers import FieldError, Row, Sample, clean, parsed, read, text

_MOST_WRONG_ANSWERS: Final = 4
_TRIES: Final = 20
_MOST_ANSWERS: Final = 1_000
_YES_OR_NO: Final = frozenset({"yes", "no"})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its distinct answers, the most common first."""

    text: str
    answers: tuple[str, ...]


def read_questions(files: Files, most: int, *, seed: int) -> list[Question]:
    """Return at most `most` distinct questions, drawn at random from all files of questions.

    Each line has `question`, and `answers`, `answer` or `references`. `answers` has, for each annotator, a string or an
    object with `answer`. Other fields are ignored. `files.columns` maps these names to the names in the files. A file
    with the ending .json may be an array of such objects, or one of VQA's official files: one has the `questions`, the
    other the `annotations`; entries with the same `question_id` belong together. `files.half` keeps one half of the
    questions.

    Raises:
        TrainingError: A file or a line is invalid, a question's text or answers are missing, or no question is left.
    """
    sample: Sample[Question] = Sample(most, seed=seed)
    seen: set[Question] = set()
    official = _Official()
    for path in files.questions:
        if official.take(path):
            continue
        for number, question in _questions(path, files):
            _add(sample, seen, files, f"{path.name}/{number}", question)
    for key, question in official.questions(files):
        _add(sample, seen, files, key, question)
    if files.questions and not seen:
        raise TrainingError(f"questions: the files have no question in half {files.half}")
    return [question for group in sample.groups() for question in group]


def _add(sample: Sample[Question], seen: set[Question], files: Files, key: str, question: Question) -> None:
    # A file of labelled answers has a question once for each system that answered.
    if question not in seen and files.half in {None, half_of(question.text)}:
        seen.add(question)
        sample.add(key, question)


def _questions(path: Path, files: Files) -> Iterator[tuple[int, Question]]:
    def parse(row: Row) -> Question:
        return _question(row, files.columns)

    whole = _whole(path)
    if not isinstance(whole, list):
        return read(path, parse, skip_bad_lines=files.skip_bad_lines)
    return parsed(path, enumerate(whole, 1), _of_object(parse), skip_bad_lines=files.skip_bad_lines)


def _of_object(parse: Callable[[Row], Question]) -> Callable[[Any], Question]:
    def checked(entry: Any) -> Question:
        if not isinstance(entry, dict):
            raise FieldError(f"must be a JSON object, not {type(entry).__name__}")
        return parse(entry)

    return checked


def _whole(path: Path) -> Any:
    """Return the content of a file that is one JSON value, or None for JSON lines."""
    if path.suffix.lower() != ".json":
        return None
    try:
        return from_json(path.read_bytes())
    except OSError as error:
        raise TrainingError(f"cannot read {path}: {error.strerror}. Use a file of JSON") from error
    except ValueError:
        return None


@dataclass(slots=True)
class _Official:
    """The entries of VQA's official files, and of sets in their form, such as OK-VQA."""

    asked: list[tuple[Path, list[Any]]] = field(default_factory=list)
    answered: list[tuple[Path, list[Any]]] = field(default_factory=list)

    def take(self, path: Path) -> bool:
        """Keep the entries of an official file; return False for another file."""
        whole = _whole(path)
        if not isinstance(whole, dict):
            return False
        for name, kept in (("questions", self.asked), ("annotations", self.answered)):
            if isinstance(whole.get(name), list):
                kept.append((path, whole[name]))
                return True
        return False

    def questions(self, files: Files) -> Iterator[tuple[str, Question]]:
        """Yield each annotated question with its key for the sample."""
        if bool(self.asked) != bool(self.answered):
            alone, absent = (self.asked, "annotations") if self.asked else (self.answered, "questions")
            raise TrainingError(
                f"{alone[0][0]} is one of two official files. Give the other one, too, which has the {absent}: "
                "--questions QUESTIONS.json --questions ANNOTATIONS.json"
            )
        texts: dict[Any, Any] = {}
        for path, entries in self.asked:
            texts.update(
                found for _, found in parsed(path, enumerate(entries, 1), _asked, skip_bad_lines=files.skip_bad_lines)
            )
        used = 0
        for path, entries in self.answered:

            def joined(row: Any) -> tuple[str, Question]:
                key = _id(row)
                if key not in texts:
                    raise FieldError(f"no file of questions has the question_id {key!r:.40}")
                # The official names hold in official files, whatever the other files call their fields.
                return str(key), _question({**row, "question": texts[key]}, {})

            for _, found in parsed(path, enumerate(entries, 1), joined, skip_bad_lines=files.skip_bad_lines):
                used += 1
                yield found
        if used < len(texts):
            _log.warning("%d official questions have no annotations and are not used", len(texts) - used)


def _id(row: Any) -> str | int:
    key = row.get("question_id") if isinstance(row, dict) else None
    if not isinstance(key, str | int):
        raise FieldError('field "question_id": must be a number or a string')
    return key


def _asked(row: Any) -> tuple[str | int, str]:
    return _id(row), text(row, "question")


def question_draws(questions: Sequence[Question], lexicon: Lexicon, *, seed: int) -> Iterator[Draw]:
    """Yield a draw for each question, with annotators' other answers, synonyms of the first answer, and wrong answers.

    Wrong answers are antonyms of the first answer, and answers to other questions, which usually begin with the same
    words. Answers to other questions are excluded if they are also answers to this question, or synonyms of the first
    answer in any sense. A minority's "no" is no other right answer for "yes", and the reverse.

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
        looser = some(rng, [other for other in others if {normal(answer), normal(other)} != _YES_OR_NO], 3)
        yield Draw(question.text, "", answer, tuple(same), tuple(looser), tuple(against))


def _question(row: Row, columns: Mapping[str, str]) -> Question:
    name = columns.get("answers", "answers")
    asked = text(row, columns.get("question", "question"))
    if name not in row and columns.get("answer", "answer") not in row and "references" in row:
        name = "references"
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
