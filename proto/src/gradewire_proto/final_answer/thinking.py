"""The text after a model's thinking. Searches take linear time, and the import compiles little."""

import re
from typing import Final

from gradewire_proto.final_answer.types import Span

_NAMES: Final = (
    *("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "seed:think", "scratchpad", "analysis"),
    *("réflexion", "réflexions", "pensée", "raisonnement", "gedanken", "überlegung", "razonamiento", "pensamiento"),
    *("ragionamento", "思考", "rationale", "cot", "inner_monologue", "internal_monologue", "chain_of_thought"),
)
# Marks that models put around thinking: tags, Kimi's triangles, Mistral's brackets, Phi's and OpenThinker's tokens.
# They are searched one by one: a regular expression takes ten times as long where a text has many "<".
_THINKING_ENDS: Final = (
    *(f"</{name}>" for name in _NAMES),
    *("◁/think▷", "[/think]", "[/thinking]", "<|end_of_thought|>", "<|/think|>", "<|/thinking|>", "<|end_thinking|>"),
)
_THINKING_STARTS: Final = (
    *(f"<{name}>" for name in _NAMES),
    *("◁think▷", "[think]", "[thinking]", "<|begin_of_thought|>", "<|think|>", "<|thinking|>", "<|start_thinking|>"),
)
# gpt-oss writes into channels. The last channel contains the answer if its name is "final".
_CHANNEL: Final = re.compile(r"<\|channel\|>(\w{1,20})[^<\n]{0,200}<\|message\|>")
_CHANNEL_END: Final = re.compile(r"<\|(?:end|return|start|call)\|>")
# The same channels where a decoder left out the special tokens.
_BARE_CHANNEL: Final = re.compile(r"^(?:assistant)?analysis(?=\S)")
_MOST_CHANNELS: Final = 64
_BARE_FINAL: Final = "assistantfinal"


def after_thinking(text: str) -> str | None:
    """Return the text after a model's thinking; None if the text ends during the thinking.

    Text without marks has no thinking. An end mark without a start mark also ends thinking, because many chat templates
    put the start mark into the prompt.
    """
    span = spoken(text)
    return None if span is None else text[span[0] : span[1]]


def spoken(text: str) -> Span | None:
    """Return the span of the text after a model's thinking; None if the text ends during the thinking."""
    channel = text.rfind("<|channel|>")
    for _ in range(_MOST_CHANNELS):
        if channel < 0:
            break
        if (last := _CHANNEL.match(text, channel)) is not None:
            return _final_channel(text, last)
        channel = text.rfind("<|channel|>", 0, channel)
    if _BARE_CHANNEL.match(text) is not None:
        final = text.rfind(_BARE_FINAL)
        return (final + len(_BARE_FINAL), len(text)) if final >= 0 else None
    lowered = text.lower()
    if len(lowered) != len(text):  # "İ" becomes two characters
        lowered = text
    end = max((place + len(mark) for mark in _THINKING_ENDS if (place := lowered.rfind(mark)) >= 0), default=0)
    start = min((place for mark in _THINKING_STARTS if (place := lowered.find(mark, end)) >= 0), default=-1)
    if start < 0:
        return end, len(text)
    # The model started to think and did not finish. Text before that is an answer only if earlier thinking precedes it.
    return (end, start) if end and text[end:start].strip() else None


def _final_channel(text: str, last: re.Match[str]) -> Span | None:
    if last[1] != "final":
        return None
    end = _CHANNEL_END.search(text, last.end())
    return last.end(), end.start() if end else len(text)
