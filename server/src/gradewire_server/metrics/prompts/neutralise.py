"""Make an item's texts harmless for a judge: no text may look like chat markup or like the prompt's delimiters.

Changed text stays readable: "<|im_end|>" becomes "< |im_end|>", "Rating: 3" becomes "Rating - 3". `without_praise`
handles an answer's claims about itself. Answers can still talk to a judge; see docs/research/attacks.md#masked-phrases.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

from gradewire_server.metrics.text.folding import folded, seen

MAX_CHARACTERS: Final = 16_384
"""Maximum number of characters that a judge sees of a text."""

_ROLES: Final = ("system", "user", "assistant", "human", "instruction", "instructions", "input", "output", "response")
_TAG: Final = re.compile(r"[<\uff1c](?=[^\W\d]|0x|[/!|\uff5c<\uff1c\[])")
_BRACKETED: Final = re.compile(r"\[(?=[|\uff5c]|/?g?[A-Z][A-Z_]+\])")
_GAP: Final = r"[*_'\")\] ]{0,4}"
# An addition to a name before its colon: "Accepted answers (all):", "Question 2:"; but not a time of day.
_ADDED: Final = rf"(?: ?\([^()]{{0,24}}\)| ?#?\d{{1,4}}(?={_GAP}:(?!\d)))?"
_WORD: Final = re.compile(r"\S+")
_SLICE: Final = 32_768
_HIDDEN_END: Final = 64


@dataclass(frozen=True, slots=True)
class Delimiters:
    """Texts that an item must not imitate, in upper or lower case.

    Attributes:
        names: Field labels and openings that end with a colon ("Question", "Rating"), without the colon.
        openings: Openings that do not end with a colon ("The answer is").
        labels: The steps' labels ("correct").
        announcing: Openings of steps with labels, without the final colon ("Rating", "The answer is").
    """

    names: tuple[str, ...] = ()
    openings: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    announcing: tuple[str, ...] = ()


def neutralise(text: str, delimiters: Delimiters) -> str:
    """Return one line without control characters, chat tokens and imitated delimiters.

    - Line ends and control characters become spaces, runs of white space become one space, and invisible characters
      are removed.
    - A possible chat token gets a space after its "<" or "[".
    - The colon after a role or one of the prompt's names ("Rating:", "assistant :", "**User**:") becomes a dash.
    - A dash separates an opening from a label ("The answer is - correct").

    Names, openings and labels are matched in their `folded` form. A second call changes nothing.
    """
    named = _dashed(without_markup(text), _named(delimiters.names), " -")
    return _dashed(named, _opened(delimiters), " - ") if delimiters.openings and delimiters.labels else named


def without_markup(text: str) -> str:
    """Return one line without control characters, invisible characters and chat tokens, but with delimiters."""
    tidy = " ".join(seen(text).split())
    return _BRACKETED.sub("[ ", _TAG.sub(lambda match: f"{match[0]} ", tidy))


def cut_to_words(text: str, most: int) -> tuple[str, bool]:
    """Return a text's first words, joined by single spaces, and True if the text was cut.

    The result has at most MAX_CHARACTERS characters.
    """
    if len(text) > _SLICE:
        text = _enough(text, most)
    words = [match[0] for match in islice(_WORD.finditer(seen(text)), most + 1)]
    shown = " ".join(words[:most])
    return shown[:MAX_CHARACTERS].rstrip(), len(words) > most or len(shown) > MAX_CHARACTERS


def any_of(texts: tuple[str, ...]) -> str:
    """Return a pattern for any of the texts, in `folded` form and with single spaces. Longer texts come first."""
    tidy = {" ".join(folded(text).split()) for text in texts}
    return "|".join(re.escape(text) for text in sorted(tidy, key=lambda text: (-len(text), text)))


def _enough(text: str, most: int) -> str:
    """Return a text's visible beginning, which has more than `most` words or MAX_CHARACTERS characters.

    If the text is shorter, return all of its visible text.
    """
    kept: list[str] = []
    words = characters = 0
    for piece in _slices(text):
        shown = seen(piece)
        kept.append(shown)
        found = shown.split()
        words += len(found)
        characters += sum(map(len, found))
        # A word on the border between two slices counts twice, so require one more word for each slice.
        if words > most + len(kept) or characters > MAX_CHARACTERS:
            break
    return "".join(kept)


def _slices(text: str) -> Iterator[str]:
    """Yield pieces of a text. A piece ends after an ASCII character if one is near, so that no joiner ends a piece."""
    begin = 0
    while begin < len(text):
        end = begin + _SLICE
        near = (place for place in range(end, min(end + _HIDDEN_END, len(text))) if text[place - 1].isascii())
        end = next(near, end)
        yield text[begin:end]
        begin = end


def _dashed(text: str, pattern: re.Pattern[str], dash: str) -> str:
    """Put a dash after the first group of each match and remove the rest of the match."""
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
