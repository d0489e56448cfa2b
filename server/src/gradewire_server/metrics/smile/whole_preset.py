"""Preset `whole`: `fast` where the encoder reads the answer to its end, else all of the answer, piece by piece.

The sentence term is that of the piece that comes closest. All pieces rank the windows, each in its context, and only
the closest few of the whole answer are embedded alone: what a word costs does not depend on how many there are.
"""

from collections.abc import Generator
from dataclasses import replace
from itertools import chain
from typing import Any, Final, TypeAlias

from gradewire_server.domain.item import Item
from gradewire_server.domain.needs import Embed, EmbedTokens, Need, Tier, TokenVectors, ask
from gradewire_server.domain.result import Failure
from gradewire_server.metrics.rounds import ask_together, is_cut
from gradewire_server.metrics.smile.formula import Similarities, can_still_win, closest_windows, held_keywords
from gradewire_server.metrics.smile.parameters import SmileParameters, SmilePreset
from gradewire_server.metrics.smile.ranked_pieces import RankedPieces
from gradewire_server.metrics.smile.rounds import gather
from gradewire_server.metrics.smile.texts import SmileTexts, smile_texts, whole_texts
from gradewire_server.metrics.smile.whole_answer import read_pieces

MAX_CHARACTERS: Final = 16_384
"""Characters of an answer that are read, from its first that is not blank on."""
MAX_WORDS: Final = 2_048
"""Words of them in which windows are looked for."""
_MAY_BE_CUT: Final = 512
"""Characters from which on an answer is first asked for by its tokens, which tell whether the encoder read all of it;
shorter ones are mostly read whole, and then `fast` needs fewer rounds."""

_Found: TypeAlias = tuple[SmileTexts, Similarities]


def gather_whole(
    item: Item, sentences: tuple[str, ...], parameters: SmileParameters, *, rough_error: float | None = None
) -> Generator[tuple[Need, ...], Any, _Found | Failure]:
    """The texts that are compared, and all that their score rests on; a Failure where the encoder fails.

    Args:
        item: A checked one.
        sentences: What each reference stands for.
        parameters: The metric's, with preset WHOLE.
        rough_error: As `ModelMetadata.rough_cosine_error`.
    """
    texts = smile_texts(item.prediction, item.references, sentences)
    tokens = (yield from _read(item.prediction, parameters)) if len(item.prediction) > _MAY_BE_CUT else None
    if isinstance(tokens, Failure):
        return tokens
    if tokens is None or not tokens.truncated:
        like_fast = replace(parameters, preset=SmilePreset.FAST)
        found = yield from gather(texts, like_fast, rough_error=rough_error)
        if isinstance(found, Failure):
            return found
        if tokens is None and found.truncated:
            tokens = yield from _read(item.prediction, parameters)
        if isinstance(tokens, Failure):
            return tokens
        if tokens is None or not tokens.truncated:
            return texts, found
    end = len(item.prediction) - len(item.prediction.lstrip()) + MAX_CHARACTERS
    texts = whole_texts(item.prediction, item.references, end=end, most_words=MAX_WORDS)
    texts = replace(texts, sentences=sentences)
    similarities = yield from _to_the_end(texts, parameters, tokens, end)
    return similarities if isinstance(similarities, Failure) else (texts, similarities)


def _read(text: str, parameters: SmileParameters) -> Generator[tuple[Need, ...], Any, TokenVectors | Failure]:
    answer = yield from ask(EmbedTokens(parameters.model, (text,), Tier.PREDICTION))
    if isinstance(answer, Failure):
        return answer
    (tokens,) = answer
    return tokens


def _to_the_end(
    texts: SmileTexts, parameters: SmileParameters, first: TokenVectors, end: int
) -> Generator[tuple[Need, ...], Any, Similarities | Failure]:
    """Reads all pieces behind the first, then embeds the windows that are closest in any."""
    model = parameters.model
    answers = yield from ask_together(
        Embed(model, texts.asked_keywords, Tier.REFERENCE), Embed(model, texts.sentences, Tier.REFERENCE)
    )
    if isinstance(answers, Failure):
        return answers
    keywords, sentences = answers
    pieces = RankedPieces.of(texts, keywords.values, sentences.values)
    left = yield from read_pieces(texts.prediction[:end].rstrip(), model, first, pieces)
    if isinstance(left, Failure):
        return left
    truncated = left or texts.windows.truncated or is_cut(keywords, sentences)
    known = Similarities(pieces.sentences.tolist(), held_keywords(texts), truncated)
    rest = texts.asking(can_still_win(texts, known.sentences, parameters))
    if not rest.asked:
        return known
    windows = yield from pieces.shortlist(rest.rows_of)
    vectors = yield from ask(Embed(model, tuple(chain.from_iterable(windows.values())), Tier.WINDOW))
    if isinstance(vectors, Failure):
        return vectors
    rows = [row for row, index in enumerate(texts.asked) if index in rest.asked]
    closest = closest_windows(rest, windows, vectors.values, keywords.values[rows])
    return known.joined_by(closest, truncated=is_cut(vectors))
