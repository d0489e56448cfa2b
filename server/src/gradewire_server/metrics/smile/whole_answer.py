"""An answer that is longer than the encoder reads, to its end: in pieces that overlap.

The sentence term is that of the piece that comes closest, and windows in context are those of all pieces. A piece is
asked for when the one before it is known, since only its tokens tell how far the encoder got: so every piece is as long
as can be read, an item holds the vectors of one piece at a time, and others get their turn between two pieces.
"""

from collections.abc import Generator
from typing import Any, Final, Protocol

from gradewire_server.domain.needs import Embed, EmbedTokens, Need, Tier, TokenVectors, ask
from gradewire_server.domain.result import Failure
from gradewire_server.metrics.checks import is_blank
from gradewire_server.metrics.rounds import ask_together, is_cut
from gradewire_server.metrics.smile.closest_piece import ClosestPiece
from gradewire_server.metrics.smile.formula import Similarities, held_keywords
from gradewire_server.metrics.smile.parameters import SmileParameters
from gradewire_server.metrics.smile.rounds import gather
from gradewire_server.metrics.smile.texts import SmileTexts

MAX_PIECES: Final = 64
"""Pieces of an answer that are read; 2 000 English words are 15 or so for an encoder of 256 tokens."""
_OVERLAP: Final = 0.25
"""Share of a piece that the next one reads again, so that few windows stand in neither."""
_LAST: Final = 0.9
"""Least length of the last piece, of the one before: a few words alone would be compared as a short answer is."""
_AHEAD: Final = 1.5
"""Length of what the encoder is given, of what it read of the piece before: it leaves out what is too much."""
_LEAST_CHARACTERS: Final = 256
_WORD_CHARACTERS: Final = 64
"""Characters back in which a piece looks for the begin of a word."""


class Pieces(Protocol):
    """What is done with the pieces of an answer."""

    def look_at(self, tokens: TokenVectors, begin: int) -> None:
        """Takes in a piece; `tokens` are those of the text from character `begin` on."""


def gather_to_the_end(
    texts: SmileTexts, parameters: SmileParameters, *, end: int
) -> Generator[tuple[Need, ...], Any, Similarities | Failure]:
    """As `gather`, and of an answer that the encoder did not read to its end all other pieces too.

    Args:
        texts: The item's texts.
        parameters: Of preset `one_pass`.
        end: Characters of the answer that are read, at the most.
    """
    found = yield from gather(texts, parameters)
    if isinstance(found, Failure) or not found.truncated:
        return found
    answers = yield from ask_together(
        EmbedTokens(parameters.model, (texts.prediction,), Tier.PREDICTION),
        Embed(parameters.model, texts.asked_keywords, Tier.REFERENCE),
        Embed(parameters.model, texts.sentences, Tier.REFERENCE),
    )
    if isinstance(answers, Failure):
        return answers
    (first,), keywords, sentences = answers
    if not first.truncated:
        return found  # a reference was cut
    closest = ClosestPiece.of(texts, keywords.values, sentences.values)
    left = yield from read_pieces(texts.prediction[:end].rstrip(), parameters.model, first, closest)
    if isinstance(left, Failure):
        return left
    truncated = left or texts.windows.truncated or is_cut(keywords, sentences)
    return Similarities(closest.sentences.tolist(), {**held_keywords(texts), **closest.keywords()}, truncated)


def read_pieces(
    text: str, model: str, tokens: TokenVectors, pieces: Pieces
) -> Generator[tuple[Need, ...], Any, bool | Failure]:
    """Shows `pieces` all pieces; whether something was left unread.

    Args:
        text: As far as it is to be read.
        model: The encoder.
        tokens: Of the first piece.
        pieces: Looks at each.
    """
    begin = 0
    if not _read_to(tokens, 0):  # blanks before the answer filled all that the encoder looks at
        begin = len(text) - len(text.lstrip())
        answer = yield from ask(EmbedTokens(model, (text[begin:],), Tier.PREDICTION))
        if isinstance(answer, Failure):
            return answer
        (tokens,) = answer
    pieces.look_at(tokens, begin)
    read = _read_to(tokens, begin) if tokens.truncated else len(text)
    for _ in range(MAX_PIECES - 1):
        if read >= len(text):
            return False
        length = read - begin
        if not length:
            return True
        begin = _word_begin(text, int(min(read - _OVERLAP * length, len(text) - _LAST * length)), after=begin)
        piece = text[begin : begin + max(_LEAST_CHARACTERS, int(_AHEAD * length))]
        if is_blank(piece):
            read = begin + len(piece)
            continue
        answer = yield from ask(EmbedTokens(model, (piece,), Tier.PREDICTION))
        if isinstance(answer, Failure):
            return answer
        (tokens,) = answer
        pieces.look_at(tokens, begin)
        read = _read_to(tokens, begin) if tokens.truncated else begin + len(piece)
    return read < len(text)


def _read_to(tokens: TokenVectors, begin: int) -> int:
    """Where the last token ends that the encoder read of a piece."""
    return begin + int(tokens.offsets[:, 1].max(initial=0))


def _word_begin(text: str, at: int, *, after: int) -> int:
    """The begin of the word at a place or a little before it, else the place; always behind `after`."""
    at = max(at, after + 1)
    for place in range(at, max(after, at - _WORD_CHARACTERS), -1):
        if text[place - 1].isspace() and not text[place].isspace():
            return place
    return at
