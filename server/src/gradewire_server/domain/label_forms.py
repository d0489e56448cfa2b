"""The forms of sentences in which a judge states, questions, conditions or takes back a label."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gradewire_proto.final_answer.clauses import sentences

MARKUP: Final = '*_`~#>"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}'
"""Characters that chat models put around a label, or at the beginning of a line."""
BOX: Final = "\N{LEFT WHITE SQUARE BRACKET}"
"""The sign before the content of a box, of double brackets or of a verdict's tag."""
_BOX_END: Final = "\N{RIGHT WHITE SQUARE BRACKET}"
_APOSTROPHE: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
_DASHES: Final = "\N{EN DASH}\N{EM DASH}"

_NOUN: Final = (
    "verdict|rating|grade|score|judge?ment|similarity|evaluation|assessment|conclusion|classification|label|decision|"
    "result|winner"
)
_MODIFIERS: Final = r"(?:(?:the|my|our|this|its|so|thus|hence|therefore|final|overall|both|two|student's),?\s){0,4}"
_LAST_WORD: Final = (
    r"(?:so|thus|hence|therefore|overall|finally|in conclusion|in summary|to conclude|to sum up|as a result|"
    r"consequently|accordingly|in short|wait|no wait|actually|correction|on second thought|on reflection|rather|"
    r"or rather|i mean|final answer|final)"
)
_LEAD: Final = (
    r"(?:(?:ok|okay|well|sure|certainly|and|but|however|then|result|based on (?:this|that|the above))[,:]?\s){0,2}"
)
_YES_NO: Final = r"(?:(?P<said>yes|no)[,;]?\s)?"
_ANSWER: Final = (
    r"(?:(?:the|this|that|its|my|model's|student's|given|candidate|candidate's|predicted|submitted|generated|final|"
    r"two)\s){0,4}(?:student|answers?|prediction|response|it|this|that|candidate|reply|solution|output)"
)
_ADVERB: Final = (
    r"(?:(?:clearly|therefore|thus|indeed|hence|completely|entirely|fully|wholly|factually|absolutely|definitely|"
    r"simply|obviously|also|then|slightly|much|far|significantly|considered|rated|graded|judged)\s){0,2}"
)
_RATE: Final = (
    r"i(?:'d|\swould|\swill|'ll)?\s(?:say|rate|grade|score|judge|mark|label|classify|call|consider|deem|find|give|assign|"
    r"choose|select|pick|prefer)\s(?:(?:it|this|that|the|student's|predicted|model's|candidate's|answer|prediction|"
    r"response|a|an?\s(?:rating|score|grade)\sof|as|to\sbe|with)\s){0,6}"
)
_BETTER: Final = (
    r"(?:is|was)\s(?:(?:clearly|slightly|much|far|significantly|definitely|the)\s){0,3}(?:better|best|winner|preferred|"
    r"stronger|superior)(?:\s(?:one|answer|response))?|wins"
)
_REASON: Final = re.compile(
    r"\s?,?\s(?:because|since|as(?!\s(?:long|if|far|for|soon|though|to)\b)|given that|for the (?:following )?"
    r"reasons?)\b",
    re.IGNORECASE,
)
_DOUBT: Final = re.compile(
    r"\b(?:but|however|although|though|except|unless|only|if|provided|providing|assuming|ignoring|disregarding|partly|"
    r"partially|otherwise|depending|aside|apart|when|whenever|whether|might|could|would|may|perhaps|maybe|possibly|"
    r"probably|technically|in part|or|nor|either|at least|almost|nearly|as long as|as far as|so long as|in a sense|"
    r"sort of|kind of|unsure|uncertain|unclear|doubt|suppose|supposing)\b",
    re.IGNORECASE,
)
_REPORTED: Final = re.compile(r"\b(?:says?|said|claims?|claimed|wrote|writes|asks?|asked)\b", re.IGNORECASE)
_CONDITION: Final = re.compile(r"\b(?:if|unless|when|whenever|would|could|might|may|were|had)\b", re.IGNORECASE)
_NEGATED: Final = r"\b(?:not|never|hardly|barely|neither|nor|cannot|no longer|\w+n't)\b"
_NEGATION: Final = re.compile(_NEGATED, re.IGNORECASE)
_TAKES_BACK: Final = re.compile(
    r"\W*(?:only|if|unless|provided|assuming|except|as long as|so long as|or|not|wait|actually|hmm|no|scratch that|"
    r"correction|on second thought|sorry|i mean|but (?:not|only|if|actually|wait))\b",
    re.IGNORECASE,
)
_LIMITS: Final = re.compile(
    r"\W*(?:(?:note|caveat|but|however|though|although)[:,]?\s(?:that\s)?)?(?:this|that|it|the verdict|my verdict|"
    r"the label|the rating)\s(?:is|was|holds|applies|depends|stands|only)\b.*?\b(?:only|if|unless|provided|assuming|"
    r"depends|as long as|when)\b",
    re.IGNORECASE,
)
_EMOJI: Final = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f]")
_ENUMERATOR: Final = re.compile(r"(?m)^[ \t]*(\d{1,2})[.)](?=[ \t]+\S)[ \t]*")
_BOXES: Final = (
    re.compile(r"\\(?:boxed|fbox|framebox)\s?\{((?:[^{}]|\{[^{}]*\}){0,200})\}"),
    re.compile(r"\[\[([^\[\]\n]{0,80})\]\]"),
    re.compile(
        rf"<(?:{_NOUN}|answer|final|final_answer)>([^<>]{{0,80}})</(?:{_NOUN}|answer|final|final_answer)>",
        re.IGNORECASE,
    ),
)
_LATEX: Final = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox)\s?\{([^{}]{0,80})\}")
_TAG: Final = re.compile(r"</?[a-zA-Z][\w-]{0,30}>")
_QUOTE_LINE: Final = re.compile(r"(?m)^[ \t]*>.*$")
_NEGATIVE: Final = re.compile(r"(?:in|un|dis|non-?)\w|no\b|not\b|wrong|false|different|bad", re.IGNORECASE)
_AFTER_ARTICLE: Final = re.compile(r"\s(?!(?:is|was|wins|because|since|as|and|or|but)\b)[a-z]")
_LISTED: Final = re.compile(r",\s(?!(?:because|since|as|so|given)\b)")
_REST: Final = re.compile(r"\s{0,2}[.!]*\s*\Z")


@dataclass(frozen=True, slots=True)
class Plain:
    """A reply's sentences in order, without markup. `whole` is False if the last sentence was cut."""

    sentences: Sequence[str]
    whole: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A label that a sentence states.

    Attributes:
        end: The place in the sentence after the label.
        announced: True if the label is announced as the verdict.
        last_word: True if the sentence concludes or corrects, as with "so" or "wait".
        compares: True if the sentence may name the other labels too: "A is better than B".
    """

    index: int
    end: int
    announced: bool = False
    last_word: bool = False
    compares: bool = False


class LabelForms:
    """The forms that state one of these labels.

    Args:
        options: The labels.
        opening: The beginning that the judge was asked to write, or "".
        meanings: What each label stands for. Of labels with one meaning, the first stands for all. Empty if all differ.
    """

    def __init__(self, options: Sequence[str], opening: str, meanings: Sequence[object] = ()) -> None:
        self.options = options
        self._first = [meanings.index(each) for each in meanings] if meanings else list(range(len(options)))
        self._markup = "".join(set(MARKUP).difference(*options))
        self._plain = [self._tidied(option) for option in options]
        numbers = [int(each) for each in self._plain if each.isascii() and each.isdecimal()]
        self._highest = max(numbers, default=0)
        # Digits and single letters also occur in sentences that are not about the verdict.
        self._are_signs = any(map(_is_sign, self._plain))
        self._are_words = not all(map(_is_sign, self._plain))
        self._named = [re.compile(self._label(each)) for each in self._plain]
        label = f"(?P<label>{'|'.join(map(self._label, sorted(self._plain, key=len, reverse=True)))})"
        begun = self._tidied(opening).rstrip(" :=")
        words = [re.escape(each) for each in dict.fromkeys((begun, " ".join(begun.split()[-2:]))) if each]
        opened = rf"(?:(?:{'|'.join(words)})\s?[:=]?\s)" if words else "(?!)"
        announced = (
            rf"(?P<announced>{_MODIFIERS}(?:{_NOUN})(?:\s?\([^()]{{1,12}}\))?(?:\s(?:is|was)\b)?\s?"
            rf"[:={_DASHES}-]?\s?(?:therefore\s|thus\s)?"
            rf"{opened}?|{opened}|(?:final\s)?answer\s?[:=]\s?)"
        )
        subject = (
            rf"(?:{announced}|(?:{_ANSWER}\s(?:is|was|are|gets|deserves)|(?:it|that)'s)\s{_ADVERB}|{_RATE}|{_ADVERB})"
        )
        because = r"(?:(?:since|because|as|given that)\s[^?]{3,400},\s(?:so\s)?)?"
        begin = rf"\W*{_LEAD}(?:(?P<last_word>{_LAST_WORD})[,:{_DASHES}]?\s)?{_LEAD}{_YES_NO}{because}"
        named = r"(?:(?:the\s)?(?:answer|assistant|response|model|option|candidate)\s)?" if self._are_signs else ""
        reason = r"\s?,?\s(?:because|since|as|given that|for the (?:following )?reasons?)\b"
        limit = r"\s(?:if|unless|when|only|provided|assuming|except|but)\b"
        end = rf"(?=\s?[.!,;()\]\n]|\s[{_DASHES}-]\s|{reason}|{limit}|\s*\Z)"
        self._statement = re.compile(rf"{begin}{subject}{named}{label}{end}", re.IGNORECASE)
        better = rf"(?:{_BETTER})(?:\sthan\s[\w\s]{{1,30}}?)?"
        self._better = re.compile(rf"{begin}{named}{label}\s{better}{end}", re.IGNORECASE)
        self._boxed = re.compile(rf"(?P<before>[^{BOX}]*){BOX}\s*{label}[.!]?\s*{_BOX_END}", re.IGNORECASE)

    def plain(self, text: str, *, whole: bool) -> Plain:
        """Return a reply's sentences. A line that ends in a colon goes on in the next line."""
        for box in _BOXES:
            text = box.sub(rf" {BOX}\1{_BOX_END} ", text)
        text = _TAG.sub("\n", _LATEX.sub(r"\1", _LATEX.sub(r"\1", text)))
        if ">" in self._markup:
            text = _QUOTE_LINE.sub("", text)
        numbers = [found[1] for found in _ENUMERATOR.finditer(text)]
        enumerated = len(numbers) > 1 or (not whole and numbers == ["1"])
        if enumerated and self._are_signs:
            text = _ENUMERATOR.sub("", text)
        bare = (
            _EMOJI.sub("", text)
            .replace(_APOSTROPHE, "'")
            .replace("$", "")
            .translate(dict.fromkeys(map(ord, self._markup)))
        )
        bare = "\n".join(line for line in (" ".join(each.split()) for each in bare.splitlines()) if line)
        bare = re.sub(r":\n", ": ", bare)
        return Plain([bare[left:right] for left, right in sentences(bare, 0, len(bare))], whole)

    def named(self, sentence: str) -> frozenset[int]:
        """Return the indices of the labels in a sentence, without those before a noun ("the correct answer")."""
        return frozenset(
            self._first[index]
            for index, pattern in enumerate(self._named)
            if any(not _is_attribute(sentence, found) for found in pattern.finditer(sentence))
        )

    def first(self, index: int) -> int:
        """Return the index of the first label with the same meaning."""
        return self._first[index]

    def statement(self, sentence: str) -> Statement | None:
        """Return the label that a sentence states in one of the forms, or None."""
        found = self._statement.match(sentence)
        if found is not None and (found["announced"] or not _is_listed(sentence, found)):
            return self._stated(found, announced=found["announced"] is not None)
        if self._are_signs and (found := self._better.match(sentence)) is not None:
            return self._stated(found, compares=True)
        found = self._boxed.match(sentence)
        if found is None or any(doubt.search(found["before"]) for doubt in (_DOUBT, _NEGATION, _REPORTED)):
            return None
        return Statement(self._index_of(found["label"]), found.end(), announced=True)

    def _stated(self, found: re.Match[str], *, announced: bool = False, compares: bool = False) -> Statement | None:
        said, label = found["said"], found["label"]
        # "No, correct" could mean both, and so could "yes, incorrect".
        agrees = said is None or (said.casefold() == "no") == (_NEGATIVE.match(label) is not None)
        if not agrees and label.casefold() not in {"yes", "no"}:
            return None
        last_word = found["last_word"] is not None
        return Statement(self._index_of(label), found.end(), announced, last_word, compares)

    def is_reason(self, tail: str) -> bool:
        """Return True if the rest of a sentence gives a reason."""
        return _REASON.match(tail) is not None

    def is_harmless(self, tail: str) -> bool:
        """Return True if the rest of a sentence neither limits nor denies the label before it."""
        if _REST.match(tail):
            return True
        if self.is_reason(tail):
            return re.search(r"\b(?:only if|unless|except|provided|assuming)\b", tail, re.IGNORECASE) is None
        return _DOUBT.search(tail) is None and re.match(rf"\W*(?:{_NEGATED}|no\b)", tail, re.IGNORECASE) is None

    def takes_back(self, sentence: str, index: int, named: frozenset[int]) -> bool:
        """Return True if a later sentence, which states no label, may take the label `index` back.

        "Not correct" after "incorrect" agrees with it, and so does a condition under which another label would fit.
        """
        if _TAKES_BACK.match(sentence) or _LIMITS.match(sentence):
            return True
        negated = _NEGATION.search(sentence) is not None
        if self._are_signs and named and re.search(rf"\b(?:{_NOUN})\b", sentence, re.IGNORECASE) is not None:
            return True
        if not self._are_words:
            return False
        if index in named:
            return negated or _DOUBT.search(sentence) is not None
        return bool(named) and not negated and _CONDITION.search(sentence) is None

    def may_begin_another(self, sentence: str, index: int) -> bool:
        """Return True if the last word of a reply that was cut may be the beginning of another label."""
        last = sentence.rpartition(" ")[2].casefold()
        others = (each.casefold() for place, each in enumerate(self._plain) if self._first[place] != index)
        return bool(last) and any(each.startswith(last) for each in others)

    def whole_label(self, text: str) -> int | None:
        """Return the index of the label that is the whole text but for markup, a full stop or its scale ("2/3")."""
        plain = self._tidied(_LATEX.sub(r"\1", text)).strip(f" .!{BOX}{_BOX_END}")
        found = {
            self._first[index]
            for index, label in enumerate(self._plain)
            if plain.casefold() == label.casefold() or re.fullmatch(self._label(label), plain, re.IGNORECASE)
        }
        return found.pop() if len(found) == 1 else None

    def _index_of(self, label: str) -> int:
        found = self.whole_label(label)
        assert found is not None, "the forms match only labels"  # noqa: S101 - see _label
        return found

    def _label(self, label: str) -> str:
        if label.isascii() and label.isdecimal():
            scale = rf"(?:\s?/\s?{self._highest}|\s(?:out\s)?of\s{self._highest})?"
            end = r"(?![\w%-]|[.,]\d|\s?/\s?\d|\s?\(?(?:(?<=[\s(])out\s|(?<=[\s(]))of\s\d)"
            return (
                rf"(?<![\w%])(?<!\d[.,/])(?<!\d\sof\s)(?<!out\sof\s)(?<![-\u2212+]){label}(?:\.0{{1,2}})?{scale}{end}"
            )
        written = rf"(?-i:{re.escape(label)})" if len(label) == 1 and label.isalpha() else rf"(?i:{re.escape(label)})"
        return rf"(?<![\w-]){written}(?![\w%-])"

    def _tidied(self, text: str) -> str:
        bare = text.replace(_APOSTROPHE, "'").translate(dict.fromkeys(map(ord, self._markup)))
        return " ".join(bare.split())


def _is_sign(label: str) -> bool:
    return len(label) == 1 or label.isdecimal()


def _is_attribute(sentence: str, found: re.Match[str]) -> bool:
    if _is_sign(found[0]):
        # The article begins a sentence: "A better answer would name the year."
        return found[0] == "A" and _AFTER_ARTICLE.match(sentence, found.end()) is not None
    before = re.search(r"\b(?:the|an?|its|one|any|no)\s$", sentence[: found.start()], re.IGNORECASE)
    return before is not None and re.match(r"\s\w", sentence[found.end() :]) is not None


def _is_listed(sentence: str, found: re.Match[str]) -> bool:
    """Return True if a letter at the beginning may be the first of a list: "C, D and E"."""
    begins = re.search(r"\w", sentence[: found.start("label")]) is None
    return begins and len(found["label"]) == 1 and _LISTED.match(sentence, found.end()) is not None
