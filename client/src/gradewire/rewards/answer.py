"""Find the final answer of a completion, after its thinking, in the last box, tag or phrase, in linear time."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from gradewire.errors import InvalidRequest

# The start of a box, an escaped character (so `\{` is not a brace), or a brace.
_TOKEN = re.compile(r"\\(?:boxed|fbox)\s{0,8}(\{)|\\(?:boxed|fbox) ([^\s{}$]{1,100})|\\.|[{}]", re.DOTALL)

_SPEAKERS = ("assistant", "model", "ai", "gpt")
_ASKERS = ("user", "human")  # not a set, because a posted role may be unhashable

# The searched text has single blanks, so no two repeats can share characters.
_PHRASE = re.compile(
    r"\b(?:final |correct )?answer[*_]{0,3} ?(?:is ?:?|:|=) ?[*_]{0,3}|答案[*_]{0,3}[是为:\uff1a][:\uff1a]?|^#### ?",
    re.IGNORECASE | re.MULTILINE,
)
_BLANKS = re.compile(r"[ \t\u00a0]+")
_CLOSING_WORDS = "i hope it is correct"

_TURNS = (
    *("<|im_start|>assistant\n", "<|start_header_id|>assistant<|end_header_id|>\n\n", "<start_of_turn>model\n"),
    *("<｜Assistant｜>", "<|assistant|>", "[/INST]", "<|Assistant|>"),  # noqa: RUF001 - DeepSeek's full-width bars
)
_TURN_ENDS = (
    *("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "<|eom_id|>"),
    *("</s>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "<pad>"),  # noqa: RUF001 - DeepSeek's full-width bars
)
# Match from the end: a search from the beginning would try every blank as the start of the end.
_TURN_END_REVERSED = re.compile(rf"(?:{'|'.join(re.escape(mark[::-1]) for mark in _TURN_ENDS)}|\s)+")

_LONGEST_TURN_END = 4096

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|seed:think"
# Marks of current models: tags, Kimi's triangles, Mistral's brackets, Phi's and OpenThinker's tokens.
_THINKING_END = re.compile(rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|<\|end_of_thought\|>|<\|/think\|>", re.IGNORECASE)
_START = re.compile(rf"<(?:{_NAMES})>|◁think▷|\[THINK\]|<\|begin_of_thought\|>|<\|think\|>", re.IGNORECASE)
# gpt-oss has channels; the last "final" one is spoken.
_CHANNEL = re.compile(r"<\|channel\|>(\w{1,20})[^<\n]{0,200}<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|start|call)\|>")

_WRAPPED = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s?\{([^{}]*)\}", re.DOTALL)
_AROUND = (("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"), ("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))
# The full stop of "U.S." is part of it.
_ABBREVIATED = re.compile(r"[^\W\d]\.[^\W\d]\.$")
_MOST_LAYERS = 4

_TAG = re.compile(r"<(/?)(?:answer|final_answer)>", re.IGNORECASE)

Completion: TypeAlias = str | Sequence[Mapping[str, Any]]
"""The output of a model: a text, or the messages of a chat."""

Extraction: TypeAlias = Literal["auto", "boxed", "tagged", "phrase", "whole"]
"""The place to look for an answer; "whole" is everything after the thinking."""

AnswerPosition: TypeAlias = Literal["boxed", "tagged", "phrase", "whole", "nothing"]
"""The place of an answer."""

_EXTRACTIONS = get_args(Extraction)
# Answers stand at the end. The limit makes a hostile completion cost only milliseconds.
MAX_READ_CHARACTERS = 200_000

Extractor: TypeAlias = Callable[[str], str]
"""A function from the text after the thinking to the answer; "" without one."""


def last_box(text: str) -> str | None:
    r"""Return the content of the last complete box; None without one.

    `\fbox{…}` and `\boxed 5` count too, unclosed boxes do not.
    """
    opened: list[int] = []  # for each open brace the start of its box, -1 without a box
    best: tuple[int, str] | None = None
    for token in _TOKEN.finditer(text):
        start = token.start()
        if token[1]:
            opened.append(token.end())
        elif token[2] is not None:
            best = start, token[2]
        elif token[0] == "{":
            opened.append(-1)
        elif token[0] == "}" and opened and (content := opened.pop()) >= 0 and (best is None or content > best[0]):
            best = content, text[content:start]
    return best[1] if best else None


def last_message(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the assistant's last message; "" without one.

    Messages without a role count as the assistant's. The content of a message is a text, nothing (a tool call), or
    parts; parts without text are ignored.
    """
    spoken = (message_text(each) for each in reversed(messages) if each.get("role", "assistant") in _SPEAKERS)
    return next(spoken, "")


def last_question(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the user's last message; "" without one."""
    return next((message_text(each) for each in reversed(messages) if each.get("role") in _ASKERS), "")


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message, with its parts joined."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    texts = (part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | Mapping))
    return "".join(text for text in texts if isinstance(text, str))


def last_phrase(text: str) -> str | None:
    """Return the text after the last "the answer is", "Answer:", "Final answer:" or "####", to the end of its line.

    If the line ends with the phrase, the next nonblank line counts. Returns None without a phrase, or if nothing
    follows.
    """
    plain = _BLANKS.sub(" ", text)
    end = max((phrase.end() for phrase in _PHRASE.finditer(plain)), default=-1)
    if end < 0:
        return None
    line = plain[end:].lstrip().partition("\n")[0].strip()
    if line.rstrip(".").casefold().endswith(_CLOSING_WORDS):
        line = line.rstrip(".")[: -len(_CLOSING_WORDS)].strip()
    if line.endswith("**") and line.count("**") == 1:  # the emphasis began before the phrase
        line = line[:-2].strip()
    return line or None


def completion_in(query: str, prompt: str) -> str | None:
    """Return the text after the prompt in a query, without end marks of a template; None if the prompt is not found.

    If decoding changed the prompt, the text after the last start of an assistant's turn counts.
    """
    if prompt and (found := query.find(prompt)) >= 0:
        return without_end(query[found + len(prompt) :])
    for turn in _TURNS:
        _, opening, completion = query.rpartition(turn)
        if opening:
            return without_end(completion)
    return None


def without_end(completion: str) -> str:
    """Return a completion without the marks at the end of a turn."""
    found = _TURN_END_REVERSED.match(completion[-_LONGEST_TURN_END:][::-1])
    return completion[: len(completion) - found.end()] if found else completion


def after_thinking(text: str) -> str | None:
    """Return the text after a model's thinking; None if the text ends during the thinking.

    A text without marks has no thinking. An end without a start counts, because chat templates put the start into the
    prompt.
    """
    if (channels := list(_CHANNEL.finditer(text))) != []:
        return _final_channel(text, channels)
    end = max((mark.end() for mark in _THINKING_END.finditer(text)), default=0)
    spoken = text[end:]
    if (start := _START.search(spoken)) is None:
        return spoken
    before = spoken[: start.start()]
    # Thinking began (again) and did not end. Earlier text is a final answer only if it came after thinking.
    return before if end and before.strip() else None


def _final_channel(text: str, channels: list[re.Match[str]]) -> str | None:
    last = channels[-1]
    if last[1] != "final":
        return None
    spoken = text[last.end() :]
    end = _CHANNEL_END.search(spoken)
    return spoken[: end.start()] if end else spoken


def tidied(answer: str) -> str:
    r"""Return an answer without emphasis, `$…$` or `\text{…}` around it, and without its full stop."""
    text = answer.strip()
    for _ in range(_MOST_LAYERS):
        before = text
        for left, right in _AROUND:
            inner = text[len(left) : -len(right)]
            if inner and text.startswith(left) and text.endswith(right) and left not in inner:
                text = inner.strip()
        if (wrapped := _WRAPPED.fullmatch(text)) is not None:
            text = wrapped[1].strip()
        if text.endswith(".") and not text.endswith("..") and not _ABBREVIATED.search(text):
            text = text[:-1].rstrip()
        if text == before:
            break
    return text


def last_tagged(text: str) -> str | None:
    """Return the content of the last complete `<answer>…</answer>` (or `final_answer`); None without one."""
    start: int | None = None
    found: str | None = None
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start = tag.end()
        elif start is not None:
            found, start = text[start : tag.start()], None
    return found


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a completion.

    Attributes:
        text: The answer; "" without one.
        position: Place of the answer; "nothing" without one.
        reason: Reason for a missing answer, else "".
    """

    text: str
    position: AnswerPosition
    reason: str = ""


def extract_answer(completion: Completion, extraction: Extraction | Extractor = "auto") -> Answer:
    r"""Find the final answer of a completion, in linear time. Never raises because of a model's text.

    In a chat, only the assistant's last message counts. Text before the end of thinking (`</think>` and other usual
    marks) is ignored; thinking that never ends has no answer. "auto" takes the last `<answer>…</answer>`, and in it (or
    in everything) the last `\boxed{…}`, else the text after the last "the answer is", "Answer:" or "####", else
    everything.

    Args:
        completion: A text, or messages with `role` and `content` (a text, or parts with `text`).
        extraction: Place to look, or your own function (at module level, if it must be pickled).

    Raises:
        InvalidRequest: `extraction` is neither a place nor a function.
    """
    check_extraction(extraction)
    text = completion if isinstance(completion, str) else last_message(completion)
    spoken = after_thinking(text[-MAX_READ_CHARACTERS:])
    if spoken is None:
        return Answer("", "nothing", "the completion ends within its thinking")
    if not spoken.strip():
        return Answer("", "nothing", "the completion is empty" if not text.strip() else "nothing follows the thinking")
    if callable(extraction):
        found = extraction(spoken).strip()
        return Answer(found, "whole") if found else Answer("", "nothing", "the extraction function found no answer")
    return _auto(spoken) if extraction == "auto" else _only(spoken, extraction)


def check_extraction(extraction: object) -> None:
    """Raise InvalidRequest unless the argument is a place or a function."""
    if not callable(extraction) and extraction not in _EXTRACTIONS:
        raise InvalidRequest(
            f"extraction={extraction!r}: give one of {', '.join(_EXTRACTIONS)}, or a function from text to text"
        )


def _auto(spoken: str) -> Answer:
    position: AnswerPosition = "whole"
    text = spoken
    if (tagged := last_tagged(spoken)) is not None:
        text, position = tagged, "tagged"
    if (boxed := last_box(text)) is not None:
        text, position = boxed, "boxed"
    elif position == "whole" and (phrase := last_phrase(text)) is not None:
        text, position = phrase, "phrase"
    return _answer(text, position)


def _only(spoken: str, extraction: Extraction) -> Answer:
    if extraction == "boxed":
        found = last_box(spoken)
        return _answer(found, "boxed", r"no complete \boxed{…} was found")
    if extraction == "tagged":
        return _answer(last_tagged(spoken), "tagged", "no complete <answer>…</answer> was found")
    if extraction == "phrase":
        return _answer(last_phrase(spoken), "phrase", 'no "the answer is …" was found')
    return _answer(spoken, "whole")


def _answer(found: str | None, position: AnswerPosition, missing: str = "") -> Answer:
    if found is None:
        return Answer("", "nothing", missing)
    # A whole answer is prose; grade it unchanged.
    text = found.strip() if position == "whole" else tidied(found)
    return Answer(text, position) if text else Answer("", "nothing", f"the {position} answer is empty")
