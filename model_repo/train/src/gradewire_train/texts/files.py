"""Make examples from the user's files, and read and write stored examples."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random

from gradewire_train import TrainingError
from gradewire_train.examples import TASKS, Example, Files, json_lines
from gradewire_train.texts.draw import Draw, candidate, checked, contradiction, contrasted, described, normal, sound
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.questions import question_draws, read_questions
from gradewire_train.texts.readers import read_nli

_TRIES = 20
_TASKS = ("candidates", "synonyms", "descriptions")


def read_examples(path: Path) -> list[Example]:
    """Read examples from JSON lines.

    Raises:
        TrainingError: The file is unreadable or empty, or one of its lines is invalid or fails `contradiction`.
    """
    found = []
    for where, example in json_lines(path, Example):
        if example.task not in TASKS:
            raise TrainingError(f"{where}: task must be one of {', '.join(TASKS)}")
        if wrong := contradiction(example):
            raise TrainingError(f"{where}: {wrong}")
        found.append(example)
    if not found:
        raise TrainingError(f"{path} contains no examples")
    return found


def write_examples(examples: Iterable[Example], path: Path) -> None:
    """Write examples in the format of `read_examples`."""
    with path.open("w", encoding="utf-8") as file:
        for example in examples:
            file.write(json.dumps(asdict(example), ensure_ascii=False) + "\n")


def user_examples(
    files: Files, counts: Mapping[str, int], lexicon: Callable[[], Lexicon], *, seed: int, only: Collection[str]
) -> Mapping[str, list[Example]]:
    """Return examples from the user's files for the tasks in `only`. `counts` limits the number for each task.

    Tasks without material are missing from the result. `lexicon`, for synonyms of answers, is called only if there are
    questions.

    Raises:
        TrainingError: A file or a line is invalid.
    """
    found: dict[str, list[Example]] = {}
    most = max((counts.get(task, 0) for task in _TASKS), default=0)
    asking = [task for task in _TASKS if task in only]
    if files.questions and most and asking:
        questions = read_questions(files, 3 * most, seed=seed)
        draws = [draw for each in question_draws(questions, lexicon(), seed=seed) if (draw := checked(each))]
        for task in asking:
            rng = Random(f"{seed}/user/{task}")  # noqa: S311 - no secret
            made = [example for example in _made(rng, task, draws) if sound(example)]
            found[task] = made[: counts.get(task, 0)]
    if files.nli_pairs and "nli" in only and (asked := counts.get("nli", 0)):
        pairs = read_nli(files, 2 * asked, seed=seed)
        found["nli"] = [example for example in pairs if example.negatives and not contradiction(example)][:asked]
    return found


def _made(rng: Random, task: str, draws: Sequence[Draw]) -> Iterator[Example]:
    for draw in draws:
        if task == "descriptions":
            yield described(rng, draw)
        elif task == "candidates" and draw.looser:
            right = {normal(each) for each in (draw.answer, *draw.same, *draw.looser)}
            drawn = (rng.choice(draws).answer for _ in range(_TRIES))
            yield candidate(rng, draw, next((each for each in drawn if normal(each) not in right), draw.wrong[0]))
        elif task == "synonyms" and draw.same:
            # Other annotators' answers are for the task "candidates".
            yield contrasted(rng, task, replace(draw, looser=()))
