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

MARKUP: Final = '*_`~#>"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}'
"""Characters that chat models put around a label, or at the beginning of a line."""
_APOSTROPHE: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
_DASHES: Final = "\N{EN DASH}\N{EM DASH}"
_ANNOUNCING: Final = (
    "verdict|rating|grade|score|judge?ment|similarity|evaluation|assessment|conclusion|classification|label"
)
_LEADING_WORDS: Final = r"(?:(?:the|my|our|this|so|thus|hence|therefore|final|overall|both|two|student's),? ){0,4}"
# No question mark, colon ("Correct: Paris") or word ("correct only if") may follow the label.
_SENTENCE_PART_END: Final = rf"(?= ?(?:[.!;,)(\n{_DASHES}]|- ))"

_ARTICLE: Final = "a"
_SEPARATOR: Final = r"[\s*_`\"']"

MAX_LABEL_TOKENS: Final = 24
LEAST_MASS: Final = 1e-3
"""The minimum total probability of all labels. Below this value, the judge would write something else, and the known
tokens do not show which label the judge prefers.
"""
_ROUNDING: Final = 1e-3
_MARKUP_OR_SPACE: Final = MARKUP + string.whitespace

UNREADABLE: Final = Failure(Status.UNPARSABLE, "the judge's server answered with none of the labels")
"""The caller appends the judge's text to this message."""
MALFORMED: Final = Failure(Status.UNPARSABLE, "the judge's server answered with invalid probabilities")
AMBIGUOUS: Final = Failure(
    Status.INVALID_PARAMETER, "the labels start with the same token for this judge. Choose different first words"
)


def announced_label(text: str, options: Sequence[str], opening: str, *, whole: bool) -> int | None:
    """Return the index of the label that a reply states as the verdict, or None if the verdict is not certain.

    A verdict is certain if the reply contains no other label, and the label is either the beginning of the reply or
    follows words like "The verdict:" or the opening's words. The label must end a clause. Markup is ignored.

    `opening` is the beginning that the judge was asked to write, or "" if the judge continued a given beginning. If
    `whole` is False, the reply was cut off, and a second label may have followed.
    """
    markup = "".join(set(MARKUP).difference(*options))
    plain = _plain(text, markup)
    labels = [_plain(option, markup) for option in options]
    named = {
        index for index, label in enumerate(labels) if label and re.search(rf"(?<!\w){re.escape(label)}(?!\w)", plain)
    }
    if len(named) != 1:
        return None
    (index,) = named
    if not whole and _begins_another(plain, labels, index):
        return None
    end = rf"(?:{_SENTENCE_PART_END}|\Z)" if whole else _SENTENCE_PART_END
    label = rf"{re.escape(labels[index])}(?![\w/%-]|[.,]\d){end}"
    announced = rf"(?:(?:{_ANNOUNCING})(?: is\b)? ?[:={_DASHES}-]? ?{_opening(opening, markup)})"
    found = re.search(rf"\A{label}|(?:\A|\n|[.!] ){_LEADING_WORDS}{announced}{label}", plain)
    return index if found else None


def _opening(opening: str, markup: str) -> str:
    """Return a pattern for the opening's last words, which judges also write before a label ("The answer is …")."""
    words = _plain(opening, markup).rstrip(":").split()[-2:]
    return rf"|{re.escape(' '.join(words))} ?:? ?" if words else ""


def _begins_another(plain: str, labels: Sequence[str], index: int) -> bool:
    last = plain.rpartition(" ")[2].rpartition("\n")[2]
    return bool(last) and any(label.startswith(last) for place, label in enumerate(labels) if place != index)


def _plain(text: str, markup: str) -> str:
    """Return a text in lower case, without markup or extra white space."""
    bare = text.casefold().replace(_APOSTROPHE, "'").translate(dict.fromkeys(map(ord, markup)))
    lines = (" ".join(line.split()) for line in bare.splitlines())
    return "\n".join(line for line in lines if line)


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
        self.max_tokens = min(MAX_LABEL_TOKENS, 2 + len(opening) + max(map(len, options)))
        letters = zip(*(forms[0] for forms in self._forms), strict=False)
        common = sum(1 for _ in itertools.takewhile(lambda same: len(set(same)) == 1, letters))
        self.tokens_to_tell = min(self.max_tokens, 2 + len(opening) + common)

    @property
    def distinct(self) -> bool:
        """True if no label is the beginning of a different label."""
        first = sorted(forms[0] for forms in self._forms)
        return all(first) and not any(later.startswith(earlier) for earlier, later in itertools.pairwise(first))

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
        """Return probability 1 for the label in an answer's text.

        Use the label that equals the text or, if `whole` is False, the only label that begins with the text. If no
        label fits, use the announced label (`announced_label`).
        """
        if self._several is not None and self._several.match(text):
            return UNREADABLE
        lead = self._lead.match(text) if self._lead else None
        text = text[lead.end() :] if lead else text
        plain = _plain_label(text)
        named = {index for index in self._possible(text) if not whole or self._reads_as(index, plain)}
        if not plain or len(named) != 1:
            announced = announced_label(text, self._options, self._opening, whole=whole)
            if announced is None:
                return UNREADABLE
            named = {announced}
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
            possible = self._possible(written + token) if token else set()
            if len(possible) == 1 and not (self._is_article(token) and token != step.token):
                masses[possible.pop()] += probability
        return masses if total <= 1 + _ROUNDING * len(step.alternatives) else None

    def _is_article(self, token: str) -> bool:
        """Return True if a token is the English article "a" instead of the label "A"."""
        return self._has_article and token.strip() == "a"

    def _possible(self, text: str) -> set[int]:
        """Return the indices of labels that have the text as a prefix, and of labels that are prefixes of the text."""
        plain = _plain_label(text)
        return {
            index
            for index, forms in enumerate(self._forms)
            if any(form.startswith(plain) for form in forms) or self._reads_as(index, plain)
        }

    def _reads_as(self, index: int, plain: str) -> bool:
        return any(
            plain.startswith(form) and not plain[len(form) : len(form) + 1].isalnum() for form in self._forms[index]
        )


def _probability(step: Step) -> float:
    """Return the written token's probability, or an upper bound if the token is not among the alternatives."""
    known = [logprob for token, logprob in step.alternatives if token == step.token]
    return math.exp(max(known) if known else min((logprob for _, logprob in step.alternatives), default=0.0))


def _plain_label(text: str) -> str:
    return " ".join(text.split()).casefold()
