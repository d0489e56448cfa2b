"""Words of options and answers, and the places at which an answer has an option's text.

All functions take time in proportion to the text's length and the number of options, of which there are at most 26.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final
from unicodedata import normalize

from rapidfuzz.distance import Prefix

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.text.normalise import lemmatizer
from gradewire_server.metrics.values.numerals import SMALL, TENS

VOCABULARY: Final[Mapping[str, Mapping[str, Sequence[str]]]] = tomllib.loads(
    (files(__package__) / "vocabulary.toml").read_text("utf-8")
)
LETTER: Final = r"A-Za-zÀ-ÖØ-öø-ɏ"
"""The letters of Latin scripts, for character classes. Chinese signs are no letters here."""
SIGN: Final = "\u3040-\u30ff\u3400-\u9fff"
"""The signs of scripts without blanks between words, for character classes."""

_FULL_WIDTH: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0xFF08: " (",
    0xA0: " ", 0x3000: " ", 0x202F: " ", 0x2212: "-", 0x2019: "'", 0x2018: "'",
}  # fmt: skip
_WRAPPED: Final = re.compile(
    r"\\(?:boxed|fbox|framebox|text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|operatorname)\s?\{([^{}]{0,2000})\}"
)
_FRACTION: Final = re.compile(r"\\[dt]?frac\s?\{([^{}]{1,100})\}\s?\{([^{}]{1,100})\}")
_MATHS: Final = re.compile(r"\$(?!\s)([^$\n]{1,200}?)(?<!\s)\$(?!\d)|\\\(([^\n]{1,200}?)\\\)|\\\[([^\n]{1,200}?)\\\]")
_TAGS: Final = re.compile(r"</?(?:b|strong|i|em|u|p|span|code|div|mark|h[1-6])>|__(?=\S)|(?<=\S)__")
_BREAKS: Final = re.compile(r"<br\s?/?>|</?[a-z_]{3,20}>")
_STARS: Final = re.compile(r"(?<!\d)\*{1,3}|\*{1,3}(?!\d)|`{1,3}(?:\w{0,12}\n)?")
_LINE_MARKS: Final = re.compile(r"^[ \t]{0,8}(?:#{1,6}\s|>\s?|[-•+]\s{1,3}(?=\S)|\[[ xX]?\]\s)", re.MULTILINE)
_MOST_LAYERS: Final = 4


def cleaned(text: str) -> str:
    """Return a text in plain characters, without emphasis, LaTeX's commands around words, tags and marks of lists."""
    text = normalize("NFC", text).translate(_FULL_WIDTH)
    if "\\" in text:
        text = _FRACTION.sub(r"\1/\2", text)
        for _ in range(_MOST_LAYERS):
            text, count = _WRAPPED.subn(r"\1", text)
            if not count:
                break
    text = _MATHS.sub(lambda match: match[1] or match[2] or match[3], text)
    if "<" in text or "_" in text:
        text = _BREAKS.sub("\n", _TAGS.sub("", text))
    if "*" in text or "`" in text:
        text = _STARS.sub("", text)
    return _LINE_MARKS.sub("", text)


@cache
def pattern(section: str, *kinds: str) -> re.Pattern[str]:
    """Return a regular expression for the vocabulary's words of some kinds."""
    listed = [word for kind in kinds for word in VOCABULARY[section][kind]]
    endings = [word for word in listed if word.startswith("n'")]  # "n't" stands at the end of another word
    inside = "".join(f"|(?<=\\w){re.escape(word)}" for word in endings)
    return re.compile(expression(dict.fromkeys(listed)) + inside, re.IGNORECASE)


_TOKEN: Final = re.compile(
    rf"(?P<not>(?<=[{LETTER}])n't(?![{LETTER}]))"
    rf"|(?P<cannot>(?<![{LETTER}])cannot(?![{LETTER}]))"
    rf"|(?P<number>(?:(?<![\w.)°%])(?<!\w\s)[-+])?\d+(?:[.,]\d+)*)"
    rf"|(?P<word>[{LETTER}]+?(?=n't(?![{LETTER}]))|[{LETTER}]+|[^\W\d_])"
    r"|(?P<sign>[%°€$£¥/^<>=+×÷√π∞≤≥≠²³]|(?<=[\w)])\s-\s(?=\w))"
)
_WORDS: Final = VOCABULARY["words"]
_NUMBERS: Final = {word: str(value) for word, value in (SMALL | TENS).items()} | {
    word: str(value) for listed in _WORDS["numbers"] for value, word in enumerate(listed.split()) if word != "une"
}
_ARTICLES: Final = frozenset(" ".join(_WORDS["articles"]).split())
_SMALL_WORDS: Final = _ARTICLES.union(*(listed.split() for listed in _WORDS["small"]))
_DENIALS: Final = frozenset(" ".join(_WORDS["denials"]).split())
_ENDINGS: Final = tuple(" ".join(_WORDS["endings"]).split())
_LEAST_STEM: Final = 3
_MOST_TOKENS: Final = 4_000
_MOST_OF_OPTION: Final = 200
"""Tokens of an option's text that are compared."""
_MOST_STEPS: Final = 100_000
"""Tokens that are compared in one answer, so that a hostile one takes no longer than others."""
_MOST_MENTIONS: Final = 240
"""Mentions of texts in one answer that count, half of them from its end."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number or sign of a text; `exact` is its folded form, `keys` are forms without inflection."""

    exact: str
    keys: frozenset[str]
    start: int
    end: int
    is_article: bool = False
    """True if the word may be left out where texts are compared."""


def tokens_of(text: str) -> list[Token]:
    """Return the first 4 000 tokens of a cleaned text."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        word = match[0]
        if match["cannot"]:
            found += (_token("can", match.start(), match.end()), _token("not", match.start(), match.end()))
        elif match["not"]:
            found.append(_token("not", *match.span()))
        elif match["number"]:
            found.append(_token(_number(word), *match.span()))
        else:
            exact = word.strip().casefold()
            article = exact in _ARTICLES and (len(exact) > 1 or _is_short_article(text, match, first=not found))
            found.append(Token(exact, _keys(exact), *match.span(), article))
        if len(found) >= _MOST_TOKENS:
            break
    return found


def _is_short_article(text: str, match: re.Match[str], *, first: bool) -> bool:
    """Return True for "a dog", and for "l'hiver", but not for "vitamin A" or "5a"."""
    if match[0] in "lLdD":
        return text[match.end() : match.end() + 1] == "'"
    return (
        (first or match[0] == "a")
        and text[match.end() : match.end() + 1] == " "
        and not text[: match.start()][-1:].isdigit()
    )


def _token(exact: str, start: int, end: int) -> Token:
    return Token(exact, _keys(exact), start, end)


@lru_cache(maxsize=8192)
def _keys(word: str) -> frozenset[str]:
    plain = "".join(letter for letter in normalize("NFKD", word) if not "\u0300" <= letter <= "\u036f")
    keys = {word, plain, lemmatizer()(word, word), _NUMBERS.get(word, word)}
    if plain.isalpha() and len(plain) > _LEAST_STEM and plain.isascii():
        ending = next((end for end in _ENDINGS if plain.endswith(end) and len(plain) - len(end) >= _LEAST_STEM), "")
        keys.add(plain.removesuffix(ending))
    return frozenset(keys)


def _number(text: str) -> str:
    """Return a number in one notation: "1,000" is "1000", "2.50" is "2.5"."""
    sign = "-" if text[0] == "-" else ""
    text = text.lstrip("+-")
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        text = text.replace(",", "")
    elif re.fullmatch(r"\d+,\d+", text):
        text = text.replace(",", ".")
    if "." in text and text.count(".") == 1:
        text = text.rstrip("0").rstrip(".")
    return sign + text


@dataclass(frozen=True, slots=True)
class Mention:
    """A place at which an answer names an option.

    Attributes:
        start: Start of the mention in the answer.
        end: End of the mention.
        option: The option's position.
        kind: "letter" or "text".
        strength: Of a text, twice its tokens, plus 1 if they are equal without inflection. Of a letter, 3 in brackets
            or behind a word such as "option", 2 with a closing bracket, otherwise 1.
        leads: True if a mark follows the letter, as in "B." or "B)", at the start of a sentence.
    """

    start: int
    end: int
    option: int
    kind: str
    strength: int
    leads: bool = False


class Texts:
    """Option texts, prepared for comparisons with answers."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Prepare the texts; "" stands for an unknown text."""
        self.tokens = [tokens_of(cleaned(text))[:_MOST_OF_OPTION] for text in texts]
        self._options_by_key: dict[str, set[int]] = defaultdict(set)
        for option, tokens in enumerate(self.tokens):
            for token in tokens:
                for key in token.keys:
                    self._options_by_key[key].add(option)
        self.wanted = [_without_small(tokens) for tokens in self.tokens]
        self._capitals = [text.strip(" .") if _is_capital_word(text) else "" for text in texts]

    def equal(self, text: str) -> list[int]:
        """Return the options whose text equals a text apart from case, punctuation, articles and inflection."""
        said = _without_small(tokens_of(text))
        if not said:
            return []
        exact = [token.exact for token in said]
        alike = [place for place, wanted in enumerate(self.wanted) if _all_alike(said, wanted)]
        same = [place for place in alike if [token.exact for token in self.wanted[place]] == exact]
        return same or alike

    def mentions(self, text: str, said: Sequence[Token]) -> list[Mention]:
        """Return the places at which a text has an option's text; of overlapping ones, the longest, best one."""
        index: dict[str, list[int]] = defaultdict(list)
        for place, token in enumerate(said):
            for key in token.keys:
                index[key].append(place)
        found: list[Mention] = []
        steps = _MOST_STEPS
        for option, wanted in enumerate(self.wanted):
            if not wanted:
                continue
            joined = "".join(token.exact for token in wanted) if len(wanted) > 1 else ""
            for place in sorted({place for key in (*wanted[0].keys, joined) for place in index.get(key, ())}):
                span = (place, True) if said[place].exact == joined else _matched(said, place, wanted)
                steps -= len(wanted)
                if steps < 0:
                    break
                if span is None or not self._is_name(option, text, said, place):
                    continue
                begin = place
                while begin and said[begin - 1].is_article and text[said[begin - 1].end : said[begin].start] == " ":
                    begin -= 1
                strength = 2 * len(wanted) + span[1]
                found.append(Mention(said[begin].start, said[span[0]].end, option, "text", strength))
        found.sort(key=lambda each: each.start)
        if len(found) > _MOST_MENTIONS:
            found = found[: _MOST_MENTIONS // 2] + found[-_MOST_MENTIONS // 2 :]
        return _longest(found)

    def _is_name(self, option: int, text: str, said: Sequence[Token], place: int) -> bool:
        """Return False for a word in small letters where the option is a letter or a name: "may" for "May"."""
        name = self._capitals[option]
        return not name or len(said) == 1 or text[said[place].start : said[place].end] == name

    def likeliest(self, text: str) -> int | None:
        """Return the option whose distinctive words a text has, where it is clearly one option; otherwise None."""
        said = tokens_of(text)
        words = set[str]().union(*(token.keys for token in said))
        denied = any(token.exact in _DENIALS for token in said)
        content = [token for token in said if token.exact not in _SMALL_WORDS]
        if 0 < len(content) <= _MOST_OF_PART:  # "Leonardo" of "Leonardo da Vinci"
            holders = [
                option
                for option, tokens in enumerate(self.tokens)
                if all(any(not token.keys.isdisjoint(own.keys) for own in tokens) for token in content)
                and denied == any(token.exact in _DENIALS for token in tokens)
            ]
            if len(holders) == 1:
                return holders[0]
        shares = [self._share(option, words, denied=denied) for option in range(len(self.tokens))]
        best, second = (sorted((0.0, 0.0, *shares))[-place] for place in (1, 2))
        clear = best >= _LEAST_SHARE and best - second >= _LEAST_LEAD
        return shares.index(best) if clear or (best >= _LEAST_SHARE_ALONE and not second) else None

    def _share(self, option: int, words: set[str], *, denied: bool) -> float:
        own = [token for token in self.tokens[option] if token.exact not in _SMALL_WORDS]
        if not own or denied != any(token.exact in _DENIALS for token in self.tokens[option]):
            return 0.0
        weights = [1 / self._holders(token) for token in own]
        return sum(weight for token, weight in zip(own, weights, strict=True) if _is_said(token, words)) / sum(weights)

    def _holders(self, token: Token) -> int:
        return len(set[int]().union(*(self._options_by_key[key] for key in token.keys)))


@lru_cache(maxsize=64)
def texts_of(texts: tuple[str, ...]) -> Texts:
    """Return the prepared option texts."""
    return Texts(texts)


_LEAST_SHARE: Final = 0.6
_LEAST_LEAD: Final = 0.25
_LEAST_SHARE_ALONE: Final = 0.5
"""Minimum share if no other option shares a word with the answer."""
_LEAST_PREFIX: Final = 4
_LEAST_ALIKE: Final = 0.6
_MOST_OF_PART: Final = 3


def _is_said(token: Token, words: set[str]) -> bool:
    """Return True if one of some words is a form of a token: "saltando" of "salta"."""
    if not words.isdisjoint(token.keys):
        return True
    word = token.exact
    return (
        len(word) >= _LEAST_PREFIX
        and word.isalpha()
        and any(
            Prefix.similarity(word, other) >= max(_LEAST_PREFIX, _LEAST_ALIKE * max(len(word), len(other)))
            for other in words
            if other[:_LEAST_PREFIX] == word[:_LEAST_PREFIX]
        )
    )


_NAMES_LIKE_WORDS: Final = frozenset(" ".join(_WORDS["names"]).split())


def _is_capital_word(text: str) -> bool:
    """Return True for a single letter, or a name that is also a small word: "May"."""
    bare = text.strip(" .")
    return (len(bare) == 1 and bare.isascii() and bare.isalpha()) or bare in _NAMES_LIKE_WORDS


def _without_small(tokens: list[Token]) -> list[Token]:
    kept = [token for token in tokens if not token.is_article]
    if len(kept) > 1 and kept[0].exact == "to":
        kept = kept[1:]
    return kept or tokens


def _all_alike(one: Sequence[Token], other: Sequence[Token]) -> bool:
    if len(one) == len(other):
        return all(not a.keys.isdisjoint(b.keys) for a, b in zip(one, other, strict=True))
    return "".join(token.exact for token in one) == "".join(token.exact for token in other)


def _matched(said: Sequence[Token], place: int, wanted: Sequence[Token]) -> tuple[int, bool] | None:
    """Return the last token of a match that begins at a place, and True if all forms are equal."""
    exact = said[place].exact == wanted[0].exact
    at = place
    for token in wanted[1:]:
        at += 1
        while at < len(said) and said[at].is_article and said[at].keys.isdisjoint(token.keys):
            at += 1
        if at >= len(said) or said[at].keys.isdisjoint(token.keys):
            return None
        exact = exact and said[at].exact == token.exact
    return at, exact


def _longest(found: list[Mention]) -> list[Mention]:
    """Return mentions of which none overlaps a longer or better one; equally good ones of several options stay."""
    kept: list[Mention] = []
    for mention in sorted(found, key=lambda each: (-each.strength, each.start)):
        rivals = [each for each in kept if each.start < mention.end and mention.start < each.end]
        if all(
            (each.start, each.end, each.strength) == (mention.start, mention.end, mention.strength) for each in rivals
        ):
            kept.append(mention)
    return sorted(kept, key=lambda each: each.start)
