"""What kinds of OpenAI-compatible servers understand beyond the common API, and the requests for each kind."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from gradewire_server.domain.items import Image
from gradewire_server.judges.remote.labels import Labels
from gradewire_server.judges.remote.server import Question, url_of
from gradewire_server.judges.texts import harmless, turns
from gradewire_server.settings.judge import Prefill

TOP_LOGPROBS: Final = 20
_REFUSED: Final[Mapping[str, Sequence[str]]] = {
    "temperature": ("temperature",),
    "logprobs": ("logprobs",),
    "constrains": ("structured_outputs", "grammar", "guided"),
    "continues": ("continue_final_message", "prefill", "last message"),
    "stops": ("'stop'", "`stop`", '"stop"', " stop "),
}
"""By feature of a dialect: words by which servers name it when they refuse it."""


_WITHOUT: Final[Mapping[str, str]] = {
    "logprobs": "the text of its answers decides, with probability 1",
    "constrains": "it is asked for one of the labels, not held to them",
    "continues": "it is told how to begin",
    "temperature": "one item may come out differently each time",
}
"""By feature of a dialect that changes answers: what is done without it."""


class ServerKind(StrEnum):
    """Kinds that are told apart by `owned_by` in their list of models."""

    VLLM = "vllm"
    LLAMA_CPP = "llamacpp"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one server is spoken to.

    Attributes:
        kind: What it is.
        continues: Whether it goes on from a begun assistant's turn.
        constrains: Whether it can be held to the labels.
        logprobs: Whether it gives log probabilities.
        limit: Its name for the largest number of tokens.
        temperature: Whether it takes a temperature of 0.
        stops: Whether it takes texts that end an answer.
        reasoning_tokens: What it may think before its answer; its turn is then not begun, nor held to the labels, nor
            ended by a stop, which could be among its thoughts.
    """

    kind: ServerKind = ServerKind.OTHER
    continues: bool = False
    constrains: bool = False
    logprobs: bool = True
    limit: str = "max_tokens"
    temperature: bool = True
    stops: bool = True
    reasoning_tokens: int = 0

    def without(self, words: str) -> "Dialect":
        """The same without what a server's refusal names (`replies.said`); the same where that is nothing."""
        lowered = f" {words[:4000].casefold()} "
        if "max_completion_tokens" in lowered and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        for feature, names in _REFUSED.items():
            if getattr(self, feature) and any(name in lowered for name in names):
                changed: dict[str, Any] = {feature: False}
                return replace(self, **changed)
        return self

    def lacks(self, full: "Dialect") -> str:
        """Names of what another one does and this one does not, where that changes answers; "" where nothing does."""
        return ", ".join(self._lacking(full))

    def consequences(self, full: "Dialect") -> str:
        """The same with what is done without them, for people."""
        return ", ".join(f"{name} ({_WITHOUT[name]})" for name in self._lacking(full))

    def _lacking(self, full: "Dialect") -> list[str]:
        return [name for name in _WITHOUT if getattr(full, name) and not getattr(self, name)]


def dialect_of(kind: ServerKind, prefill: Prefill, reasoning_tokens: int = 0) -> Dialect:
    """How a server of a kind is spoken to.

    Args:
        kind: What it is.
        prefill: The operator's word about begun turns.
        reasoning_tokens: What its model may think before it answers.
    """
    if reasoning_tokens:
        return Dialect(kind, reasoning_tokens=reasoning_tokens)
    known = kind is not ServerKind.OTHER
    return Dialect(kind, continues=known if prefill == "auto" else prefill == "yes", constrains=known)


def request_body(question: Question, model: str, dialect: Dialect) -> dict[str, object]:
    """A request for one chat completion.

    Args:
        question: What is asked.
        model: The model's name there.
        dialect: How the server is spoken to.
    """
    opening = harmless(question.prompt.opening)
    continued = dialect.continues and bool(opening)
    *before, item = turns(question.prompt)
    text = item.text if continued else item.text + _instruction(question, opening)
    messages: list[dict[str, object]] = [{"role": turn.role.value, "content": turn.text} for turn in before]
    messages.append({"role": item.role.value, "content": _content(text, question.prompt.images)})
    if continued:
        messages.append({"role": "assistant", "content": opening})
    body: dict[str, object] = {"model": model, "messages": messages, "stream": False}
    if dialect.temperature:
        body["temperature"] = 0
    body[dialect.limit] = most_written(question, dialect)
    if question.options:
        if dialect.logprobs:
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        if dialect.constrains:
            body |= _constraint(question, dialect.kind, " " if continued else f"{opening} " if opening else "")
    if question.stop and dialect.stops and not dialect.reasoning_tokens:
        body["stop"] = list(question.stop)
    if continued and dialect.kind is not ServerKind.OTHER:
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return body


def _content(text: str, images: Sequence[Image]) -> object:
    """An item's turn: its pictures, then its text; a text alone where there is none."""
    if not images:
        return text
    pictures = [{"type": "image_url", "image_url": {"url": url_of(image)}} for image in images]
    return [*pictures, {"type": "text", "text": text}]


def most_written(question: Question, dialect: Dialect) -> int:
    """The most tokens that a server may write to answer a question, thoughts included."""
    if not question.options:
        return question.max_tokens + dialect.reasoning_tokens
    continued = dialect.continues and bool(question.prompt.opening)
    labels = Labels(question.options, "" if continued else harmless(question.prompt.opening))
    told = dialect.logprobs and not dialect.reasoning_tokens
    return labels.tokens_to_tell if told else labels.max_tokens + dialect.reasoning_tokens


def _constraint(question: Question, kind: ServerKind, before: str) -> Mapping[str, object]:
    choices = [before + option for option in question.options]
    if kind is ServerKind.VLLM:
        return {"structured_outputs": {"choice": choices}}
    return {"grammar": "root ::= " + " | ".join(json.dumps(each, ensure_ascii=False) for each in choices)}


def _instruction(question: Question, opening: str) -> str:
    if question.options:
        listed = ", ".join(question.options)
        begin = f'"{opening}" and then ' if opening else ""
        return f"\n\nReply with {begin}one of these, and with nothing else: {listed}."
    return f'\n\nBegin your reply with "{opening}".' if opening else ""
