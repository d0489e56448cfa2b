"""What a judge would see of an item, without asking one: for people who write prompts or wonder about a verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt, Role, Turn
from gradewire_server.domain.metric import NO_MODEL, ParameterError, Parameters
from gradewire_server.domain.needs import Need
from gradewire_server.domain.result import Failure, MetricResult, Status, Warning  # noqa: A004 - as domain
from gradewire_server.judges.chat_templates import TEMPLATES, Markup
from gradewire_server.metrics.judged.prompts import PromptLibrary
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.convert import read_item
from gradewire_server.requests.parameters import read_parameters
from gradewire_server.settings.limits import Limits

PLACEHOLDER: Final = "WHAT THE JUDGE WRITES STANDS HERE"
"""Takes the place of a text that only a judge could write, in the rounds after it."""
_MAX_ROUNDS: Final = 16


class PromptViewError(Exception):
    """The metric or its parameters are wrong, or the prompt does not fit; the message says which."""


@dataclass(frozen=True, slots=True)
class PromptRound:
    """One question to a judge.

    Attributes:
        prompt: What it sees.
        options: Labels of a choice; empty where it writes.
        max_tokens: Longest text that it may write; 0 for a choice.
    """

    prompt: JudgePrompt
    options: tuple[str, ...]
    max_tokens: int


@dataclass(frozen=True, slots=True)
class PromptView:
    """All that a judge is asked of an item.

    Attributes:
        title: NAME/VERSION of the prompt.
        digest: SHA-256 of its file.
        rounds: In their order; what the judge says is made up: the first label, PLACEHOLDER for a text.
        masked: Whether words of the prediction are not shown, "[...]" in their place.
        without_judge: What becomes of an item for which no judge is asked; "" where one is.
    """

    title: str
    digest: str
    rounds: tuple[PromptRound, ...]
    masked: bool
    without_judge: str


def prompt_viewer(spec: types_pb2.MetricSpec, prompts: PromptLibrary) -> Callable[[types_pb2.Item], PromptView]:
    """What runs a judge metric on items, with answers that are made up; raises PromptViewError for one it cannot read.

    Raises:
        PromptViewError: It is no metric of a judge, or a parameter is wrong.
    """
    name = spec.WhichOneof("metric") or ""
    metric = REGISTRY.get(name)
    if metric is None or not metric.info.needs_judge:
        judged = ", ".join(each for each in REGISTRY if REGISTRY[each].info.needs_judge)
        raise PromptViewError(f"{name or 'no metric'} asks no judge; those that do: {judged}")
    written: Any = getattr(spec, name)
    try:
        parameters: Parameters = read_parameters(written, metric, name, model=written.model, prompts=prompts)
    except ParameterError as error:
        raise PromptViewError(f"{name}: {error}") from error

    def view(message: types_pb2.Item) -> PromptView:
        item = read_item(message, Limits(), check_bytes=True)
        if isinstance(item, Failure):
            raise PromptViewError(item.message)
        rounds, result = _run(metric.score(item, parameters, NO_MODEL))
        without = "" if rounds else _told(result)
        masked = Warning.MASKED in result.warnings
        return PromptView(parameters.prompt_name, parameters.prompt_digest, rounds, masked, without)

    return view


def _run(program: Any) -> tuple[tuple[PromptRound, ...], MetricResult]:
    rounds: list[PromptRound] = []
    answers: tuple[Choice | Generated, ...] | None = None
    while len(rounds) < _MAX_ROUNDS:
        try:
            needs: tuple[Need, ...] = program.send(answers)
        except StopIteration as stop:
            result: MetricResult = stop.value
            return tuple(rounds), result
        rounds += [_round(need) for need in needs if isinstance(need, Choose | Generate)]
        answers = tuple(_made_up(need) for need in needs)
    raise PromptViewError(f"it asks its judge more than {_MAX_ROUNDS} times")


def _round(need: Choose | Generate) -> PromptRound:
    if isinstance(need, Choose):
        return PromptRound(need.prompt, need.options, 0)
    return PromptRound(need.prompt, (), need.max_tokens)


def _made_up(need: Need) -> Choice | Generated:
    if isinstance(need, Choose):
        return Choice((1.0, *(0.0 for _ in need.options[1:])), mass=1.0, prompt_tokens=0)
    if isinstance(need, Generate):
        return Generated(PLACEHOLDER, complete=True, prompt_tokens=0, generated_tokens=0)
    raise PromptViewError(f"it asks for more than a judge can say ({type(need).__name__})")


def _told(result: MetricResult) -> str:
    if result.status is Status.OK:
        return f"no judge is asked: a rule gives the score {result.score:g}"
    return f"no judge is asked: {result.status.name}, {result.message}"


def with_markup(prompt: JudgePrompt, template: str) -> tuple[str, str]:
    """A prompt as one text, with the markup of a chat template: fixed turns, and the item with the judge's turn begun.

    What is really sent, cut to the judge's limits, only its tokenizer can tell (`prompt_tokens`).

    Raises:
        PromptViewError: The template is not known.
    """
    if template not in TEMPLATES:
        raise PromptViewError(f"chat template {template!r} is not known; known are {', '.join(TEMPLATES)}")
    chat = TEMPLATES[template]

    def turn(each: Turn) -> str:
        return f"{_text(chat.before[each.role])}{each.text}{_text(chat.after)}"

    fixed = "".join([_text(chat.begin), *map(turn, prompt.fixed)])
    item = turn(Turn(Role.USER, f"{prompt.lead}{prompt.prediction}{prompt.tail}"))
    return fixed, f"{item}{_text(chat.before[Role.ASSISTANT])}{prompt.opening}"


def _text(parts: Sequence[Markup | str]) -> str:
    return "".join(part if isinstance(part, str) else part.token for part in parts)
