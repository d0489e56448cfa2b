"""Questions with the answers of one or many annotators: candidate answers, descriptions and synonyms."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from gradewire_train.texts.draw import Draw, normal, some
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.readers.jsonl import FieldError, Row, clean, read, text
from gradewire_train.texts.readers.sample import Sample

_WRONG = 4
_TRIES = 20
_MOST_ANSWERS = 1_000


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answers, the most common first, each form once."""

    text: str
    answers: tuple[str, ...]


def read_questions(
    paths: Iterable[Path], most: int, *, seed: int, columns: Mapping[str, str], skip_bad_lines: bool
) -> list[Question]:
    """At most `most` questions, drawn by seed from all files.

    Each line has `question` and `answers` (texts, repeated as annotators gave them, or objects with `answer`) or
    `answer`; other fields are ignored. `columns` says which of the file's fields stand for these.

    Raises:
        TrainingError: A file or a line is not as it should be.
    """
    sample: Sample[Question] = Sample(most, seed=seed)
    for path in paths:
        for number, question in read(path, lambda row: _question(row, columns), skip_bad_lines=skip_bad_lines):
            sample.add(f"{path.name}/{number}", question)
    return [question for group in sample.groups() for question in group]


def question_draws(questions: Sequence[Question], lexicon: Lexicon, *, seed: int) -> Iterator[Draw]:
    """A draw for each question: WordNet's synonyms of its answer, annotators' other answers, and others' answers.

    Wrong answers are those of questions that begin alike, where there are any, and antonyms. An answer that is among
    the question's own, or shares a sense with its first, is none.

    Source: Ji, Si, Lin et al. 2024, section 4.1.
    """
    rng = Random(f"{seed}/questions")  # noqa: S311 - texts, not secrets
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
            if len(against) >= _WRONG:
                break
        yield Draw(question.text, "", answer, tuple(same), tuple(some(rng, others, 3)), tuple(against))


def _question(row: Row, columns: Mapping[str, str]) -> Question:
    name = columns.get("answers", "answers")
    asked = text(row, columns.get("question", "question"))
    if name not in row:
        return Question(asked, (text(row, columns.get("answer", "answer")),))
    given = row[name]
    if not isinstance(given, list) or not given:
        raise FieldError(f'field "{name}": a list of texts is expected')
    if len(given) > _MOST_ANSWERS:
        raise FieldError(f'field "{name}": {len(given)} answers, at most {_MOST_ANSWERS} are read')
    answers = [clean(each.get("answer") if isinstance(each, dict) else each, name) for each in given]
    forms: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for answer in answers:
        forms.setdefault(normal(answer), answer)
        counts[normal(answer)] += 1
    return Question(asked, tuple(forms[form] for form, _ in counts.most_common()))


def _opening(question: str) -> str:
    """The first two words: "what color", "how many"."""
    return " ".join(question.lower().split()[:2])
