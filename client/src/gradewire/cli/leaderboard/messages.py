"""Conversations as arenas keep them: lists of messages, or of turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ASKING = frozenset({"user", "human"})
_ANSWERING = frozenset({"assistant", "model", "gpt", "bot"})
_DEPTH = 4


def user_turns(said: Any) -> str:
    """What people said in a conversation, or the text itself; "" where nothing can be read."""
    return "\n".join(filter(None, _texts(said, _ASKING)))


def answer_at(said: Any, turn: int = 0) -> str:
    """What the model said at a turn of a conversation, or the text itself; "" where nothing can be read.

    Turns count from 1; with 0, and where a conversation has no such turn, it is the last one.
    """
    answers = _texts(said, _ANSWERING)
    if 0 < turn <= len(answers):
        return answers[turn - 1]
    return next(filter(None, reversed(answers)), "")


def _texts(said: Any, roles: frozenset[str]) -> list[str]:
    if not isinstance(said, list):
        return [_content(said)]
    return [
        _content(message)
        for message in said
        if not isinstance(message, Mapping) or "role" not in message or str(message["role"]).lower() in roles
    ]


def _content(message: Any, depth: int = 0) -> str:
    """The text of a message: a text, {"content": …}, or a list of parts."""
    if isinstance(message, str):
        return message
    if depth >= _DEPTH:
        return ""
    if isinstance(message, Mapping):
        inner = next((message[key] for key in ("content", "text", "value") if key in message), "")
        return _content(inner, depth + 1)
    if isinstance(message, list):
        return "\n".join(filter(None, (_content(part, depth + 1) for part in message)))
    return str(message) if isinstance(message, int | float) and not isinstance(message, bool) else ""
