"""The final answer of a completion: what stands behind the thinking, in the last box, tag or phrase, or all of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from gradewire.errors import InvalidRequest
from gradewire.rewards._extraction.boxes import last_box
from gradewire.rewards._extraction.chat import last_message
from gradewire.rewards._extraction.phrases import last_phrase
from gradewire.rewards._extraction.thinking import after_thinking
from gradewire.rewards._extraction.tidy import tidied
from gradewire.rewards._extraction.wrappers import last_tagged

Completion: TypeAlias = str | Sequence[Mapping[str, Any]]
"""What a model wrote: a text, or the messages of a chat."""

Extraction: TypeAlias = Literal["auto", "boxed", "tagged", "phrase", "whole"]
"""Where an answer is looked for; "whole" is all that stands behind the thinking."""

Place: TypeAlias = Literal["boxed", "tagged", "phrase", "whole", "nothing"]
"""Where an answer was found."""

_PLACES = get_args(Extraction)
# Answers stand at the end; what is read of a completion is bounded, so that a hostile one costs milliseconds.
MAX_READ_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found.

    Attributes:
        text: The answer; empty where there is none.
        place: Where it was found; "nothing" where there is none.
        reason: Why there is none; else empty.
    """

    text: str
    place: Place
    reason: str = ""


Extractor: TypeAlias = Callable[[str], str]
"""From what stands behind the thinking to the answer; empty where there is none."""


def extract_answer(completion: Completion, extraction: Extraction | Extractor = "auto") -> Answer:
    r"""Finds the final answer of a completion; never raises for what a model wrote, and takes linear time.

    Of a chat the last message of the assistant is read. What stands before the end of thinking (`</think>` and other
    usual marks) is left out; thinking that never ends has no answer. Of what is left, "auto" takes in this order: the
    last `<answer>…</answer>`, and in it or in all of it the last `\boxed{…}`, else what follows the last "the answer
    is", "Answer:" or "####", else everything.

    Args:
        completion: A text, or messages with `role` and `content` (a text, or parts with `text`).
        extraction: Where to look, or a function of your own (of a module, where it is to be pickled).

    Raises:
        InvalidRequest: `extraction` is none of these.
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
    """Raises InvalidRequest for what names no place and cannot be called."""
    if not callable(extraction) and extraction not in _PLACES:
        raise InvalidRequest(
            f"extraction={extraction!r}: give one of {', '.join(_PLACES)}, or a function from text to text"
        )


def _auto(spoken: str) -> Answer:
    place: Place = "whole"
    text = spoken
    if (tagged := last_tagged(spoken)) is not None:
        text, place = tagged, "tagged"
    if (boxed := last_box(text)) is not None:
        text, place = boxed, "boxed"
    elif place == "whole" and (phrase := last_phrase(text)) is not None:
        text, place = phrase, "phrase"
    return _answer(text, place)


def _only(spoken: str, extraction: Extraction) -> Answer:
    if extraction == "boxed":
        found = last_box(spoken)
        return _answer(found, "boxed", r"no complete \boxed{…} was found")
    if extraction == "tagged":
        return _answer(last_tagged(spoken), "tagged", "no complete <answer>…</answer> was found")
    if extraction == "phrase":
        return _answer(last_phrase(spoken), "phrase", 'no "the answer is …" was found')
    return _answer(spoken, "whole")


def _answer(found: str | None, place: Place, missing: str = "") -> Answer:
    if found is None:
        return Answer("", "nothing", missing)
    # A whole answer is prose, which is graded as it stands.
    text = found.strip() if place == "whole" else tidied(found)
    return Answer(text, place) if text else Answer("", "nothing", f"the answer that is {place} is empty")
