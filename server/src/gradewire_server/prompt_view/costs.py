"""What a judge would be paid for an item, without asking one: for people who look at the price first."""

import math
from dataclasses import dataclass, replace
from typing import Any, Final

from gradewire_server.judges.decisions.asked import asked_of, without_demonstrations
from gradewire_server.judges.openai.dialect import ServerKind, dialect_of, most_written, request_body
from gradewire_server.judges.remote.server import Question
from gradewire_server.judges.remote.text import fitted
from gradewire_server.prompt_view.rounds import PromptRound, PromptViewError
from gradewire_server.prompt_view.tokens import JudgeTokenizer
from gradewire_server.settings.judge import RemoteJudgeConfig

_BYTES_PER_TOKEN: Final = 4
_TOKENS_PER_TURN: Final = 4
_ESTIMATED: Final = f"tokens read are estimated, one for {_BYTES_PER_TOKEN} bytes of text: only the judge knows them"


@dataclass(frozen=True, slots=True)
class RoundCost:
    """Tokens of one question to a judge.

    Attributes:
        read: Of the prompt, fixed turns included.
        most_written: The most that the judge may write, thoughts included.
    """

    read: int
    most_written: int


@dataclass(frozen=True, slots=True)
class JudgeMeter:
    """Reckons what questions to one judge cost.

    Attributes:
        tokenizer: Of a judge of this machine.
        remote: How a judge behind a server of its own is spoken to; None for the other kind.
        decides: Whether that is a decision model, which writes nothing.
    """

    tokenizer: JudgeTokenizer
    remote: RemoteJudgeConfig | None = None
    decides: bool = False

    @property
    def exact(self) -> bool:
        """Whether the tokens of prompts are counted, not estimated."""
        return self.remote is None and self.tokenizer.chat is not None

    @property
    def note(self) -> str:
        """How tokens are counted."""
        return self.tokenizer.note if self.exact else _ESTIMATED

    def cost(self, asked: PromptRound) -> RoundCost | None:
        """The tokens of a question; None where it does not fit the judge, or its kind: it is then not asked."""
        if self.exact:
            try:
                tokens = self.tokenizer.tokens(asked)
            except PromptViewError:
                return None
            return RoundCost(len(tokens.fixed) + len(tokens.item), asked.max_tokens) if tokens else None
        if self.remote is None:
            return _of_a_judge_here(asked)
        return _of_a_decision_model(asked, self.remote) if self.decides else _of_a_server(asked, self.remote)


def _of_a_server(asked: PromptRound, config: RemoteJudgeConfig) -> RoundCost | None:
    prompt = fitted(asked.prompt, config.max_prompt_characters)
    if prompt is None:
        return None
    question = Question(prompt, asked.options, asked.max_tokens)
    # Of a server that is not asked: the one that writes most, is told how to begin, and whose text decides.
    full = dialect_of(ServerKind.OTHER, config.assistant_prefill, config.reasoning_tokens)
    dialect = replace(full, logprobs=False)
    messages: Any = request_body(question, config.model, dialect)["messages"]
    return RoundCost(sum(_estimated(each["content"]) for each in messages), most_written(question, dialect))


def _of_a_decision_model(asked: PromptRound, config: RemoteJudgeConfig) -> RoundCost | None:
    prompt = fitted(without_demonstrations(asked.prompt), config.max_prompt_characters)
    if prompt is None or not asked.options:
        return None  # it is not asked to write
    sent = asked_of(Question(prompt, asked.options))
    return RoundCost(sum(map(_estimated, (sent.state, sent.instructions, *sent.options.values()))), 0)


def _of_a_judge_here(asked: PromptRound) -> RoundCost:
    prompt = asked.prompt
    item = f"{prompt.lead}{prompt.prediction}{prompt.tail}"
    return RoundCost(
        sum(map(_estimated, (*(turn.text for turn in prompt.fixed), item, prompt.opening))), asked.max_tokens
    )


def _estimated(turn: str) -> int:
    return _TOKENS_PER_TURN + math.ceil(len(turn.encode()) / _BYTES_PER_TOKEN)
