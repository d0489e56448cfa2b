"""Find the final answer in a completion or chat, by all its marks or at one place. Searches take linear time."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

from gradewire.errors import InvalidRequest
from gradewire_proto import final_answer
from gradewire_proto.final_answer import MAX_READ_CHARACTERS, Position
from gradewire_proto.final_answer.thinking import after_thinking

__all__ = [
    "MAX_READ_CHARACTERS",
    "Answer",
    "AnswerPosition",
    "Completion",
    "Extraction",
    "Extractor",
    "after_thinking",
    "bare_reference",
    "check_extraction",
    "completion_in",
    "extract_answer",
    "last_box",
    "last_message",
    "last_phrase",
    "last_question",
    "last_tagged",
    "message_text",
    "tidied",
    "without_end",
]

# The start of a box, an escaped character (so `\{` is not a brace), or a brace.
_TOKEN = re.compile(r"\\(?:boxed|fbox)\s{0,8}(\{)|\\(?:boxed|fbox) ([^\s{}$]{1,100})|\\.|[{}]", re.DOTALL)

_SPEAKERS = ("assistant", "model", "ai", "gpt")
_ASKERS = ("user", "human")  # not a set, because a role in a post may be unhashable

# The text's runs of blanks are reduced to one blank first, so the search needs no backtracking.
_PHRASE = re.compile(
    r"\b(?:final |correct )?answer[*_]{0,3} ?(?:is ?:?|:|=) ?[*_]{0,3}|答案[*_]{0,3}[是为:\uff1a][:\uff1a]?|^#### ?",
    re.IGNORECASE | re.MULTILINE,
)
_FOUR_HASHES = re.compile(r"^#### ?\S", re.MULTILINE)
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
# Matched against the reversed text, because a forward search would try a match at every blank.
_TURN_END_REVERSED = re.compile(rf"(?:{'|'.join(re.escape(mark[::-1]) for mark in _TURN_ENDS)}|\s)+")

_LONGEST_TURN_END = 4096

_WRAPPED = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s?\{([^{}]*)\}", re.DOTALL)
_AROUND = (("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"), ("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))
# The last full stop of "U.S." belongs to the answer.
_ABBREVIATED = re.compile(r"[^\W\d]\.[^\W\d]\.$")
_MOST_LAYERS = 4

_TAG = re.compile(r"<(/?)(?:answer|final_answer)>", re.IGNORECASE)

Completion: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A model's output: a string, or the messages of a chat."""

Extraction: TypeAlias = Literal["auto", "boxed", "tagged", "phrase", "whole"]
"""A place to look for an answer. "whole" means all text after the thinking."""

AnswerPosition: TypeAlias = Position
"""The place at which an answer was found."""

_EXTRACTIONS = get_args(Extraction)

Extractor: TypeAlias = Callable[[str], str]
"""A function that receives the text after the thinking and returns the answer, or "" if there is no answer."""


def last_box(text: str) -> str | None:
    r"""Return the content of the last complete `\boxed{…}`, or None if there is no complete box.

    `\fbox{…}` and `\boxed 5` also count as boxes.
    """
    opened: list[int] = []  # the start of each open brace's box content; -1 for a brace that opens no box
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
    """Return the text of the assistant's last message, or "" if there is no such message.

    A message without a role counts as the assistant's. A message's content is a string, None (for a tool call), or a
    list of parts. Parts without text are ignored.
    """
    spoken = (message_text(each) for each in reversed(messages) if each.get("role", "assistant") in _SPEAKERS)
    return next(spoken, "")


def last_question(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the user's last message, or "" if there is no such message."""
    return next((message_text(each) for each in reversed(messages) if each.get("role") in _ASKERS), "")


def message_text(message: Mapping[str, Any]) -> str:
    """Return a message's text, with all parts joined."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    texts = (part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | Mapping))
    return "".join(text for text in texts if isinstance(text, str))


def last_phrase(text: str) -> str | None:
    """Return the text after the last "the answer is", "Answer:", "Final answer:" or "####", to the end of the line.

    If the line ends with the phrase, return the next nonblank line. Return None if there is no phrase, or no text
    after the phrase.
    """
    plain = _BLANKS.sub(" ", text)
    end = max((phrase.end() for phrase in _PHRASE.finditer(plain)), default=-1)
    if end < 0:
        return None
    line = plain[end:].lstrip().partition("\n")[0].strip()
    if line.rstrip(".").casefold().endswith(_CLOSING_WORDS):
        line = line.rstrip(".")[: -len(_CLOSING_WORDS)].strip()
    if line.endswith("**") and line.count("**") == 1:  # the bold text began before the phrase
        line = line[:-2].strip()
    return line or None


def completion_in(query: str, prompt: str) -> str | None:
    """Return the completion in a query (a prompt and a completion), or None if no completion is found.

    If decoding changed the prompt, return the text after the last start of an assistant's turn. Remove marks that end
    the turn.
    """
    if prompt and (found := query.find(prompt)) >= 0:
        return without_end(query[found + len(prompt) :])
    for turn in _TURNS:
        _, opening, completion = query.rpartition(turn)
        if opening:
            return without_end(completion)
    return None


def without_end(completion: str) -> str:
    """Return a completion without the chat template's marks that end a turn."""
    found = _TURN_END_REVERSED.match(completion[-_LONGEST_TURN_END:][::-1])
    return completion[: len(completion) - found.end()] if found else completion


def tidied(answer: str) -> str:
    r"""Return an answer without surrounding emphasis, `$…$` or `\text{…}`, and without a final full stop."""
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
    """Return the content of the last complete `answer` or `final_answer` tag, or None if there is no complete tag."""
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
    """The final answer in a completion.

    Attributes:
        text: The answer; "" if no answer was found.
        position: Where the answer was found; "nothing" if no answer was found.
        reason: The reason why no answer was found; "" if there is an answer.
    """

    text: str
    position: AnswerPosition
    reason: str = ""


def extract_answer(completion: Completion, extraction: Extraction | Extractor = "auto") -> Answer:
    r"""Find a completion's final answer, in linear time. No model output makes this function raise.

    In a chat, only the assistant's last message counts. Text up to the end of the thinking (`</think>` and similar
    marks) is ignored. If the thinking never ends, there is no answer.

    "auto" is `gradewire_proto.final_answer.find_final_answer`: the last marked statement wins (a box, tag, value of
    JSON, heading, or a phrase in one of 13 languages), a later correction replaces it, and a choice is its letter. If
    nothing is found, the answer is the whole text.

    Args:
        completion: A string, or messages with `role` and `content` (a string, or parts with `text`).
        extraction: The place to look, or your own function, defined at module level if it must be pickled.

    Raises:
        InvalidRequest: `extraction` is neither a known value nor a function.
    """
    check_extraction(extraction)
    text = completion if isinstance(completion, str) else last_message(completion)
    if extraction == "auto":
        final = final_answer.find_final_answer(text)  # imported now: it is slow to import
        return Answer(final.text, final.position, final.reason)
    spoken = after_thinking(text[-MAX_READ_CHARACTERS:])
    if spoken is None:
        return Answer("", "nothing", "the completion ends during the thinking")
    if not spoken.strip():
        return Answer("", "nothing", "the completion is empty" if not text.strip() else "nothing follows the thinking")
    if callable(extraction):
        found = extraction(spoken).strip()
        return Answer(found, "whole") if found else Answer("", "nothing", "the extraction function found no answer")
    return _only(spoken, extraction)


@lru_cache(maxsize=4096)
def bare_reference(reference: str) -> str:
    r"""Return the final answer of a worked solution that marks one, such as "… #### 72" or `… \boxed{72}`.

    Other references are returned unchanged. Data sets such as GSM8K and MATH hold whole solutions.
    """
    marked = "\\boxed" in reference or "\\fbox" in reference or _FOUR_HASHES.search(reference) is not None
    return extract_answer(reference).text or reference if marked else reference


def check_extraction(extraction: object) -> None:
    """Raise InvalidRequest unless the argument is a known value of `Extraction` or a function."""
    if not callable(extraction) and extraction not in _EXTRACTIONS:
        raise InvalidRequest(
            f"extraction={extraction!r}: give one of {', '.join(_EXTRACTIONS)}, or a function from string to string"
        )


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
    # An answer that is the whole text is prose, so grade it unchanged.
    text = found.strip() if position == "whole" else tidied(found)
    return Answer(text, position) if text else Answer("", "nothing", f"the {position} answer is empty")
