"""Where thinking ends and the answer begins."""

import re

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|seed:think"
# As models of today write it: tags, Kimi's triangles, Mistral's brackets, Phi's and OpenThinker's tokens.
_END = re.compile(rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|<\|end_of_thought\|>|<\|/think\|>", re.IGNORECASE)
_START = re.compile(rf"<(?:{_NAMES})>|◁think▷|\[THINK\]|<\|begin_of_thought\|>|<\|think\|>", re.IGNORECASE)
# gpt-oss: channels, of which the last "final" one is spoken.
_CHANNEL = re.compile(r"<\|channel\|>(\w{1,20})[^<\n]{0,200}<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|start|call)\|>")


def after_thinking(text: str) -> str | None:
    """What a model says when it has thought; None where it still thinks when the text ends.

    A text without marks is all spoken. An end without a start is taken for one: chat templates write the start into the
    prompt.
    """
    if (channels := list(_CHANNEL.finditer(text))) != []:
        return _final_channel(text, channels)
    spoken = text
    for end in _END.finditer(text):
        spoken = text[end.end() :]
    if (start := _START.search(spoken)) is None:
        return spoken
    before = spoken[: start.start()]
    # It began to think (again) and did not end: what it had said before is no final answer unless thinking came last.
    return None if not before.strip() or spoken is text else before


def _final_channel(text: str, channels: list[re.Match[str]]) -> str | None:
    last = channels[-1]
    if last[1] != "final":
        return None
    spoken = text[last.end() :]
    end = _CHANNEL_END.search(spoken)
    return spoken[: end.start()] if end else spoken
