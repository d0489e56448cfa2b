"""The last message of a chat."""

from collections.abc import Mapping, Sequence
from typing import Any

_SPEAKERS = ("assistant", "model", "ai", "gpt")
_ASKERS = ("user", "human")  # no set: what stands in a post's role may have no hash


def last_message(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of the last message of the assistant; empty where it wrote none.

    Messages without a role count as the assistant's. A message's content is a text, nothing (a call of a tool), or
    parts, of which those with a text are read.
    """
    for message in reversed(messages):
        if message.get("role", "assistant") in _SPEAKERS:
            return message_text(message)
    return ""


def last_question(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of the last message of the user; empty where there is none."""
    for message in reversed(messages):
        if message.get("role") in _ASKERS:
            return message_text(message)
    return ""


def message_text(message: Mapping[str, Any]) -> str:
    """The text of a message, its parts joined."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    texts = (part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | Mapping))
    return "".join(text for text in texts if isinstance(text, str))
