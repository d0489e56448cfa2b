"""Which tokens stand for the options of a choice.

An option follows the turn's opening; where the opening's last token would melt into it (": 3" is ":", " ", "3" to one
tokenizer, " yes" one token), comparing the options' own first tokens would compare the wrong thing. So opening and
option are tokenized together: what all options begin with belongs to the prompt, the first token that differs is the
label.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradewire_server.domain.quoting import quoted


class LabelsError(Exception):
    """The options cannot be told apart by one token; the message says which."""


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """Token ids.

    Attributes:
        shared: What the turn begins with, whichever option follows.
        tokens: One per option, all different.
    """

    shared: tuple[int, ...]
    tokens: tuple[int, ...]


def find_labels(encode: Callable[[str], Sequence[int]], opening: str, options: Sequence[str]) -> LabelTokens:
    """Tokens of `options` behind `opening` and one blank, or at once where the opening is empty.

    Args:
        encode: Plain text to token ids.
        opening: Begin of the judge's turn.
        options: Two or more.

    Raises:
        LabelsError: Fewer than two options, or two that begin with the same token (or one with nothing) where they part
            from the others.
    """
    if len(options) < 2:
        raise LabelsError("a choice needs two options or more")
    begin = f"{opening} " if opening else ""
    ids = [tuple(encode(begin + option)) for option in options]
    shared = 0
    while all(len(each) > shared for each in ids) and len({each[shared] for each in ids}) == 1:
        shared += 1
    seen: dict[int, str] = {}
    for option, each in zip(options, ids, strict=True):
        if len(each) == shared:
            raise LabelsError(f"option {quoted(option)} is the begin of another one to this judge")
        other = seen.setdefault(each[shared], option)
        if other is not option:
            raise LabelsError(f"options {quoted(other)} and {quoted(option)} begin with the same token of this judge")
    return LabelTokens(ids[0][:shared], tuple(seen))
