"""The computation of label probabilities from a server's tokens."""

import itertools
import math
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.label_forms import MARKUP
from gradewire_server.domain.stated_labels import CONTRADICTION, stated_label

_ARTICLE: Final = "a"
_LEADING: Final = frozenset({_ARTICLE, "the", "answer"})
"""Words that may come before a label, so that more tokens are needed even if they are labels."""
_SEPARATOR: Final = r"[\s*_`\"']"

MAX_LABEL_TOKENS: Final = 24
MAX_TEXT_TOKENS: Final = 48
"""Tokens of a reply that is read as text: enough for a sentence or a short object of JSON with the label."""
LEAST_MASS: Final = 1e-3
"""The minimum total probability of all labels. Below this value, the judge would write something else, and the known
tokens do not show which label the judge prefers.
"""
_MOST_BEFORE: Final = 256
"""Characters of white space and openings after which a reply is not read further for a label."""
_ROUNDING: Final = 1e-3
_NONE: Final[frozenset[int]] = frozenset()
_MAX_KNOWN_TEXTS: Final = 1024
_MAX_KNOWN_CHARACTERS: Final = 32
_MARKUP_OR_SPACE: Final = MARKUP + string.whitespace

UNREADABLE: Final = Failure(Status.UNPARSABLE, "the judge's server answered with none of the labels")
"""The caller appends the judge's text to this message."""
MALFORMED: Final = Failure(Status.UNPARSABLE, "the judge's server answered with invalid probabilities")
AMBIGUOUS: Final = Failure(
    Status.INVALID_PARAMETER, "the labels start with the same token for this judge. Choose different first words"
)


@lru_cache(maxsize=256)
def lead_words(options: tuple[str, ...], opening: str) -> re.Pattern[str] | None:
    """Return a pattern for extra words before a label, or None if no label is a single letter.

    The words are "answer" or "the answer" before a label with one letter, and "a" before a longer label if "A" is a
    label. The opening may come before these words.
    """
    letters = [re.escape(option) for option in options if len(option) == 1 and option.isalpha()]
    if not letters:
        return None
    words = [re.escape(option) for option in options if len(option) > 1]
    leads = [rf"(?:the\s)?answer{_SEPARATOR}*:?{_SEPARATOR}+(?=(?:{'|'.join(letters)})(?!\w))"]
    if words and _ARTICLE in map(str.casefold, options):
        leads.append(rf"{_ARTICLE}{_SEPARATOR}+(?=(?:{'|'.join(words)})(?!\w))")
    begun = r"\s+".join(map(re.escape, opening.split()))
    return re.compile(rf"\W*(?:{begun}\W+)?(?:{'|'.join(leads)})", re.IGNORECASE)


@lru_cache(maxsize=256)
def several_letters(options: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return a pattern for two labels at the beginning ("A and B"), or None if no label is a single letter."""
    letters = [re.escape(option) for option in options if len(option) == 1 and option.isalpha()]
    if not letters:
        return None
    label = rf"(?:answer\s)?(?:{'|'.join(letters)})(?!\w)"
    return re.compile(rf"\W*{label}\W*(?:\b(?:and|or)\b|[&/,])\W*{label}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Step:
    """One token of an answer.

    Attributes:
        alternatives: Texts and natural log probabilities (temperature 1) of the most probable tokens at this position.
            The answer's own token may be missing here if a constraint forced it.
    """

    token: str
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class LabelReading:
    """Label probabilities.

    Attributes:
        probabilities: One probability per label, with a sum of 1.
        mass: The labels' total probability among all possible tokens, or None if only the answer's text is known.
    """

    probabilities: tuple[float, ...]
    mass: float | None


class Labels:
    """The labels of one choice. Letter case is ignored, and so is white space before a label.

    Args:
        opening: The opening that a judge may repeat first, or "" if the judge continued from the opening.
    """

    def __init__(self, options: Sequence[str], opening: str = "") -> None:
        self._options, self._opening = options, opening
        self._lead, self._several = lead_words(tuple(options), opening), several_letters(tuple(options))
        self._has_article = "A" in options  # the English article looks like this label
        begun = _plain_label(opening)
        self._forms = [
            (
                _plain_label(option),
                *((f"{begun} {_plain_label(option)}", f"{begun}{_plain_label(option)}") if begun else ()),
            )
            for option in options
        ]
        self._known: dict[str, frozenset[int]] = {}
        """The results of `_possible` for short texts, because the same tokens come again and again."""
        self.max_tokens = MAX_TEXT_TOKENS
        letters = zip(*(forms[0] for forms in self._forms), strict=False)
        common = sum(1 for _ in itertools.takewhile(lambda same: len(set(same)) == 1, letters))
        self.tokens_to_tell = min(MAX_LABEL_TOKENS, 2 + len(opening) + common)

    @property
    def distinct(self) -> bool:
        """True if no label is the beginning of a different label."""
        first = sorted(forms[0] for forms in self._forms)
        return all(first) and not any(later.startswith(earlier) for earlier, later in itertools.pairwise(first))

    def decides(self, steps: Sequence[Step]) -> bool:
        """Return True if an answer's first token shows its label, so that `read` needs no later token."""
        if not steps:
            return False
        plain = _plain_label(steps[0].token)
        if self._lead is not None and plain not in {forms[0] for forms in self._forms} - _LEADING:
            return False
        return len(self._possible(plain)) == 1

    def read(self, steps: Sequence[Step]) -> LabelReading | Failure:
        """Compute label probabilities from an answer's tokens.

        Use the position where the model most probably writes a label, because labels can diverge at several positions
        (" yes" may be one token, or a space and "yes").
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
        # A space before the label may belong to the label's token.
        before = len(found[0].rstrip())
        return steps[next(index for index, end in enumerate(ends, 1) if end >= before) :]

    def _read(self, steps: Sequence[Step]) -> LabelReading | Failure:
        written, reached = "", 1.0
        best, likeliest = [0.0] * len(self._forms), 0.0
        for step in steps:
            if len(written) > _MOST_BEFORE:
                break
            masses = self._masses(written, step)
            if masses is None:
                return MALFORMED
            if reached * sum(masses) > likeliest:
                best, likeliest = masses, reached * sum(masses)
            possible = self._possible(written + step.token) if step.token else _NONE
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
        """Return probability 1 for the label that an answer's text states.

        The text is the label itself or, if `whole` is False, the beginning of a single label. Any other text must
        state a label in one of the forms of `stated_label`.
        """
        if self._several is not None and self._several.match(text):
            return CONTRADICTION
        lead = self._lead.match(text) if self._lead else None
        text = text[lead.end() :] if lead else text
        plain = _plain_label(text).strip(_MARKUP_OR_SPACE)
        bare = plain.rstrip(".!") if whole else plain
        named = {index for index, forms in enumerate(self._forms) if bare and bare in forms}
        if not whole and plain and not named:
            possible = {index for index, forms in enumerate(self._forms) if any(f.startswith(plain) for f in forms)}
            named = possible if len(possible) == 1 else set()
        if not named:
            stated = stated_label(text, self._options, self._opening, whole=whole)
            if isinstance(stated, Failure):
                return stated
            named = {stated}
        return LabelReading(tuple(float(index in named) for index in range(len(self._forms))), None)

    def _masses(self, written: str, step: Step) -> list[float] | None:
        """Return each label's probability at a position, or None if the log probabilities are invalid."""
        masses = [0.0] * len(self._forms)
        total = 0.0
        for token, logprob in step.alternatives:
            if math.isnan(logprob) or logprob > _ROUNDING:
                return None
            probability = math.exp(min(logprob, 0.0))
            total += probability
            possible = self._possible(written + token) if token else _NONE
            if len(possible) == 1 and not (self._is_article(token) and token != step.token):
                masses[next(iter(possible))] += probability
        return masses if total <= 1 + _ROUNDING * len(step.alternatives) else None

    def _is_article(self, token: str) -> bool:
        """Return True if a token is the English article "a" instead of the label "A"."""
        return self._has_article and token.strip() == "a"

    def _possible(self, text: str) -> frozenset[int]:
        """Return the indices of labels that have the text as a prefix, and of labels that are prefixes of the text."""
        known = self._known.get(text)
        if known is not None:
            return known
        plain = _plain_label(text)
        found = frozenset(
            index
            for index, forms in enumerate(self._forms)
            if any(form.startswith(plain) for form in forms) or self._reads_as(index, plain)
        )
        if len(text) <= _MAX_KNOWN_CHARACTERS:
            if len(self._known) >= _MAX_KNOWN_TEXTS:
                self._known.clear()
            self._known[text] = found
        return found

    def _reads_as(self, index: int, plain: str) -> bool:
        return any(
            plain.startswith(form) and not plain[len(form) : len(form) + 1].isalnum() for form in self._forms[index]
        )


@lru_cache(maxsize=256)
def labels_of(options: tuple[str, ...], opening: str = "") -> Labels:
    """Return the labels of a choice. Many items have the same."""
    return Labels(options, opening)


def _probability(step: Step) -> float:
    """Return the written token's probability, or an upper bound if the token is not among the alternatives."""
    known = [logprob for token, logprob in step.alternatives if token == step.token]
    return math.exp(max(known) if known else min((logprob for _, logprob in step.alternatives), default=0.0))


def _plain_label(text: str) -> str:
    return " ".join(text.split()).casefold()
