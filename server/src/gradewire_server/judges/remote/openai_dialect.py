"""Requests and answers in the dialects of OpenAI-compatible servers."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from gradewire_server.domain.items import Image, quoted, shortened
from gradewire_server.judges.images import url_of
from gradewire_server.judges.prometheus import Tokens
from gradewire_server.judges.prompt_texts import harmless, turns
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.errors import RemoteError, Reply
from gradewire_server.judges.remote.labels import Labels, Step
from gradewire_server.judges.remote.server import Answer, Question, token_count
from gradewire_server.settings.judge import Prefill

TOP_LOGPROBS: Final = 20
_FEATURE_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "temperature": ("temperature",),
    "logprobs": ("logprobs",),
    "constrains": ("structured_outputs", "grammar", "guided"),
    "continues": ("continue_final_message", "prefill", "last message"),
    "stops": ("'stop'", "`stop`", '"stop"', " stop "),
}
"""Words in a server's refusal, by refused feature."""
_CONSEQUENCES: Final[Mapping[str, str]] = {
    "logprobs": "the answer's text decides, with probability 1",
    "constrains": "an answer need not be a label",
    "continues": "an instruction says how to begin",
    "temperature": "an item's result may differ each time",
}
"""The consequence of each missing feature that changes answers."""

_THOUGHT_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")

_THOUGHTS_BEGIN: Final = re.compile(r"\s*(?:<(?:think|thinking|thought|reasoning)>|\[THINK\])", re.IGNORECASE)
_THOUGHTS_END: Final = re.compile(r"</(?:think|thinking|thought|reasoning)>|\[/THINK\]", re.IGNORECASE)

_MAX_LISTED_MODELS: Final = 5


class ServerKind(StrEnum):
    """Types of servers, detected by `owned_by` in their list of models."""

    VLLM = "vllm"
    LLAMA_CPP = "llamacpp"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features of one server's API.

    Attributes:
        limit: Name of the field for the maximum number of tokens.
        reasoning_tokens: Maximum number of tokens for thoughts before the answer. With thoughts, a request has no
            opening, no label constraint and no stops.
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
        """Return the dialect without the feature that a refusal (from `server_message`) names."""
        lowered = f" {words[:4000].casefold()} "
        if "max_completion_tokens" in lowered and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        for feature, names in _FEATURE_WORDS.items():
            if getattr(self, feature) and any(name in lowered for name in names):
                changed: dict[str, Any] = {feature: False}
                return replace(self, **changed)
        return self

    def lacking(self, full: "Dialect") -> list[str]:
        """Return the names of features that change answers and that only `full` has."""
        return [name for name in _CONSEQUENCES if getattr(full, name) and not getattr(self, name)]

    def consequences(self, full: "Dialect") -> str:
        """Return the missing features and their consequences, for the log."""
        return ", ".join(f"{name} ({_CONSEQUENCES[name]})" for name in self.lacking(full))


def dialect_of(kind: ServerKind, prefill: Prefill, reasoning_tokens: int = 0) -> Dialect:
    """Return a server type's full dialect."""
    if reasoning_tokens:
        return Dialect(kind, reasoning_tokens=reasoning_tokens)
    known = kind is not ServerKind.OTHER
    return Dialect(kind, continues=known if prefill == "auto" else prefill == "yes", constrains=known)


def request_body(question: Question, model: str, dialect: Dialect) -> dict[str, object]:
    """Return a request for one chat completion."""
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
    if not images:
        return text
    pictures = [{"type": "image_url", "image_url": {"url": url_of(image)}} for image in images]
    return [*pictures, {"type": "text", "text": text}]


def most_written(question: Question, dialect: Dialect) -> int:
    """Return the maximum number of tokens that a server may write for a question, including thoughts."""
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


def _text_of(message: Mapping[str, Any]) -> str | None:
    """Return a message's text (the joined texts of several parts), or None if there is no text."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = [each["text"] for each in _parts(content, "text") if isinstance(each.get("text"), str)]
    return "".join(texts) if texts else None


def _has_thoughts(message: Mapping[str, Any]) -> bool:
    beside = any(isinstance(message.get(name), str) and message[name].strip() for name in _THOUGHT_FIELDS)
    return beside or any(each.get("thinking") for each in _parts(message.get("content"), "thinking"))


def _parts(content: object, kind: str) -> list[Mapping[str, Any]]:
    parts = content if isinstance(content, list) else []
    return [each for each in parts if isinstance(each, dict) and each.get("type", "text") == kind]


def _without_thoughts(
    message: Mapping[str, Any], text: str, steps: tuple[Step, ...] | None
) -> tuple[str, tuple[Step, ...] | None, bool]:
    """Remove thoughts up to their last end mark, because the judge may quote earlier marks from an answer.

    Returns:
        The answer's text and steps, and True if the thoughts have certainly ended. The steps are empty if they cannot
        be separated from the thoughts' steps.
    """
    apart = _has_thoughts(message)
    end = _last_end(text)
    begun = _THOUGHTS_BEGIN.match(text) is not None
    if end is not None:
        text = text[end:]
    elif begun:
        text = ""
    if steps and (apart or begun or end is not None):
        steps = _answer_steps(steps, text)
    return text, steps, end is not None or (apart and bool(text.strip()))


def _answer_steps(steps: Sequence[Step], text: str) -> tuple[Step, ...]:
    written = "".join(step.token for step in steps)
    begin = _last_end(written)
    if begin is None:
        # The server removed the thoughts from the text, but perhaps not from the steps.
        begin = written.rfind(text.strip()) if text.strip() else -1
        while begin > 0 and written[begin - 1].isspace():
            begin -= 1
    place = 0
    for number, step in enumerate(steps if begin >= 0 else ()):
        place += len(step.token)
        if place > begin:
            return (*_after_thoughts(step, len(step.token) - (place - begin)), *steps[number + 1 :])
    return ()


def _after_thoughts(step: Step, characters: int) -> tuple[Step, ...]:
    """Remove this number of `characters` from a step's start. If only white space is left, return no step."""
    if characters == 0:
        return (step,)
    head, rest = step.token[:characters], step.token[characters:]
    alike = tuple((token[characters:], logprob) for token, logprob in step.alternatives if token.startswith(head))
    return (Step(rest, alike),) if rest.strip() else ()


def _last_end(text: str) -> int | None:
    return max((found.end() for found in _THOUGHTS_END.finditer(text)), default=None)


def answer_of(reply: Reply, question: Question, dialect: Dialect) -> Answer:
    """Parse a chat completion; raise RemoteError if the completion is not valid."""
    completion = errors.json_object(reply.content)
    try:
        choice = completion["choices"][0]
        finish = choice.get("finish_reason")
        message = choice["message"]
        text = _text_of(message)
        usage = completion.get("usage") or {}
        tokens = Tokens(
            token_count(usage.get("prompt_tokens")),
            token_count((usage.get("prompt_tokens_details") or {}).get("cached_tokens")),
            token_count(usage.get("completion_tokens")),
        )
        steps = _steps(choice.get("logprobs"))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise errors.unreadable("something other than a chat completion") from error
    if finish == "content_filter":
        raise errors.unreadable("nothing, because its content filter intervened")
    cut = finish == "length"
    if text is None and not cut:
        raise errors.unreadable("no text")
    # Without a text, the judge only wrote thoughts.
    text, steps, answering = _without_thoughts(message, text or "", steps)
    thinks = bool(dialect.reasoning_tokens)
    exhausted = cut and not answering and (thinks or not (text.strip() or steps))
    continued = dialect.continues and bool(question.prompt.opening)
    if continued and dialect.kind is ServerKind.LLAMA_CPP:
        # llama.cpp repeats the opening before the continuation in the text, but not in the tokens.
        text = text.removeprefix(harmless(question.prompt.opening))
    return Answer(text, not cut, steps, continued, tokens, exhausted=exhausted)


def kind_of(reply: Reply, model: str) -> ServerKind:
    """Return a server's type according to its list of models.

    Raises:
        RemoteError: The list does not contain the model, and the server is not llama.cpp, which accepts any name.
    """
    entries = _entries(reply, "data")
    owners = {str(each.get("owned_by", "")) for each in entries}
    if ServerKind.LLAMA_CPP.value in owners:
        return ServerKind.LLAMA_CPP
    names = [str(each["id"]) for each in entries if "id" in each]
    if names and model not in names:
        shown = ", ".join(shortened(name) for name in names[:_MAX_LISTED_MODELS])
        raise errors.refused(
            f"{errors.server_at(reply.address)} has no model {quoted(model)}, only {shown}"
            f"{' and others' if len(names) > _MAX_LISTED_MODELS else ''}. Check {errors.MODEL_SETTING}"
        )
    return ServerKind.VLLM if ServerKind.VLLM.value in owners else ServerKind.OTHER


def sees_images(reply: Reply, model: str) -> bool | None:
    """Return True if a model accepts images according to the server's list of models, or None if this is unknown."""
    entries = _entries(reply, "models", "data")
    own = [each for each in entries if model in {each.get("id"), each.get("name"), each.get("model")}]
    for entry in own or (entries if len(_entries(reply, "data")) == 1 else []):
        able = entry.get("capabilities")
        if isinstance(able, list):
            return "multimodal" in able or "vision" in able
        if isinstance(able, dict) and isinstance(able.get("vision"), bool):
            return bool(able["vision"])
        architecture = entry.get("architecture")
        if isinstance(architecture, dict) and isinstance(architecture.get("input_modalities"), list):
            return "image" in architecture["input_modalities"]
    return None


def _entries(reply: Reply, *lists: str) -> list[dict[str, Any]]:
    try:
        body = errors.json_object(reply.content)
    except RemoteError:
        return []
    listed = [body.get(name) for name in lists]
    return [each for entries in listed if isinstance(entries, list) for each in entries if isinstance(each, dict)]


def _steps(logprobs: Mapping[str, Any] | None) -> tuple[Step, ...] | None:
    content = (logprobs or {}).get("content")
    return tuple(_step(each) for each in content) if content else None


def _step(entry: Mapping[str, Any]) -> Step:
    tops = [(_token(each), float(each["logprob"])) for each in entry.get("top_logprobs") or ()]
    token = _token(entry)
    # A token that the constraint forced may not be among the most probable tokens, and then counts for no label.
    return Step(token, tuple(tops or [(token, float(entry["logprob"]))]))


def _token(entry: Mapping[str, Any]) -> str:
    token = entry["token"]
    if not isinstance(token, str):
        raise TypeError("a token without a text")
    return token
