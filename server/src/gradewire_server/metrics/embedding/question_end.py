"""The end of a question that is too long to stand before answers: what is asked mostly comes behind its context."""

from collections.abc import Callable, Generator
from typing import Any, Final

from gradewire_server.domain.needs import Embed, Need, Tier, ask
from gradewire_server.domain.result import Failure, Status

_SIZES: Final = tuple(size for power in range(4, 15) for size in (2**power, 3 * 2 ** (power - 1)))
"""Characters that are tried, 16 to 24 576."""
_SHORTEST_ANSWER: Final = "a"
_NO_ROOM: Final = Failure(Status.INVALID_INPUT, "question: leaves no room for an answer in what the encoder reads")


def question_with_room(
    model: str, question: str, with_question: Callable[[str, str], str]
) -> Generator[tuple[Need, ...], Any, str | Failure]:
    """As much of a question's end as leaves room for an answer, all of it where that does.

    Cut inside the question, all texts are equal, whatever the answers are. What is kept takes half of what the encoder
    reads, or a little less: it is the longest of _SIZES, from the begin of a word on, that fits twice.

    Args:
        model: The encoder.
        question: Not blank.
        with_question: The text that is compared, of a question and an answer.

    Returns:
        The question or its end; INVALID_INPUT where not even its last word leaves room.
    """
    fits = yield from _fits(model, with_question(question, _SHORTEST_ANSWER))
    if isinstance(fits, Failure):
        return fits
    if fits:
        return question
    ends = [_end(question, size) for size in _SIZES if size < len(question)]
    fitting, cut = -1, len(ends)
    while cut - fitting > 1:
        middle = (fitting + cut) // 2
        fits = yield from _fits(model, with_question(ends[middle], ends[middle]))
        if isinstance(fits, Failure):
            return fits
        fitting, cut = (middle, cut) if fits else (fitting, middle)
    return ends[fitting] if fitting >= 0 else _NO_ROOM


def _fits(model: str, text: str) -> Generator[tuple[Need, ...], Any, bool | Failure]:
    probe = yield from ask(Embed(model, (text,), Tier.WINDOW))
    return probe if isinstance(probe, Failure) else not probe.truncated.any()


def _end(text: str, size: int) -> str:
    """The last characters, without the part of a word that they may begin with."""
    end = text.rstrip()[-size:]
    whole = end.partition(" ")[2].lstrip()
    return whole or end
