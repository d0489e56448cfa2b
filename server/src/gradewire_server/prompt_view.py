"""Show the prompts that a judge would get for an item, with tokens and cost, for `gradewire prompt show`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from gradewire_models.errors import ModelError
from gradewire_models.judges.repository import load_judge
from gradewire_proto.v1 import judging_pb2, types_pb2
from gradewire_server.domain.items import Failure, MetricResult, ResultWarning, Status
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt, Role, Turn
from gradewire_server.domain.metric import NO_MODEL, ParameterError, Parameters
from gradewire_server.domain.needs import Need
from gradewire_server.judges.local.chat import ChatTokenizer, PromptError, open_chat_tokenizer
from gradewire_server.judges.prompt_texts import TEMPLATES, Markup, fitted
from gradewire_server.judges.remote.decision_forms import decision_question, without_demonstrations
from gradewire_server.judges.remote.openai_dialect import ServerKind, dialect_of, most_written, request_body
from gradewire_server.judges.remote.server import Question
from gradewire_server.metrics.judged.metric import PromptParameters
from gradewire_server.metrics.prompts.library import PromptLibrary
from gradewire_server.metrics.prompts.reading import described
from gradewire_server.metrics.registry import COMPARISONS, REGISTRY
from gradewire_server.requests.convert import read_row
from gradewire_server.requests.parameters import read_parameters
from gradewire_server.settings.judge import EmbeddedJudgeConfig, RemoteJudgeConfig
from gradewire_server.settings.limits import Limits

PLACEHOLDER: Final = "THE JUDGE'S TEXT GOES HERE"
"""Placeholder for the judge's text in later prompts."""
_MAX_ROUNDS: Final = 16


ViewedRow: TypeAlias = types_pb2.Item | judging_pb2.Pair


class PromptViewError(Exception):
    """Raised when the metric or a parameter is wrong, or when the prompt does not fit. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class PromptView:
    """The questions that a judge would get for an item.

    Attributes:
        title: The prompt's NAME/VERSION.
        digest: The SHA-256 of the prompt file.
        rounds: The questions in order. Later questions assume made-up answers: the first label, or PLACEHOLDER if the
            judge writes text.
        reading: For a judge's one text, a phrase that says where each label is read; otherwise "".
        masked: True if "[...]" hides words of the prediction.
        without_judge: The outcome if a rule decides without a judge; otherwise "".
    """

    title: str
    digest: str
    rounds: tuple[Question, ...]
    masked: bool
    without_judge: str
    reading: str = ""


def prompt_viewer(spec: types_pb2.MetricSpec, prompts: PromptLibrary) -> Callable[[ViewedRow], PromptView]:
    """Return a function that runs a judge metric on an item or pair, with made-up answers from the judge.

    Raises:
        PromptViewError: The metric needs no judge, or a parameter is wrong.
    """
    name = spec.WhichOneof("metric") or ""
    known = {**REGISTRY, **COMPARISONS}
    metric = known.get(name)
    if metric is None or not metric.info.needs_judge:
        judged = ", ".join(each for each in known if known[each].info.needs_judge)
        raise PromptViewError(f"{name or 'an unnamed metric'} needs no judge; use one of {judged}")
    written: Any = getattr(spec, name)
    try:
        parameters: Parameters = read_parameters(written, metric, name, model=written.model, prompts=prompts)
    except ParameterError as error:
        raise PromptViewError(f"{name}: {error}") from error

    def view(message: ViewedRow) -> PromptView:
        if isinstance(message, judging_pb2.Pair) != (name in COMPARISONS):
            raise PromptViewError(f"{name} needs {'a pair of answers' if name in COMPARISONS else 'one answer'}")
        item = read_row(message, Limits(), check_bytes=True)
        if isinstance(item, Failure):
            raise PromptViewError(item.message)
        rounds, result = _run(metric.score(item, parameters, NO_MODEL))
        without = "" if rounds else _rule_message(result)
        masked = ResultWarning.MASKED in result.warnings
        digest, reading = parameters.prompt_digest, _reading(parameters)
        return PromptView(parameters.prompt_name, digest, rounds, masked, without, reading)

    return view


def _reading(parameters: Parameters) -> str:
    if not isinstance(parameters, PromptParameters) or not (variant := parameters.judged_variant).max_tokens:
        return ""
    return ", ".join(f"{step.name}: {described(step.rule)}" for step in variant.steps)


def _run(program: Any) -> tuple[tuple[Question, ...], MetricResult]:
    rounds: list[Question] = []
    answers: tuple[Choice | Generated, ...] | None = None
    while len(rounds) < _MAX_ROUNDS:
        try:
            needs: tuple[Need, ...] = program.send(answers)
        except StopIteration as stop:
            result: MetricResult = stop.value
            return tuple(rounds), result
        asked = [_question_and_answer(need) for need in needs]
        rounds += [question for question, _ in asked]
        answers = tuple(answer for _, answer in asked)
    raise PromptViewError(f"the metric asks its judge more than {_MAX_ROUNDS} times")


def _question_and_answer(need: Need) -> tuple[Question, Choice | Generated]:
    if isinstance(need, Choose):
        choice = Choice((1.0, *(0.0 for _ in need.options[1:])), mass=1.0, prompt_tokens=0)
        return Question(need.prompt, need.options), choice
    if isinstance(need, Generate):
        written = Generated(need.example or PLACEHOLDER, complete=True, prompt_tokens=0, generated_tokens=0)
        return Question(need.prompt, max_tokens=need.max_tokens, stop=need.stop), written
    raise PromptViewError(f"the metric needs {type(need).__name__}, which a judge cannot compute")


def _rule_message(result: MetricResult) -> str:
    if result.status is Status.OK:
        return f"a rule sets the score to {result.score:g} without a judge"
    return f"no score, and the judge is not asked: {result.status.name}, {result.message}"


def with_markup(prompt: JudgePrompt, template: str) -> tuple[str, str]:
    """Return a prompt in a chat template's markup, as two strings: the fixed turns, and the rest of the prompt.

    The rest is the item's turn and the start of the judge's turn. This function does not shorten the text.

    Raises:
        PromptViewError: The template is unknown.
    """
    if template not in TEMPLATES:
        raise PromptViewError(f"unknown chat template {template!r}; use one of {', '.join(TEMPLATES)}")
    chat = TEMPLATES[template]

    def turn(each: Turn) -> str:
        return f"{_text(chat.before[each.role])}{each.text}{_text(chat.after)}"

    fixed = "".join([_text(chat.begin), *map(turn, prompt.fixed)])
    item = turn(Turn(Role.USER, f"{prompt.lead}{prompt.prediction}{prompt.tail}"))
    return fixed, f"{item}{_text(chat.before[Role.ASSISTANT])}{prompt.opening}"


def _text(parts: Sequence[Markup | str]) -> str:
    return "".join(part if isinstance(part, str) else part.token for part in parts)


_TEMPLATE_OF_UNKNOWN = "chatml"


@dataclass(frozen=True, slots=True)
class RoundTokens:
    """A question's token IDs.

    Attributes:
        fixed: The instructions and demonstrations, whose state a judge computes only once.
        item: The item's turn and the start of the judge's turn.
        labels: For each option, the token whose probability is used.
        truncated: True if the prediction is shortened.
    """

    fixed: tuple[int, ...]
    item: tuple[int, ...]
    labels: tuple[int, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class JudgeTokenizer:
    """A judge's tokenizer. If `chat` is None, it can show prompts but not count tokens.

    Attributes:
        note: A note for users: the judge whose tokens are counted, or the reason why tokens are not counted.
        template: The chat template for prompts if `chat` is None.
    """

    note: str
    chat: ChatTokenizer | None = None
    template: str = _TEMPLATE_OF_UNKNOWN

    def tokens(self, asked: Question) -> RoundTokens | None:
        """Return a question's tokens, or None without a tokenizer.

        Raises:
            PromptViewError: The prompt does not fit even without its prediction, or labels share their first token.
        """
        if self.chat is None:
            return None
        prompt = asked.prompt
        labels: tuple[int, ...] = ()
        try:
            if asked.options:
                found = self.chat.labels(prompt.opening, asked.options)
                opening, labels = found.shared, found.tokens
            else:
                opening = self.chat.opening(prompt.opening)
            tokens = self.chat.prompt(prompt, opening, answer_tokens=asked.max_tokens)
        except PromptError as error:
            raise PromptViewError(str(error)) from error
        return RoundTokens(tokens.fixed, tokens.item, labels, tokens.truncated)

    def text(self, asked: Question, tokens: RoundTokens | None) -> tuple[str, str]:
        """Return a question's text with markup, as two strings: the fixed turns, and the rest of the prompt."""
        if tokens is None or self.chat is None:
            return with_markup(asked.prompt, self.template)
        return self.chat.shown(tokens.fixed), self.chat.shown(tokens.item)


def open_tokenizer(config: EmbeddedJudgeConfig, name: str) -> JudgeTokenizer:
    """Return the tokenizer for a judge in the repository, with this judge's limits.

    Raises:
        PromptViewError: The judge's files are damaged.
    """
    try:
        judge = load_judge(config.repository, name)
    except ModelError as error:
        return JudgeTokenizer(f"tokens are not counted: {error}")
    try:
        chat = open_chat_tokenizer(judge, config)
    except (OSError, ValueError) as error:
        raise PromptViewError(f"the tokenizer of judge {name} cannot be read: {error}") from error
    return JudgeTokenizer(f"tokens of {name}", chat, judge.chat_template)


_BYTES_PER_TOKEN: Final = 4
_TOKENS_PER_TURN: Final = 4
_ESTIMATED: Final = f"prompt tokens are estimated (one per {_BYTES_PER_TOKEN} bytes); only the judge counts exactly"


@dataclass(frozen=True, slots=True)
class RoundCost:
    """The number of tokens in a prompt, and the maximum number that the judge may write, including its reasoning."""

    read: int
    most_written: int


@dataclass(frozen=True, slots=True)
class JudgeMeter:
    """A calculator for the token cost of questions to one judge, on this machine or on a remote server.

    `decides` is True if the server runs a decision model, which writes nothing.
    """

    tokenizer: JudgeTokenizer
    remote: RemoteJudgeConfig | None = None
    decides: bool = False

    @property
    def exact(self) -> bool:
        """True if prompt tokens are counted instead of estimated."""
        return self.remote is None and self.tokenizer.chat is not None

    @property
    def note(self) -> str:
        """A note for users about how tokens are counted."""
        return self.tokenizer.note if self.exact else _ESTIMATED

    def cost(self, asked: Question) -> RoundCost | None:
        """Return a question's token counts, or None if the question is not sent because the judge cannot answer it."""
        if self.exact:
            try:
                tokens = self.tokenizer.tokens(asked)
            except PromptViewError:
                return None
            return RoundCost(len(tokens.fixed) + len(tokens.item), asked.max_tokens) if tokens else None
        if self.remote is not None:
            return _remote_cost(asked, self.remote, decides=self.decides)
        prompt = asked.prompt
        item = f"{prompt.lead}{prompt.prediction}{prompt.tail}"
        return _estimate([*(turn.text for turn in prompt.fixed), item, prompt.opening], asked.max_tokens)


def _remote_cost(asked: Question, config: RemoteJudgeConfig, *, decides: bool) -> RoundCost | None:
    prompt = fitted(without_demonstrations(asked.prompt) if decides else asked.prompt, config.max_prompt_characters)
    if prompt is None or (decides and not asked.options):
        return None  # a decision model cannot write
    question = replace(asked, prompt=prompt)
    if decides:
        sent = decision_question(question)
        return _estimate((sent.state, sent.instructions, *sent.options.values()), 0)
    # The server's dialect is unknown here. Assume the dialect with the longest replies: prefilled, without logprobs.
    full = dialect_of(ServerKind.OTHER, config.assistant_prefill, config.reasoning_tokens)
    dialect = replace(full, logprobs=False)
    messages: Any = request_body(question, config.model, dialect)["messages"]
    return _estimate([each["content"] for each in messages], most_written(question, dialect))


def _estimate(texts: Sequence[str], written: int) -> RoundCost:
    read = sum(_TOKENS_PER_TURN + math.ceil(len(text.encode()) / _BYTES_PER_TOKEN) for text in texts)
    return RoundCost(read, written)
