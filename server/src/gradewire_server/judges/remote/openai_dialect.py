"""Requests and answers in the dialects of OpenAI-compatible servers."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from gradewire_server.domain.items import Image
from gradewire_server.domain.judge import Role, Turn
from gradewire_server.judges.images import url_of
from gradewire_server.judges.prometheus import Tokens
from gradewire_server.judges.prompt_texts import harmless, turns
from gradewire_server.judges.remote import errors
from gradewire_server.judges.remote.errors import Reply
from gradewire_server.judges.remote.labels import Step, labels_of
from gradewire_server.judges.remote.server import Answer, Question, token_count
from gradewire_server.settings.judge import Prefill

TOP_LOGPROBS: Final = 20
_FEATURE_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "temperature": ("temperature",),
    "logprobs": ("logprobs", "log probabilities", "top_n_tokens"),
    "constrains": ("structured_outputs", "grammar", "guided"),
    "continues": ("continue_final_message", "prefill", "last message", "add_generation_prompt"),
    "stops": ("'stop'", "`stop`", '"stop"', " stop ", "stop_sequences"),
    "system": (
        *("system role", "system message", "'system' role", "role 'system'", "not support 'system'", "role system"),
        *("must alternate", "developer instruction"),
    ),
    "thinks": ("thinking", "budget_tokens"),
}
"""Words in a server's refusal, by refused feature."""
_CONSEQUENCES: Final[Mapping[str, str]] = {
    "logprobs": "the answer's text decides, with probability 1",
    "constrains": "an answer need not be a label",
    "continues": "an instruction says how to begin",
    "temperature": "an item's result may differ each time",
    "top_logprobs": "labels below the few most probable tokens count 0",
    "system": "the first user turn begins with the instructions",
    "thinks": "the judge need not think as long as judge_reasoning_tokens allows",
}
"""The consequence of each missing feature that changes answers."""
_LIMITS: Final = re.compile(
    r"<=|less[ _]than|at most|max|exceed|between|\brange\b|above|greater than|no more than|up to|too (?:large|many)"
)
"""Words with which servers say that a number is too large."""
_SMALL_NUMBER: Final = re.compile(r"(?<![\w.])\d{1,2}(?!\w|\.\d)")
_USUAL_LIMIT: Final = 5
"""The limit of most servers that allow fewer than 20 log probabilities, for a refusal that does not state it."""
_UNKNOWN_FIELD: Final = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|extra|not (?:allowed|permitted)|deprecated"
)
_CUT: Final = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
"""Reasons for an answer's end that mean that it was cut off. Servers differ."""
_FILTERED: Final = re.compile(
    r"content_?filter(?:ed)?|safety|prohibited_content|blocklist|spii|recitation|guardrail_intervened|sensitive|refusal"
)
_REFUSED: Final = "the judge's refusal to answer"
_FAILED: Final = frozenset({"error", "abort", "failed"})

_THOUGHT_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")

_THOUGHTS_BEGIN: Final = re.compile(r"\s*(?:<(?:think|thinking|thought|reasoning)>|\[THINK\])", re.IGNORECASE)
_THOUGHTS_END: Final = re.compile(r"</(?:think|thinking|thought|reasoning)>|\[/THINK\]", re.IGNORECASE)


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
        system: True if the server accepts instructions in a turn of their own.
        thinks: Number of forms left in which to ask for thoughts, for an API that wants to be asked (Anthropic's).
    """

    kind: ServerKind = ServerKind.OTHER
    continues: bool = False
    constrains: bool = False
    logprobs: bool = True
    limit: str = "max_tokens"
    temperature: bool = True
    stops: bool = True
    reasoning_tokens: int = 0
    top_logprobs: int = TOP_LOGPROBS
    system: bool = True
    thinks: int = 0

    def without(self, words: str) -> "Dialect":
        """Return the dialect without the feature that a refusal (from `server_message`) names."""
        lowered = f" {words[:4000].casefold()} "
        if self.limit == "max_tokens" and (
            "max_completion_tokens" in lowered or ("max_tokens" in lowered and _UNKNOWN_FIELD.search(lowered))
        ):
            return replace(self, limit="max_completion_tokens")
        fewer = self._fewer_logprobs(lowered)
        if self.logprobs and fewer:
            return replace(self, top_logprobs=fewer)
        for feature, names in _FEATURE_WORDS.items():
            if getattr(self, feature) and any(name in lowered for name in names):
                changed: dict[str, Any] = {feature: self.thinks - 1 if feature == "thinks" else False}
                return replace(self, **changed)
        return self

    def _fewer_logprobs(self, words: str) -> int:
        """Return a smaller number of log probabilities that a refusal allows, or 0 if it is not about the number."""
        if ("logprobs" not in words and "top_n_tokens" not in words) or not _LIMITS.search(words):
            return 0
        stated = [number for number in map(int, _SMALL_NUMBER.findall(words)) if 0 < number < self.top_logprobs]
        about_number = "top_" in words and self.top_logprobs > _USUAL_LIMIT
        return max(stated) if stated else _USUAL_LIMIT * about_number

    def lacking(self, full: "Dialect") -> list[str]:
        """Return the names of features that change answers and that only `full` has."""
        missing = [name for name in _CONSEQUENCES if getattr(self, name) < getattr(full, name)]
        # Without log probabilities, their number says nothing. Another form of asking for thoughts changes nothing.
        implied = {"top_logprobs" if not self.logprobs else "", "thinks" if self.thinks else ""}
        return [name for name in missing if name not in implied]

    def unused(self, full: "Dialect") -> str:
        """Return the names of refused fields that only `full` uses, and that change no answer."""
        limit = f"{full.limit} (it wants {self.limit})" if self.limit != full.limit else ""
        return ", ".join(name for name in (limit, "stop" if full.stops > self.stops else "") if name)

    def consequences(self, full: "Dialect") -> str:
        """Return the missing features and their consequences, for the log."""
        return ", ".join(f"{name} ({_CONSEQUENCES[name]})" for name in self.lacking(full))


def dialect_of(kind: ServerKind, prefill: Prefill, reasoning_tokens: int = 0) -> Dialect:
    """Return a server type's full dialect."""
    if reasoning_tokens:
        return Dialect(kind, reasoning_tokens=reasoning_tokens)
    known = kind is not ServerKind.OTHER
    return Dialect(kind, continues=known if prefill == "auto" else prefill == "yes", constrains=known)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A question's turns in one dialect.

    Attributes:
        before: The turns before the item.
        item: The text of the item's turn, with an instruction on how to begin if the answer is not begun.
        begun: The beginning of the judge's turn, which the server continues, or "".
    """

    before: tuple[Turn, ...]
    item: str
    begun: str


def conversation(question: Question, dialect: Dialect) -> Conversation:
    """Return a question's turns. Every server gets the same texts."""
    opening = harmless(question.prompt.opening)
    begun = opening if dialect.continues else ""
    *before, item = turns(question.prompt)
    text = item.text if begun else item.text + _instruction(question, opening)
    if not dialect.system:
        said = "".join(f"{turn.text}\n\n" for turn in before if turn.role is Role.SYSTEM)
        before = [turn for turn in before if turn.role is not Role.SYSTEM]
        if before and before[0].role is Role.USER:
            before[0] = replace(before[0], text=said + before[0].text)
        else:
            text = said + text
    return Conversation(tuple(before), text, begun)


def request_body(question: Question, model: str, dialect: Dialect) -> dict[str, object]:
    """Return a request for one chat completion."""
    talk = conversation(question, dialect)
    messages: list[dict[str, object]] = [{"role": turn.role.value, "content": turn.text} for turn in talk.before]
    messages.append({"role": Role.USER.value, "content": _content(talk.item, question.prompt.images)})
    continued = bool(talk.begun)
    if continued:
        messages.append({"role": Role.ASSISTANT.value, "content": talk.begun})
    body: dict[str, object] = {"model": model, "messages": messages, "stream": False}
    if dialect.temperature:
        body["temperature"] = 0
    body[dialect.limit] = most_written(question, dialect)
    if question.options:
        if dialect.logprobs:
            body |= {"logprobs": True, "top_logprobs": dialect.top_logprobs}
        if dialect.constrains:
            opening = harmless(question.prompt.opening)
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
    if question.one_token:
        return 1
    continued = dialect.continues and bool(question.prompt.opening)
    labels = labels_of(question.options, "" if continued else harmless(question.prompt.opening))
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
    texts = [each["text"] for each in parts_of(content, "text") if isinstance(each.get("text"), str)]
    return "".join(texts) if texts else None


def _has_thoughts(message: Mapping[str, Any]) -> bool:
    beside = any(isinstance(message.get(name), str) and message[name].strip() for name in _THOUGHT_FIELDS)
    return beside or any(each.get("thinking") for each in parts_of(message.get("content"), "thinking"))


def parts_of(content: object, kind: str) -> list[Mapping[str, Any]]:
    """Return a content's parts of a kind."""
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


@dataclass(frozen=True, slots=True)
class Written:
    """A text from a server, in any API.

    Attributes:
        text: The text, or None if the reply has no text.
        message: The message, which may contain thoughts apart from the text.
        finish: The reason for the end, as the server states it.
        refusal: True if the model refused to answer in a field of its own.
    """

    text: str | None
    message: Mapping[str, Any]
    finish: object
    steps: tuple[Step, ...] | None
    tokens: Tokens
    refusal: bool = False


def answer_of(reply: Reply, question: Question, dialect: Dialect) -> Answer:
    """Parse a chat completion; raise RemoteError if the completion is not valid."""
    completion = errors.json_object(reply.content)
    try:
        choice = completion["choices"][0]
        message = choice["message"]
        usage = completion.get("usage") or {}
        tokens = Tokens(
            token_count(usage.get("prompt_tokens")),
            token_count((usage.get("prompt_tokens_details") or {}).get("cached_tokens")),
            token_count(usage.get("completion_tokens")),
        )
        refusal = bool(message.get("refusal"))
        steps = steps_of(choice.get("logprobs"))
        written = Written(_text_of(message), message, choice.get("finish_reason"), steps, tokens, refusal)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise errors.unreadable("something other than a chat completion") from error
    return answer_from(written, question, dialect, reply)


def answer_from(written: Written, question: Question, dialect: Dialect, reply: Reply) -> Answer:
    """Return the answer in a server's text; raise RemoteError if the text is missing or was filtered."""
    finish = written.finish.casefold() if isinstance(written.finish, str) else ""
    text = written.text
    bill = written.tokens.prompt, written.tokens.generated
    if _FILTERED.fullmatch(finish):
        raise (errors.filtered(_REFUSED) if finish == "refusal" else errors.filtered()).billed(*bill)
    if written.refusal and not (text or "").strip():
        raise errors.filtered(_REFUSED).billed(*bill)
    if finish in _FAILED and not (text or "").strip():
        raise errors.server_error(at=errors.server_at(reply.address))
    cut = finish in _CUT
    if text is None and not cut:
        raise errors.unreadable("no text").billed(*bill)
    # JSON can contain lone surrogates, which no result can.
    text = (text or "").encode("utf-8", "replace").decode()
    # Without a text, the judge only wrote thoughts.
    text, steps, answering = _without_thoughts(written.message, text, written.steps)
    thinks = bool(dialect.reasoning_tokens)
    exhausted = cut and not answering and (thinks or not (text.strip() or steps))
    continued = dialect.continues and bool(question.prompt.opening)
    if continued and dialect.kind is ServerKind.LLAMA_CPP:
        # llama.cpp repeats the opening before the continuation in the text, but not in the tokens.
        text = text.removeprefix(harmless(question.prompt.opening))
    return Answer(text, not cut, steps, continued, written.tokens, exhausted=exhausted)


def steps_of(logprobs: object) -> tuple[Step, ...] | None:
    """Return the tokens with their alternatives, or None if the server states no log probability.

    Raises:
        TypeError, ValueError, KeyError: A part has the wrong type.
    """
    content = logprobs.get("content") if isinstance(logprobs, dict) else logprobs
    if not content and isinstance(logprobs, dict) and logprobs.get("tokens"):
        content = _entries(logprobs)
    if not content:
        return None
    if not isinstance(content, list):
        raise TypeError("log probabilities without a list")
    steps = tuple(_step(each) for each in content)
    return steps if any(step.alternatives for step in steps) else None


def _entries(logprobs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of the older form with a list for each field, which Together's servers still have."""
    tokens, own = logprobs["tokens"], logprobs.get("token_logprobs") or ()
    tops = [
        [{"token": token, "logprob": logprob} for token, logprob in (top or {}).items()]
        for top in logprobs.get("top_logprobs") or ()
    ]
    rows = itertools.zip_longest(tokens, own[: len(tokens)], tops[: len(tokens)])
    return [{"token": token, "logprob": logprob, "top_logprobs": top} for token, logprob, top in rows]


def _step(entry: Mapping[str, Any]) -> Step:
    # null and a missing number mean minus infinity (llama.cpp), or that the server does not tell.
    listed = entry.get("top_logprobs") or ()
    tops = [(_token(each), float(each["logprob"])) for each in listed if each.get("logprob") is not None]
    token = _token(entry)
    if not tops and entry.get("logprob") is not None:
        tops = [(token, float(entry["logprob"]))]
    # A token that the constraint forced may not be among the most probable tokens, and then counts for no label.
    return Step(token, tuple(tops))


def _token(entry: Mapping[str, Any]) -> str:
    token = entry["token"]
    if not isinstance(token, str):
        raise TypeError("a token without a text")
    return token
