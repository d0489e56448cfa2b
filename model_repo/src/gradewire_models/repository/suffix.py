"""Cut a text that is too long for an encoder, so that the encoder's suffix stays."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Cut(NamedTuple):
    """The tokens to keep of a text with its suffix: those before `body_end`, and those from `tail_start` on.

    `truncated` is True if tokens between them are dropped.
    """

    body_end: int
    tail_start: int
    truncated: bool


def cut_before_suffix(ends: Sequence[int], special: Sequence[int], *, text_end: int, max_tokens: int) -> Cut:
    """Return the tokens to keep of prefix, text and suffix, which were tokenized together and without truncation.

    Together, because a tokenizer may join characters of the text and the suffix. The suffix begins with the first token
    that ends behind the text, and the special tokens at the end belong to it, even if it (a blank, for example) has no
    other token. These tokens always stay, so that the last token, which some models read alone, is the same for short
    and long texts.

    Args:
        ends: End of each token in the characters of prefix, text and suffix.
        special: 1 for tokens that the tokenizer adds, 0 for others.
        text_end: Number of characters of prefix and text.
        max_tokens: Maximum number of tokens to keep, above the suffix's number of tokens.
    """
    count = len(ends)
    closing = next((at for at in range(count, 0, -1) if not special[at - 1]), 0)
    tail = next((at for at in range(closing) if not special[at] and ends[at] > text_end), closing)
    room = max(0, max_tokens - (count - tail))
    return Cut(min(tail, room), tail, tail > room)


def suffixed_ids(tokenizer: "Tokenizer", text: str, *, prefix: str, suffix: str, max_tokens: int) -> list[int]:
    """Return the token ids of a text with prefix and suffix, at most `max_tokens`; the suffix's tokens always stay.

    The function switches the tokenizer's truncation and padding off.
    """
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encoding = tokenizer.encode(f"{prefix}{text}{suffix}")
    ends = [end for _, end in encoding.offsets]
    text_end = len(prefix) + len(text)
    cut = cut_before_suffix(ends, encoding.special_tokens_mask, text_end=text_end, max_tokens=max_tokens)
    return [*encoding.ids[: cut.body_end], *encoding.ids[cut.tail_start :]]
