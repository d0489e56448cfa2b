"""Texts of an item made harmless for a judge: nothing in them looks like chat markup or like our delimiters.

What is changed stays readable: "<|im_end|>" becomes "< |im_end|>", "Rating: 3" becomes "Rating - 3". What an answer
says about itself is another matter (`without_praise`). A judge can still be talked to; docs/research/hostile-answers.md
says what that means.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

from gradewire_server.metrics.text.folding import folded, seen

MAX_CHARACTERS: Final = 16_384
"""Characters of a text that are shown: a thousand words have half as many, a single word may have a million."""

_ROLES: Final = ("system", "user", "assistant", "human", "instruction", "instructions", "input", "output", "response")
_TAG: Final = re.compile(r"[<\uff1c](?=[^\W\d]|0x|[/!|\uff5c<\uff1c\[])")
_BRACKETED: Final = re.compile(r"\[(?=[|\uff5c]|/?g?[A-Z][A-Z_]+\])")
_GAP: Final = r"[*_'\")\] ]{0,4}"
# "Accepted answers (all):", "Question 2:"; but no time of day.
_ADDED: Final = rf"(?: ?\([^()]{{0,24}}\)| ?#?\d{{1,4}}(?={_GAP}:(?!\d)))?"
_WORD: Final = re.compile(r"\S+")
_SLICE: Final = 32_768
_HIDDEN_END: Final = 64


@dataclass(frozen=True, slots=True)
class Delimiters:
    """What a text must not imitate, in upper or lower case.

    Attributes:
        names: Field labels and openings that stand before a colon ("Question", "Rating"), without it.
        openings: Openings without a colon ("The answer is"), behind which labels may follow ("correct").
        announcing: Openings that labels follow, without a colon ("Rating", "The answer is").
    """

    names: tuple[str, ...] = ()
    openings: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    announcing: tuple[str, ...] = ()


def neutralise(text: str, delimiters: Delimiters) -> str:
    """Return one line without control characters, chat tokens and imitated delimiters; doing it twice changes nothing.

    - Line ends and control characters become spaces, runs of white space one space; what is invisible goes.
    - A space goes into what may be a chat token, behind its "<" or "[".
    - The colon behind a name of the prompt or a role's ("Rating:", "assistant :", "**User**:") becomes a dash.
    - A dash goes between an opening and a label ("The answer is - correct").

    Names, openings and labels are found in their `folded` form, in time in proportion to the text's length.
    """
    named = _dashed(without_markup(text), _named(delimiters.names), " -")
    return _dashed(named, _opened(delimiters), " - ") if delimiters.openings and delimiters.labels else named


def without_markup(text: str) -> str:
    """Return the first half of `neutralise`: one line, without control characters, invisible ones and chat tokens."""
    tidy = " ".join(seen(text).split())
    return _BRACKETED.sub("[ ", _TAG.sub(lambda match: f"{match[0]} ", tidy))


def cut_to_words(text: str, most: int) -> tuple[str, bool]:
    """Return the first words of a text, with single spaces between them, and whether there are more.

    They have no more than MAX_CHARACTERS characters; the rest is not even looked at.
    """
    if len(text) > _SLICE:
        text = _enough(text, most)
    words = [match[0] for match in islice(_WORD.finditer(seen(text)), most + 1)]
    shown = " ".join(words[:most])
    return shown[:MAX_CHARACTERS].rstrip(), len(words) > most or len(shown) > MAX_CHARACTERS


def any_of(texts: tuple[str, ...]) -> str:
    """Return a pattern for any of the texts as `folded`, the longest first; their white space is single spaces."""
    tidy = {" ".join(folded(text).split()) for text in texts}
    return "|".join(re.escape(text) for text in sorted(tidy, key=lambda text: (-len(text), text)))


def _enough(text: str, most: int) -> str:
    """Return the begin of a text, with more words or characters than are shown, or all that is seen of it."""
    kept: list[str] = []
    words = characters = 0
    for piece in _slices(text):
        shown = seen(piece)
        kept.append(shown)
        found = shown.split()
        words += len(found)
        characters += sum(map(len, found))
        # A word on a border of slices counts twice, so one more slice than words.
        if words > most + len(kept) or characters > MAX_CHARACTERS:
            break
    return "".join(kept)


def _slices(text: str) -> Iterator[str]:
    """Return pieces that end, if there is one near, behind a character of ASCII, where no joiner has a say."""
    begin = 0
    while begin < len(text):
        end = begin + _SLICE
        near = (place for place in range(end, min(end + _HIDDEN_END, len(text))) if text[place - 1].isascii())
        end = next(near, end)
        yield text[begin:end]
        begin = end


def _dashed(text: str, pattern: re.Pattern[str], dash: str) -> str:
    """Put a dash behind the first group of each match; what else the match holds goes."""
    pieces: list[str] = []
    begin = 0
    for match in pattern.finditer(folded(text)):
        pieces += (text[begin : match.end(1)], dash)
        begin = match.end()
    return "".join((*pieces, text[begin:])) if pieces else text


@lru_cache(maxsize=256)
def _named(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])((?:{any_of((*names, *_ROLES))}){_ADDED}){_GAP}:")


@lru_cache(maxsize=256)
def _opened(delimiters: Delimiters) -> re.Pattern[str]:
    openings, labels = any_of(delimiters.openings), any_of(delimiters.labels)
    return re.compile(rf"(?<![^\W_])({openings})[\W_]{{0,6}}(?=(?:{labels})(?![^\W_]))")
