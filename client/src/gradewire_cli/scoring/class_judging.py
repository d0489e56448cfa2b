"""Ask a judge for the classes of wrong verdicts that no rule can classify.

A question is a prompt of `lave` whose labels are statements on the answer, one for each class. So it works with every
judge and its cache, and the most probable label is the class. With statements the default judge named 19 of 28 classes
as the authors did, with the classes' names 10 (benchmarks/agreement/error_classes.py).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import click

from gradewire.items import ItemProblem, encode_item
from gradewire.metrics import Lave
from gradewire.results import Status
from gradewire_cli.lazy_commands import server_module
from gradewire_cli.options.help import option
from gradewire_cli.problems import InputError, tell
from gradewire_cli.results.error_classes import CLASSES
from gradewire_cli.results.progress import progress
from gradewire_cli.rows.formats import printable
from gradewire_cli.scoring.judge_work import JudgeWork
from gradewire_cli.scoring.plan import judge_name, judge_notes, runs_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gradewire import AsyncClient, ModelList
    from gradewire.results import MetricScore
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.results.error_classes import ErrorClass, OpenQuestion, WrongVerdicts
    from gradewire_proto.parts import JudgeParts

_BATCH = 64
_REASONS = 3
_MAX_ITEM_BYTES = 16 * 1024 * 1024
_PROMPT = """\
format = 1
name = "error_class"
version = 1
metric = "lave"
system = {system}
item = {item}
[references]
separator = "; "
[variants.rating]
demonstrations = false
correct_from = 0.5
[[variants.rating.steps]]
name = "rating"
opening = "{opening}"
labels = {{ {labels} }}
"""
_OPENING = "The answer"
_ITEM = "Question: {question}\nReferences: {references}\nAnswer: {prediction}"

error_classes_option = option("--error-classes", type=click.Choice(("rule", "judge")), default="rule")


def prompt_of(classes: Sequence[ErrorClass], *, called_right: bool) -> str:
    """Return a prompt file whose labels are the classes' phrases.

    Raises:
        ValueError: There are fewer than two classes, so there is nothing to choose.
    """
    if len(classes) < 2:
        raise ValueError("name two classes or more to choose from")
    listed = "\n".join(f"- {_OPENING} {each.phrase}: {each.text}" for each in classes)
    said = f"Annotators say that the answer is {'wrong' if called_right else 'right'}."
    system = f"{said} Compare it with the references. Choose the statement that fits best:\n{listed}"
    # The values serve only to tell labels apart, because the class is the most probable label.
    step = 2 / (len(classes) - 1)
    labels = ", ".join(f"{json.dumps(each.phrase)} = {1 + place * step:.4f}" for place, each in enumerate(classes))
    return _PROMPT.format(system=json.dumps(system), item=json.dumps(_ITEM), opening=_OPENING, labels=labels)


async def check_judge(client: AsyncClient, judge: str | None) -> None:
    """Ask the server whether the judge can name classes, so that a missing judge is refused before rows are scored.

    Raises:
        GradewireError: The server is down, or has no such judge.
    """
    classes = [each for each in CLASSES if each.kind == "class" and each.phrase and "right" in each.calls]
    await client.score([], [_metric(judge, prompt_of(classes, called_right=True))])


def _metric(judge: str | None, prompt: str) -> Lave:
    return Lave(model=judge or None, prompt=prompt, binary="judge", references="all")


async def judge_classes(
    client: AsyncClient, wrong: WrongVerdicts, judge: str | None, connection: ConnectionOptions, *, quiet: bool
) -> None:
    """Have the judge name the class of each wrong verdict that rules leave open, and the failure mode of each miss.

    The number of calls and tokens is printed before the first call. A verdict for which the judge gives no class stays
    without one, and the number of these is printed with the reasons.

    Args:
        client: A client of a server with the judge.
        wrong: The wrong verdicts. Their classes are added.
        judge: The judge's name; None or "" means the server's default judge.
        connection: The connection of `client`, whose options tell where the judge runs.
        quiet: Show neither cost nor progress.

    Raises:
        GradewireError: The server is down, or refuses the questions.
    """
    asked: dict[Lave, list[OpenQuestion]] = defaultdict(list)
    for question in wrong.open_questions():
        prompt = prompt_of(question.classes, called_right=question.called_right)
        asked[_metric(judge, prompt)].append(question)
    if not asked:
        return
    if not quiet:
        tell(_cost_lines(await client.models(), asked, wrong, connection))
    total, done, failures = sum(map(len, asked.values())), 0, Counter[str]()
    with progress("classes", total, quiet=quiet) as shown:
        for metric, questions in asked.items():
            for begin in range(0, len(questions), _BATCH):
                batch = questions[begin : begin + _BATCH]
                found = await _answers(client, metric, [wrong.item_of(question) for question in batch], connection)
                for question, score in zip(batch, found, strict=True):
                    names = {each.phrase: each.name for each in question.classes}
                    wrong.name(question, name := names.get(_most_probable(score), ""))
                    if not name:
                        failures[f"{score.status} {score.message}".strip()] += 1
                done += len(batch)
                shown(done, "")
    if failures:
        reasons = ", ".join(f"{times} {reason}" for reason, times in failures.most_common(_REASONS))
        tell([printable(f"the judge named no class for {failures.total()} of {total} questions: {reasons}")])


async def _answers(
    client: AsyncClient, metric: Lave, items: Sequence[Mapping[str, Any]], connection: ConnectionOptions
) -> list[MetricScore]:
    """Return the judge's result for each item. Equal items are sent once."""
    keys = [json.dumps({**item, "id": ""}, sort_keys=True, default=repr) for item in items]
    first = dict(zip(keys, items, strict=True))
    report = await client.score(list(first.values()), [metric], deadline_s=connection.deadline_s)
    (label,) = report.labels
    found = dict(zip(first, (each.scores[label] for each in report.items), strict=True))
    return [found[key] for key in keys]


def _most_probable(score: MetricScore) -> str:
    """Return the most probable label, or "" if the judge gave none."""
    parts: JudgeParts | None = score.parts  # type: ignore[assignment] # a judge has these parts
    if score.status != Status.OK or parts is None or not parts.labels:
        return ""
    return max(zip(parts.probabilities, parts.labels, strict=True))[1]


def _cost_lines(
    listed: ModelList,
    asked: Mapping[Lave, Sequence[OpenQuestion]],
    wrong: WrongVerdicts,
    connection: ConnectionOptions,
) -> Iterable[str]:
    """Yield the judge's notes, and a line on the calls and their tokens."""
    metric = next(iter(asked))
    name = judge_name(metric)
    yield from judge_notes(listed, {name})
    total = sum(map(len, asked.values()))
    try:
        prompts = server_module("gradewire_cli.server_prompts")
    except InputError as error:
        yield f"asking the judge for the classes of errors: at most {total} calls. Their tokens are unknown, as {error}"
        return
    elsewhere = runs_elsewhere(listed, metric)
    settings = {} if connection.judge_server is None else connection.judge_server.settings()
    meter = prompts.judge_meter(name, elsewhere=elsewhere, settings=settings)
    bounded = not elsewhere or connection.server is None
    known: set[int] = set()
    calls = read = 0
    for each, questions in asked.items():
        work = JudgeWork(name, prompts.prompt_viewer(each.to_spec()), meter, elsewhere, bounded, noun="questions")
        for place, question in enumerate(questions):
            item = encode_item(place, wrong.item_of(question), max_bytes=_MAX_ITEM_BYTES)
            if not isinstance(item, ItemProblem):
                work.add(item, known)
        calls, read = calls + work.calls, read + work.read
    counted = "" if meter.exact else "about "
    of = f"{calls} calls for {total} questions"
    yield f"asking the judge for the classes of errors: {of}, {counted}{read} tokens read"
