"""Letters and numbers by which an answer names options, apart from letters that are words, units or parts of names."""

import re
from collections import deque
from collections.abc import Iterator
from typing import Final

from gradewire_server.metrics.choices.forms import LETTER, VOCABULARY, Mention, pattern
from gradewire_server.metrics.choices.options import Options

_LABEL: Final = re.compile(
    rf"(?P<open>[(\[{{<【「『\"'“‘«]{{0,2}})\s?(?<![{LETTER}\d'^\\_])(?<![{LETTER}]-)(?<![{LETTER}\d]\.)(?P<label>[A-Za-z]|\d{{1,2}}|[①-⑳])"
    rf"(?![{LETTER}\d^_])(?!['-][{LETTER}])(?!\.[{LETTER}\d])\s?(?P<close>[)\]}}>】」』\"'”’»]{{0,2}})"
)
_PAIRS: Final = {
    "(": ")",
    "[": "]",
    "{": "}",
    "<": ">",
    "【": "】",
    "「": "」",
    "『": "』",
    '"': '"',
    "'": "'",
    "“": "”",
    "‘": "’",
    "«": "»",
}
_SENTENCE_START: Final = re.compile(r"(?:^|\n|[.!?。！？;；…:：]\s{0,3})[\s>\-–•]{0,4}\Z")
_MARK: Final = re.compile(r"\s?(?:[.:：、)\]]|[-–—](?=\s))")
_ENDED: Final = re.compile(r"\s{0,3}(?:$|[.,;:!?)\]}，。；：！？、\n/|—–]|-\s|\.\.\.|…)")
_OPTION_BEFORE: Final = re.compile(
    r"(?:option|options|choice|choices|letter|letters|answer|answers|alternative|antwort|buchstabe|möglichkeit|réponse|lettre|choix|proposition|"
    r"opción|respuesta|letra|alternativa|选项|答案|选|选择|statement|candidate)\s?(?:is|ist|est|es|是|为|:|=)?\s?[:：]?\s?"
    r"(?:(?:the|die|der|la|le|el)\s)?[(\[\"'“]?\s?\Z",
    re.IGNORECASE,
)
_STATED_BEFORE: Final = re.compile(
    rf"(?:(?<![{LETTER}])(?:is|was|be|ist|est|es|lautet|is:|ist:|say|choose|pick|select|nehme|wähle|choisis|elijo|la|le|el|c'est|not|ni|nor|neither|either|or|and|with|for|"
    r"und|oder|weder|noch|et|ou|y|o|pas|à|en|go|so|mit|für|auf|pour|por|con|hence|therefore|thus|also|donc|then)|[是为选:：→>])\s?\Z",
    re.IGNORECASE,
)
_UNIT_BEFORE: Final = re.compile(r"(?:\d ?°?|°) ?\Z")
_FORMULA_BEFORE: Final = re.compile(r"(?<![A-Za-z][\w])(?:^|[^\s\w]|\b[\w)])\s?[=+*^<>≤≥×÷]\s?\Z")
_ANSWER_EQUALS: Final = re.compile(r"(?:answer|ans|antwort|réponse|respuesta|答案|选项)\s?=\s?\Z", re.IGNORECASE)
_FORMULA_AFTER: Final = re.compile(r"\s?(?:[=^*≤≥×÷]|\+(?!\s?[A-Z]\b)|[<>](?=\s?[\w\d])|#|\+\+|°)")
_ARTICLE_BEFORE: Final = re.compile(rf"(?<![{LETTER}])(?:[Aa]n|a|[Ee]in|[Ee]ine|[Ee]inen|[Ee]iner|[Uu]n) \Z")
_WORD_AFTER: Final = re.compile(rf"\s([{LETTER}][{LETTER}']*)")
_NUMBER_BEFORE: Final = re.compile(
    rf"(?:{'|'.join(re.escape(word) for word in sorted(VOCABULARY['letters']['numbers'], key=len, reverse=True))})"
    r"\s?(?:is|ist|est|es|是|为)?\s?:?\s?[(\[]?\Z",
    re.IGNORECASE,
)
_ONLY_NUMBERS: Final = re.compile(r"\d{1,2}(?:\s{0,2}(?:,|;|&|、|and|und|et|y|和|\n)+\s{0,2}(?:and\s)?\d{1,2}){1,25}")
_SPANISH: Final = frozenset(["la", "las", "los", "el", "un", "una", "unos", "unas", "qué", "mí", "veces"])
_VOWELS: Final = frozenset("aeioyu")
_VERBS: Final = frozenset(VOCABULARY["letters"]["verbs"])
_CALLED_OPTION: Final = re.compile(
    r"(?:option|choice|letter|statement|buchstabe|choix|opción|选项)\s?[(\[\"'“]?\s?\Z", re.IGNORECASE
)
_COPULA_BEFORE: Final = re.compile(r"[:：是为选]\s?\Z|\bis\s\Z")
_IDIOM: Final = re.compile(r"\s(?:und O|bis Z|to Z|à Z|a la Z)(?!\w)")
_IS: Final = re.compile(r"\s(?:is|fits)\b")
_NAMED: Final = 3
_CLOSED: Final = 2
_BARE: Final = 1
_BESIDE: Final = 40
_MOST_MENTIONS: Final = 240
_SIGNS: Final = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"


def letters_of(text: str, options: Options) -> Iterator[Mention]:
    """Yield the mentions of options by letter or number in a cleaned answer, at most 240: the last ones."""
    bare = text.strip(" \t\n.,;:!?()[]{}<>\"'“”‘’«»*-。、")
    foreign = _has_no_article(text)
    listed = options.kind == "number" and _ONLY_NUMBERS.fullmatch(bare) is not None
    for match in deque(_LABEL.finditer(text), _MOST_MENTIONS):
        alone = listed or match["label"] == bare
        mention = _Label(text, match, options, alone=alone, foreign=foreign).mention()
        if mention is not None:
            yield mention


def _has_no_article(text: str) -> bool:
    """Return True for a text in a language in which "A" is no article."""
    return (
        pattern("letters", "without_article").search(text) is not None
        and re.search(r"\bthe\b", text, re.IGNORECASE) is None
    )


class _Label:
    """A letter or number in an answer that may be an option's label."""

    def __init__(self, text: str, match: re.Match[str], options: Options, *, alone: bool, foreign: bool) -> None:
        """Read what stands beside the label.

        `alone` is True if the answer has nothing else, and `foreign` if "A" is no article in its language.
        """
        self._label = match["label"]
        self._options = options
        self._alone = alone
        self._foreign = foreign
        start, end = match.span("label")
        self._before, self._after = text[max(0, start - _BESIDE) : start], text[end : end + _BESIDE]
        self._bracket = match["open"][-1:] if start - match.end("open") <= 1 else ""
        closing = match["close"][:1]
        self._enclosed = bool(self._bracket) and closing == _PAIRS[self._bracket]
        self._closed = closing == ")" and not self._bracket
        self._first = _SENTENCE_START.search(text[max(0, match.start() - 6) : match.start()]) is not None
        self._leads = self._first and _MARK.match(self._after) is not None
        self._named = _OPTION_BEFORE.search(self._before) is not None
        self._ended = _ENDED.match(self._after) is not None
        left = match.end("open") - 1 if self._enclosed else start
        self._span = left, match.start("close") + 1 if self._enclosed or self._closed else end

    def mention(self) -> Mention | None:
        """Return the label's mention of an option, or None if the label is a word, a unit or a part of a name."""
        option = self._option()
        if option is None:
            return None
        if self._options.kind == "number":
            named = self._enclosed or _NUMBER_BEFORE.search(self._before) is not None
            kept, strength = named or self._alone or self._leads, _NAMED if named else _CLOSED
        else:
            kept = self._is_letter()
            strength = _NAMED if self._enclosed or self._named or self._alone else _CLOSED if self._closed else _BARE
        return Mention(*self._span, option, "letter", strength, self._leads) if kept else None

    def _option(self) -> int | None:
        """Return the position of the option with the label, in either case."""
        label, numbered = self._label, self._options.kind == "number"
        if label in _SIGNS:
            place = _SIGNS.index(label)
        elif label.isdigit():
            place = int(label) - 1 if numbered and label[0] != "0" else -1
        else:
            place = -1 if numbered else ord(label.upper()) - ord("A")
        return place if 0 <= place < len(self._options.texts) else None

    def _is_letter(self) -> bool:
        if self._enclosed or self._alone:
            return self._alone or self._bracket not in "\"'" or self._label not in "ai"
        if self._is_symbol() or (not self._named and _follows_name(self._before)):
            return False
        if self._label.isupper():
            return self._is_capital()
        return self._is_small() if self._options.kind == "lower" else self._is_small_for_capital()

    def _is_symbol(self) -> bool:
        """Return True for a unit, or a sign in a formula."""
        if _UNIT_BEFORE.search(self._before) is not None or _FORMULA_AFTER.match(self._after) is not None:
            return True
        return _FORMULA_BEFORE.search(self._before) is not None and _ANSWER_EQUALS.search(self._before) is None

    def _is_small(self) -> bool:
        """Return True for a small letter of options with small letters; vowels may be words."""
        if self._label not in _VOWELS or self._leads or self._ended:
            return True
        return (self._named or _STATED_BEFORE.search(self._before) is not None) and _is_verb(self._after)

    def _is_small_for_capital(self) -> bool:
        leads = self._first and self._leads
        return self._ended and (self._named or leads or _COPULA_BEFORE.search(self._before) is not None)

    def _is_capital(self) -> bool:
        label, after = self._label, self._after
        if any(self._options.texts) and not self._foreign and _ARTICLE_BEFORE.search(self._before) is not None:
            return False
        if label == "I" and _WORD_AFTER.match(after) is not None and _CALLED_OPTION.search(self._before) is None:
            return _IS.match(after) is not None
        if self._ended or self._named:
            return label != "I" or self._named or self._first or not after.startswith((", ", " -", " –", " —"))
        if label == "A":
            if _IDIOM.match(after) is not None:
                return False
            return _may_follow_letter(after) if self._foreign else _is_verb(after)
        return not (self._foreign and self._first and label in "EYOU" and _WORD_AFTER.match(after) is not None)


def _may_follow_letter(after: str) -> bool:
    """Return False for a word behind the Spanish preposition "A": "A la escuela"."""
    word = _WORD_AFTER.match(after)
    return word is None or word[1].lower() not in _SPANISH


def _is_verb(after: str) -> bool:
    """Return True if a verb or another word of a sentence follows, so that "A" before it is no article."""
    word = _WORD_AFTER.match(after)
    return word is None or word[1].lower() in _VERBS or (len(word[1]) == 1 and word[1].isupper())


def _follows_name(before: str) -> bool:
    last = None
    for match in pattern("letters", "names").finditer(before):
        last = match
    return last is not None and not before[last.end() :].strip(" ")
