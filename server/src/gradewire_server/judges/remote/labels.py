"""Reads label probabilities from the log probabilities of tokens of which only the texts are known.

A server's tokens are its own: " 1" may be one token or two, "incorrect" one or three. What the judge writes is followed
token by token as long as all labels could still become of it; in the place where they part, each label's probability is
that of the tokens there that only this label begins with.
"""

import itertools
import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.remote.announced import MARKUP, announced_label
from gradewire_server.judges.remote.lead_words import lead_words, several_letters

MAX_LABEL_TOKENS: Final = 24
LEAST_MASS: Final = 1e-3
"""Below that the labels are not what the judge would have said, and the few tokens that are known say too little about
which of them it would have said: the others may be just beyond the list."""
_ROUNDING: Final = 1e-3
_MARKUP_OR_SPACE: Final = MARKUP + string.whitespace


@dataclass(frozen=True, slots=True)
class Step:
    """One token of an answer.

    Attributes:
        token: Its text.
        alternatives: Texts and log probabilities (natural, temperature 1) of the most probable tokens in its place;
            itself may be none of them, where the judge was held to the labels.
    """

    token: str
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class LabelReading:
    """Probabilities as they were read.

    Attributes:
        probabilities: One per label, sum 1.
        mass: Of all labels together among all that could stand there; None where only the answer's text is known.
    """

    probabilities: tuple[float, ...]
    mass: float | None


UNREADABLE: Final = Failure(Status.UNPARSABLE, "the judge's server answered with none of the labels")
"""What it wrote instead is added by who knows it."""
MALFORMED: Final = Failure(Status.UNPARSABLE, "the judge's server answered with probabilities that are none")
AMBIGUOUS: Final = Failure(
    Status.INVALID_PARAMETER, "the labels begin alike in this judge's tokens: choose labels that differ at once"
)


class Labels:
    """The labels of one choice. White space before a label and its case do not count.

    Args:
        options: Labels.
        opening: What a judge that was not made to go on from it may write first; "" where it was.
    """

    def __init__(self, options: Sequence[str], opening: str = "") -> None:
        self._options, self._opening = options, opening
        self._lead, self._several = lead_words(tuple(options), opening), several_letters(tuple(options))
        self._has_article = "A" in options  # English has a word that looks like it
        begun = _plain(opening)
        self._forms = [
            (_plain(option), *((f"{begun} {_plain(option)}", f"{begun}{_plain(option)}") if begun else ()))
            for option in options
        ]
        self.max_tokens = min(MAX_LABEL_TOKENS, 2 + len(opening) + max(map(len, options)))
        common = 0
        for letters in zip(*(forms[0] for forms in self._forms), strict=False):
            if len(set(letters)) > 1:
                break
            common += 1
        self.tokens_to_tell = min(self.max_tokens, 2 + len(opening) + common)

    @property
    def distinct(self) -> bool:
        """Whether none of the labels begins with another one."""
        first = sorted(forms[0] for forms in self._forms)
        return all(first) and not any(later.startswith(earlier) for earlier, later in itertools.pairwise(first))

    def read(self, steps: Sequence[Step]) -> LabelReading | Failure:
        """Probabilities from an answer's tokens.

        Of the places where labels can part (" yes" in one token, or a blank and then "yes") the one is taken that the
        model itself takes: where it would most probably have written a label. A label in bold is one too; the
        first word of "a tie" and of "Answer B" is none.
        """
        steps = self._without_lead(steps)
        reading = self._read(steps)
        if reading is UNREADABLE:
            bare = [step for step in steps if not step.token.strip() or step.token.strip(_MARKUP_OR_SPACE)]
            reading = self._read(bare) if len(bare) < len(steps) else reading
        return reading

    def _without_lead(self, steps: Sequence[Step]) -> Sequence[Step]:
        found = self._lead.match("".join(step.token for step in steps)) if self._lead else None
        if found is None:
            return steps
        ends = itertools.accumulate(len(step.token) for step in steps)
        # A blank before the label may be of the label's own token.
        before = len(found[0].rstrip())
        return steps[next(index for index, end in enumerate(ends, 1) if end >= before) :]

    def _read(self, steps: Sequence[Step]) -> LabelReading | Failure:
        written, reached = "", 1.0
        best, likeliest = [0.0] * len(self._forms), 0.0
        for step in steps:
            masses = self._masses(written, step)
            if masses is None:
                return MALFORMED
            if reached * sum(masses) > likeliest:
                best, likeliest = masses, reached * sum(masses)
            possible = self._possible(written + step.token) if step.token else set()
            if 1 < len(possible) < len(self._forms):
                return AMBIGUOUS
            if len(possible) < len(self._forms):
                break
            written += step.token
            reached *= _probability(step)
        mass = math.fsum(best)
        if mass < LEAST_MASS:
            return UNREADABLE
        return LabelReading(tuple(each / mass for each in best), min(1.0, mass))

    def read_text(self, text: str, *, whole: bool) -> LabelReading | Failure:
        """Certainty of the label that an answer's text is; of one cut short, what could still become one label alone.

        Where it is none, that of the one that it gives in bold or announces (`announced_label`).

        Args:
            text: The answer.
            whole: Whether it ended by itself.
        """
        if self._several is not None and self._several.match(text):
            return UNREADABLE
        lead = self._lead.match(text) if self._lead else None
        text = text[lead.end() :] if lead else text
        plain = _plain(text)
        named = {index for index in self._possible(text) if not whole or self._says(index, plain)}
        if not plain or len(named) != 1:
            announced = announced_label(text, self._options, self._opening, whole=whole)
            if announced is None:
                return UNREADABLE
            named = {announced}
        return LabelReading(tuple(float(index in named) for index in range(len(self._forms))), None)

    def _masses(self, written: str, step: Step) -> list[float] | None:
        """Probability of each label's own tokens in a place; None where what was sent is not a distribution."""
        masses = [0.0] * len(self._forms)
        total = 0.0
        for token, logprob in step.alternatives:
            if math.isnan(logprob) or logprob > _ROUNDING:
                return None
            probability = math.exp(min(logprob, 0.0))
            total += probability
            possible = self._possible(written + token) if token else set()
            if len(possible) == 1 and not (self._is_article(token) and token != step.token):
                masses[possible.pop()] += probability
        return masses if total <= 1 + _ROUNDING * len(step.alternatives) else None

    def _is_article(self, token: str) -> bool:
        """Whether a token is the English article, where "A" is a label that a judge would write as a capital."""
        return self._has_article and token.strip() == "a"

    def _possible(self, text: str) -> set[int]:
        """Labels that begin with a text, or with which the text begins."""
        plain = _plain(text)
        return {
            index
            for index, forms in enumerate(self._forms)
            if any(form.startswith(plain) for form in forms) or self._says(index, plain)
        }

    def _says(self, index: int, plain: str) -> bool:
        return any(
            plain.startswith(form) and not plain[len(form) : len(form) + 1].isalnum() for form in self._forms[index]
        )


def _probability(step: Step) -> float:
    """Probability of the written token; of one that is not in the list, the highest it can be."""
    known = [logprob for token, logprob in step.alternatives if token == step.token]
    return math.exp(max(known) if known else min((logprob for _, logprob in step.alternatives), default=0.0))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
