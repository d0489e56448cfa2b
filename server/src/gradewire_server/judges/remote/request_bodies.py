"""Request bodies that are assembled from bytes, because all of a metric's items share most of their bytes."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from gradewire_server.domain.judge import JudgePrompt, Turn
from gradewire_server.judges.prompt_texts import Same, harmless
from gradewire_server.judges.remote.http_client import json_bytes
from gradewire_server.judges.remote.openai_dialect import Dialect
from gradewire_server.judges.remote.server import Question

_MAX_FRAMES: Final = 64
_ITEM: Final = "\ue000the item's text\ue000"
"""Stands for the item's text in a body. A prompt file could contain it, so its place is checked."""

_Frame: TypeAlias = tuple[bytes, bytes]
"""The bytes before and behind the item's text."""
_Own: TypeAlias = tuple[str, tuple[str, ...], int, tuple[str, ...], bool]
"""A question's opening, options, maximum number of tokens, stops, and whether it gets one token."""


class RequestBodies:
    """The bodies of one server's requests.

    Args:
        render: Function that returns a body for a question, a model and a dialect. It copies the item's text, made
            `harmless`, to one place.
    """

    def __init__(self, model: str, render: Callable[[Question, str, Dialect], dict[str, object]]) -> None:
        self._model = model
        self._render = render
        self._frame = lru_cache(maxsize=_MAX_FRAMES)(self._rendered_frame)

    def body(self, question: Question, dialect: Dialect) -> bytes:
        """Return the body of a question's request."""
        prompt = question.prompt
        frame = None
        if not prompt.images:
            own = (prompt.opening, question.options, question.max_tokens, question.stop, question.one_token)
            frame = self._frame(Same(prompt.fixed), own, dialect)
        if frame is None:
            return json_bytes(self._render(question, self._model, dialect))
        before, behind = frame
        text = harmless(prompt.lead + prompt.prediction + prompt.tail)
        return b"".join((before, json.dumps(text, ensure_ascii=False)[1:-1].encode(), behind))

    def _rendered_frame(self, fixed: Same[tuple[Turn, ...]], own: _Own, dialect: Dialect) -> _Frame | None:
        """Return the bytes around the item's text, or None if its place is not clear."""
        opening, options, max_tokens, stop, one_token = own
        prompt = JudgePrompt(fixed.it, lead=_ITEM, opening=opening)
        question = Question(prompt, options, max_tokens, stop, one_token=one_token)
        parts = json_bytes(self._render(question, self._model, dialect)).split(_ITEM.encode())
        return (parts[0], parts[1]) if len(parts) == 2 else None
