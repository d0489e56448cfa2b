"""The assistant's turn in a completion, without special tokens and invented turns. Searches take linear time."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from gradewire_proto.final_answer.clauses import trimmed
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of

_ASSISTANT: Final = (
    r"<\|im_start\|>\s?assistant|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model|"
    r"<\|start\|>assistant(?:<\|message\|>)?|<｜Assistant｜>|<\|assistant\|>|\[/INST\]|<\|ASSISTANT\|>|"
    r"(?:<\|START_OF_TURN_TOKEN\|>)?<\|CHATBOT_TOKEN\|>|<\|start_of_role\|>assistant<\|end_of_role\|>|<\|START_RESPONSE\|>"
)
_OTHER: Final = (
    r"<\|im_start\|>\s?(?:user|system|tool)|<\|start_header_id\|>(?:user|system|ipython)<\|end_header_id\|>|"
    r"<start_of_turn>user|<｜User｜>|<\|user\|>|<\|system\|>|\[INST\]|<\|start_of_role\|>user<\|end_of_role\|>|"
    r"<\|USER_TOKEN\|>"
)
_END: Final = (
    r"<\|im_end\|>|<\|eot_id\|>|<\|endoftext\|>|<\|end_of_text\|>|<\|end\|>|<\|eom_id\|>|</s>|<end_of_turn>|<eos>|"
    r"<\|return\|>|<\|END_OF_TURN_TOKEN\|>|<\|endofprompt\|>|<\|eos\|>|<\|im_sep\|>|"
    r"<｜end▁of▁sentence｜>|<pad>|<\|pad\|>|<\|end_of_solution\|>|\[EOS\]|<\|fim_end\|>|<\|END_RESPONSE\|>"
)
_TOKEN: Final = re.compile(
    rf"(?P<assistant>{_ASSISTANT})|(?P<other>{_OTHER})|(?P<end>{_END})|"
    r"(?P<start><s>(?=\s|[A-Z0-9<\[])|<bos>|<\|begin_of_text\|>|<\|begin_of_solution\|>|<\|startoftext\|>|"
    r"<\|message\|>)"
)
_STRUCK: Final = re.compile(r"<s>[^<>\n]{1,60}</s>(?=[ \t]{0,4}[^\s<][^\n]{0,120}\s*\Z)")
"""The element of HTML that strikes a text out, where the rest of a short line replaces it; otherwise special tokens."""
_NEAR: Final = 4_000
"""Characters at each end of a text in which all special tokens and further questions are searched."""
_COMMON_ENDS: Final = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>", "<end_of_turn>", "<|end|>")
_SPEAKER: Final = re.compile(
    rf"\s{{0,8}}[*_#]{{0,4}}(?:{any_of('speaker')})[*_]{{0,2}}\s?[:：][*_]{{0,2}}\s", re.IGNORECASE
)
_ASKER: Final = re.compile(
    rf"\n[ \t]{{0,4}}[*_#]{{0,4}}[ \t]?(?:{any_of('asker')})\s?\d{{0,3}}[*_]{{0,2}}\s?[:：]",
    re.IGNORECASE,
)


def turn(text: str, left: int, right: int) -> Span:
    """Return the span of the assistant's turn, without special tokens, roles and invented turns around it.

    If the span begins with the user's turn, as in a transcript, return the assistant's last turn; otherwise the first,
    because a model that does not stop invents further questions.
    """
    pieces: list[Span] = []
    spoken_by_assistant = True
    transcript = False
    start = left
    struck = [each.span() for each in _STRUCK.finditer(text, left, min(right, left + _NEAR))] if "</s>" in text else []
    for token in _tokens(text, left, right):
        if token[0] in {"<s>", "</s>"} and any(a <= token.start() < b for a, b in struck):
            continue
        piece = trimmed(text, start, token.start())
        if piece[0] < piece[1] and spoken_by_assistant:
            pieces.append(piece)
        if token["other"]:
            transcript = transcript or not pieces
            spoken_by_assistant = False
        elif token["assistant"]:
            spoken_by_assistant = True
        if token["end"] and pieces and not transcript:
            break
        start = token.end()
    else:
        piece = trimmed(text, start, right)
        if piece[0] < piece[1] and spoken_by_assistant:
            pieces.append(piece)
    if not pieces:
        return right, right
    left, right = pieces[-1 if transcript else 0]
    if (speaker := _SPEAKER.match(text, left, right)) is not None:
        left = speaker.end()
    return trimmed(text, left, right)


def _tokens(text: str, left: int, right: int) -> Iterator[re.Match[str]]:
    """Yield the special tokens near both ends of a span, and the first common end of a turn between them."""
    first = min(right, left + _NEAR)
    last = max(first, right - _NEAR)
    yield from _TOKEN.finditer(text, left, first)
    far = min((place for mark in _COMMON_ENDS if (place := text.find(mark, first, last)) >= 0), default=-1)
    if far >= 0 and (token := _TOKEN.match(text, far, right)) is not None:
        yield token
    yield from _TOKEN.finditer(text, last, right)


def without_next_question(text: str, left: int, right: int, is_answered: Callable[[str], bool]) -> int:
    """Return the end of the text before a question that a model invented after its answer; `right` by default.

    Args:
        text: The text that contains the span.
        left: Start of the spoken part.
        right: End of the spoken part.
        is_answered: Returns True if a text contains a phrase that announces an answer.
    """
    first = min(right, left + _NEAR)
    asked = _ASKER.search(text, left, first) or _ASKER.search(text, max(first, right - _NEAR), right)
    if asked is None:
        return right
    before = text[left : asked.start()].strip()
    if re.search(r"\w", before) and (("\n" not in before and len(before) <= 60) or is_answered(before)):
        return asked.start()
    return right
