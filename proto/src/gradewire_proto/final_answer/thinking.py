"""The spoken part of a completion: after the thinking, without special tokens. Searches take linear time."""

import re
from typing import Final

from gradewire_proto.final_answer.clauses import Span, trimmed
from gradewire_proto.final_answer.words import any_of

_NAMES: Final = (
    "think|thinking|thought|thoughts|reasoning|reflection|seed:think|scratchpad|analysis|rationale|cot|"
    "inner_monologue|internal_monologue|chain_of_thought"
)
# Marks that models put around thinking: tags, Kimi's triangles, Mistral's brackets, Phi's and OpenThinker's tokens.
_THINKING_END: Final = re.compile(
    rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|<\|end_of_thought\|>|<\|/think(?:ing)?\|>", re.IGNORECASE
)
_START: Final = re.compile(
    rf"<(?:{_NAMES})>|◁think▷|\[THINK\]|<\|begin_of_thought\|>|<\|think(?:ing)?\|>", re.IGNORECASE
)
# gpt-oss writes into channels. The last channel contains the answer if its name is "final".
_CHANNEL: Final = re.compile(r"<\|channel\|>(\w{1,20})[^<\n]{0,200}<\|message\|>")
_CHANNEL_END: Final = re.compile(r"<\|(?:end|return|start|call)\|>")
# The same channels where a decoder left out the special tokens.
_BARE_CHANNEL: Final = re.compile(r"^(?:assistant)?analysis(?=\S)")
_BARE_FINAL: Final = "assistantfinal"

_ASSISTANT: Final = (
    r"<\|im_start\|>\s?assistant|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model|"
    r"<\|start\|>assistant(?:<\|message\|>)?|<｜Assistant｜>|<\|assistant\|>|\[/INST\]|<\|ASSISTANT\|>|"
    r"<\|CHATBOT_TOKEN\|>|<\|start_of_role\|>assistant<\|end_of_role\|>"
)
_OTHER: Final = (
    r"<\|im_start\|>\s?(?:user|system|tool)|<\|start_header_id\|>(?:user|system|ipython)<\|end_header_id\|>|"
    r"<start_of_turn>user|<｜User｜>|<\|user\|>|<\|system\|>|\[INST\]|<\|start_of_role\|>user<\|end_of_role\|>|"
    r"<\|USER_TOKEN\|>"
)
_END: Final = (
    r"<\|im_end\|>|<\|eot_id\|>|<\|endoftext\|>|<\|end_of_text\|>|<\|end\|>|<\|eom_id\|>|</s>|<end_of_turn>|<eos>|"
    r"<\|return\|>|<\|END_OF_TURN_TOKEN\|>|<\|endofprompt\|>|<\|eos\|>|<\|im_sep\|>|"
    r"<｜end▁of▁sentence｜>|<pad>|<\|pad\|>|<\|end_of_solution\|>|\[EOS\]|<\|fim_end\|>"
)
_TOKEN: Final = re.compile(
    rf"(?P<assistant>{_ASSISTANT})|(?P<other>{_OTHER})|(?P<end>{_END})|"
    r"(?P<start><s>(?=\s|[A-Z0-9<\[])|<bos>|<\|begin_of_text\|>|<\|begin_of_solution\|>|<\|startoftext\|>|"
    r"<\|message\|>)"
)
_SPEAKER: Final = re.compile(
    rf"\s{{0,8}}[*_#]{{0,4}}(?:{any_of('speaker')})[*_]{{0,2}}\s?[:：][*_]{{0,2}}\s", re.IGNORECASE
)
_ASKER: Final = re.compile(
    rf"\n[ \t]{{0,4}}[*_#]{{0,4}}[ \t]?(?:{any_of('asker')})\s?\d{{0,3}}[*_]{{0,2}}\s?[:：]",
    re.IGNORECASE,
)


def after_thinking(text: str) -> str | None:
    """Return the text after a model's thinking; None if the text ends during the thinking.

    Text without marks has no thinking. An end mark without a start mark also ends thinking, because many chat templates
    put the start mark into the prompt.
    """
    span = spoken(text)
    return None if span is None else text[span[0] : span[1]]


def spoken(text: str) -> Span | None:
    """Return the span of the text after a model's thinking; None if the text ends during the thinking."""
    if (channels := list(_CHANNEL.finditer(text))) != []:
        return _final_channel(text, channels[-1])
    if _BARE_CHANNEL.match(text) is not None:
        final = text.rfind(_BARE_FINAL)
        return (final + len(_BARE_FINAL), len(text)) if final >= 0 else None
    end = max((mark.end() for mark in _THINKING_END.finditer(text)), default=0)
    start = _START.search(text, end)
    if start is None:
        return end, len(text)
    # The model started to think and did not finish. Text before that is an answer only if earlier thinking precedes it.
    return (end, start.start()) if end and text[end : start.start()].strip() else None


def _final_channel(text: str, last: re.Match[str]) -> Span | None:
    if last[1] != "final":
        return None
    end = _CHANNEL_END.search(text, last.end())
    return last.end(), end.start() if end else len(text)


def turn(text: str, left: int, right: int) -> Span:
    """Return the span of the assistant's turn, without special tokens, roles and invented turns around it.

    If the span begins with the user's turn, as in a transcript, return the assistant's last turn; otherwise the first,
    because a model that does not stop invents further questions.
    """
    pieces: list[Span] = []
    spoken_by_assistant = True
    transcript = False
    start = left
    for token in _TOKEN.finditer(text, left, right):
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


def without_next_question(text: str, left: int, right: int, is_answered: re.Pattern[str]) -> int:
    """Return the end of the text before a question that a model invented after its answer; `right` by default.

    Args:
        text: The text that contains the span.
        left: Start of the spoken part.
        right: End of the spoken part.
        is_answered: Matches where a text contains the mark of an answer.
    """
    asked = _ASKER.search(text, left, right)
    if asked is None:
        return right
    before = text[left : asked.start()].strip()
    if before and (("\n" not in before and len(before) <= 60) or is_answered.search(before)):
        return asked.start()
    return right
