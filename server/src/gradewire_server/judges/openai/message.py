"""A message's text and thoughts, whether its content is one text or a list of parts."""

from collections.abc import Mapping
from typing import Any, Final

_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
"""Of a message, where servers put what they have taken out of its text themselves."""


def text_of(message: Mapping[str, Any]) -> str | None:
    """The text; None where the message has none.

    Of a list of parts ([{"type": "thinking", …}, {"type": "text", "text": …}]), those of the kind text together.
    """
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = [each["text"] for each in _parts(content, "text") if isinstance(each.get("text"), str)]
    return "".join(texts) if texts else None


def has_thoughts(message: Mapping[str, Any]) -> bool:
    """Whether the message has thoughts beside its text: in a field of their own, or as parts."""
    beside = any(isinstance(message.get(name), str) and message[name].strip() for name in _FIELDS)
    return beside or any(each.get("thinking") for each in _parts(message.get("content"), "thinking"))


def _parts(content: object, kind: str) -> list[Mapping[str, Any]]:
    parts = content if isinstance(content, list) else []
    return [each for each in parts if isinstance(each, dict) and each.get("type", "text") == kind]
