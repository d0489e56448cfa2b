r"""Start and end of an answer: sentences, reasons after it, emphasis around it, letters of choices.

All functions take a text and a span of it, and return a narrower span. A sentence is read up to 600 characters.
"""

import re
from typing import Final

from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of, words

LONGEST_SENTENCE: Final = 600

_END: Final = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_`]{0,3}(?=\s|$)|[。！？]+[”」』》）)\"]{0,2}|\n")
_BEFORE_STOP: Final = re.compile(r"(?:^|[\s(\"'„“\[./-])([^\W\d_]{1,6})\.$")
_ORDINAL: Final = re.compile(r"(?:^|\s)\d{1,3}\.$")
_CLOCK: Final = re.compile(r"\d\s?[ap]\.\s?m\.$")
_NEXT_SENTENCE: Final = re.compile(r"[A-ZÀ-Þ][a-zà-ÿ]+\s")
_INITIAL: Final = re.compile(r"[A-Z]\.(?:\s|[A-Z])")
_AFTER_ORDINAL: Final = re.compile(
    "Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahrh|Platz|Klasse|Liga|Etage|Stock"
)
_BEFORE_NUMBERS: Final = frozenset(
    {"no", "nr", "art", "fig", "vol", "op", "ch", "pp", "abs", "kap", "núm", "al", "im", "max", "min", "co"}
)
_ABBREVIATIONS: Final = frozenset(words("words"))
_CLOSED: Final = re.compile(r"[\"'”’»)\]*_`。！？.!?…]+$")

_AROUND: Final = (
    *(("***", "***"), ("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("```", "```"), ("`", "`"), ("~", "~")),
    *(("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("[[", "]]"), ("==", "==")),
)
_QUOTES: Final = (
    ('"', '"'),
    ("“", "”"),
    ("„", "“"),
    ("„", "”"),
    ("«", "»"),
    ("「", "」"),
    ("‘", "’"),
    ("'", "'"),
    ("»", "«"),
)
_WRAPPED: Final = re.compile(
    r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox|operatorname|textrm|bold|"
    r"boldsymbol)\s?\{(?P<inner>[^{}]*)\}",
    re.DOTALL,
)
_HTML: Final = re.compile(r"<(b|strong|i|em|u|p|span|code)>(?P<inner>[^<>]*)</\1>", re.IGNORECASE)
_ABBREVIATED: Final = re.compile(r"[^\W\d]\.\s?[^\W\d]{1,2}\.$")
_DOTS: Final = re.compile(r"\d\.{3}$|…$")
_MOST_LAYERS: Final = 6

_REASON: Final = re.compile(
    r"\s(?:and not|und nicht|et non|et pas|y no|e non|e não)\s|"
    rf"[\s,;，；]\s{{0,2}}(?:{any_of('because')})|[,;，；—–]\s{{0,2}}(?:{any_of('because', 'aside')})|;|；",
    re.IGNORECASE,
)
_UNSPACED_REASON: Final = re.compile("因为|因為|由于|由於")
_RELATIVE: Final = re.compile(
    r",\s(?:der|die|das|den|dem|dat)\s(?=[\da-zäöü]|.{0,300}\s[a-zäöüß]+\s{0,4}[.!]?\s{0,4}$)"
)
_DASH: Final = re.compile(r"\s(?:[—–-]{1,2})\s(?=(?:\S+\s+){2}\S)|—(?=(?:\S+\s+){2}\S)")
_BRACKET: Final = re.compile(r"(?<=[^\s(（])\s{0,2}[(（]((?:[^()（）]|\([^()]*\)){4,300})[)）]?\s{0,2}[.。!]?\s{0,2}$")
_COLON: Final = re.compile(r"[:：]\s(?=[a-zà-ÿ])")
_CALCULATION: Final = re.compile(r"^\s*[\d(−-].*[=≈]|^[^=]{0,60}\d\s?[=≈]\s?\d")
_POLITE_END: Final = re.compile(
    r"(?:です|でした|だ|である|입니다|이다|이에요|예요|になります|となります)\s{0,2}$|"
    r",?\s(?:of course|obviously|natürlich|bien sûr|por supuesto|claro|instead|after all|i think|i believe|i guess)$",
    re.IGNORECASE,
)
_EMOJI: Final = re.compile(r"[\s\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F]+$")

_BRACKETED: Final = re.compile(r"[(\[（【]{1,2}\s?([A-Za-z]|[А-Д]|[ivxIVX]{1,4})\s?[)\]）】]{1,2}(?=$|[\s.,:;*_–—-])")
_CLOSING: Final = re.compile(r"([A-Ja-j]|[А-Д])[)）](?=$|\s|\S{2})")
_POINTED: Final = re.compile(r"([A-H]|[А-Д])\s?(?:[.:：、。,，](?=\s|$|[^\x00-\x7f])|\s[–—-]\s|$)(?!\s[A-Z]\.)")
_NAMED: Final = re.compile(
    rf"(?:l['’])?{any_of('option')}\s{{0,2}}[(\[（]?([A-H]|[А-Г])[)\]）]?(?=$|[\s.,:;])",
    re.IGNORECASE,
)
_ARTICLE: Final = re.compile(r"(?:la|the|die|le|el|o|a|il|den|de)\s+[(]?([A-H])[)]?[.]?$")
_LATEX_CHOICE: Final = re.compile(
    r"(?:\\(?:textbf|text|mathbf|mathrm|textrm)\s?\{\s*(?:\(([A-J])\)|([A-J])[.)]?)\s*[.:]?\s*\}|\(?\\(?:textbf|"
    r"text|mathbf|mathrm)\s?\{([A-J])\}\)?)"
)


_COMMA: Final = re.compile(r",\s|，")
_UNSPACED_SIGN: Final = re.compile("^[\u3040-\u9fff]")
_LONGEST_END: Final = 42
_INTERVAL: Final = re.compile(r"[\[\](][^\[\]()\n]{1,40}[,;][^\[\]()\n]{1,40}[\[\])]")
_YES_NO: Final = re.compile(
    r"yes|no|ja|nein|oui|non|sí|si|sì|sim|não|да|нет|nee|tak|nie|true|false|wahr|falsch|richtig|vrai|faux|verdadero|"
    r"falso|vero|"
    r"verdadeiro|correct|incorrect",
    re.IGNORECASE,
)
_QUANTITY: Final = re.compile(r"[-−+$€£¥]{0,2}\s?\d[\d.,:/\s]{0,20}\s?[%°]?(?:\s?[^\W\d][\w²³/°%-]{0,14}){0,2}|[A-H]")
_DETERMINER: Final = re.compile(
    r"(?:the|a|an|one|his|her|its|our|my|their|der|die|das|den|dem|ein|eine|einer|le|la|les|un|une|el|los|las|una|"
    r"uno|il|lo|gli|i|"
    r"o|os|as|um|uma|de|het|een)\s|l['’]",
    re.IGNORECASE,
)
_AND: Final = re.compile(r"(?:^|\s)(?:and|or|und|oder|et|ou|y|o|u|e|ed|en|i|и|или)\s", re.IGNORECASE)
_THEN: Final = re.compile(
    r"(?:then|and|or|und|oder|dann|danach|puis|ensuite|et|ou|luego|después|y|poi|e|o|depois|затем|потом|再|然后|又|和|或|并|"
    r"及|以及)"
    r"(?:\s|(?<=[^\x00-\x7f]))",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(
    r"(?:in|on|at|for|with|after|under|from|im|am|bei|nach|mit|dans|en|pour|avec|chez|con|para|nel|nella|per|em|no|"
    r"na|в|на)\s",
    re.IGNORECASE,
)
_EXPLAINS: Final = re.compile(
    r"[a-zà-ÿ]{2,12}(?:ing|ant|ando|endo|iendo)\s|(?:known|born|named|founded|located|used|made)\s"
)
_FULL_NAME: Final = re.compile(r"[A-ZÀ-Þ]\w+(?:\s(?:de|von|van|da|di|del|la|[A-Z]\.))*\s[A-ZÀ-Þ]\w+")
_TITLED: Final = re.compile(r"[A-ZÄÖÜ]\w+\s(?:von|der|des|vom|of|du|de|di|do|da)\s")
_CONDITION: Final = re.compile(
    r"([-−+$€£¥]{0,2}\d[\d.,:/]{0,20}(?:\s?[%°])?(?:\s?[^\W\d][\w²³/°%-]{0,14})??|[A-H]|yes|no|ja|nein|oui|non|sí|sì|"
    r"sim|"
    r"não)\s"
    r"(?:for (?:the|this|these) reasons?|per|according to|when|if|once|after|provided|assuming|including|excluding|"
    r"counting|without|using|by|where|whereas|as|in that|in this|on that|wenn|sobald|ohne|mit|"
    r"inklusive|si|quand|"
    r"lorsque|sans|avec|cuando|sin|con|incluyendo|contando|se|quando|senza|sem|contando|если|когда|and not|und nicht|"
    r"et non|y no|"
    r"e non|e não)\s",
    re.IGNORECASE,
)


def sentences(text: str, left: int, right: int) -> list[Span]:
    """Return the spans of the sentences in a span, without blanks around them.

    Full stops of abbreviations, initials, ordinals and numbers end no sentence; a line break does.
    """
    found = []
    start = left
    for end in _END.finditer(text, left, right):
        stop = end.start()
        mark = end[0]
        if mark == "." and _continues(text, start, stop, right):
            continue
        if (
            mark.startswith("..")
            and re.match(r"\s+[a-zà-ÿ]", text[end.end() : end.end() + 3])
            and "," in text[start:stop]
        ):
            continue
        if (span := trimmed(text, start, end.end()))[0] < span[1]:
            found.append(span)
        start = end.end()
    if (span := trimmed(text, start, right))[0] < span[1]:
        found.append(span)
    return found


def _continues(text: str, start: int, stop: int, right: int) -> bool:
    """Return True if the full stop belongs to an abbreviation, an initial or an ordinal."""
    before = text[max(start, stop - 12) : stop + 1]
    following = text[stop + 1 : min(right, stop + 16)].lstrip()
    if not following or (_CLOCK.search(before) is not None and _NEXT_SENTENCE.match(following)):
        return False
    if (word := _BEFORE_STOP.search(before)) is not None:
        last = word[1]
        if len(last) == 1:
            if _INITIAL.match(following):
                return True
            # "D. A is incorrect" ends after the letter of a choice; "J. S. Bach" does not, nor "z. B. Salz".
            alone = stop - len(last) <= start or not text[start : stop - 1].strip(" (*_")
            choice = last in "ABCDEFGH" and (
                alone or text[max(0, stop - 24) : stop - 1].rstrip().lower().endswith(_COPULAS)
            )
            named = choice and _is_initial(text, stop, right)
            return (last.isupper() and (not choice or named)) or last.islower()
        if last.lower() in _ABBREVIATIONS:
            return last.lower() not in _BEFORE_NUMBERS or following[0].isdigit()
    if _ORDINAL.search(before) and (following[0].islower() or _AFTER_ORDINAL.match(following)):
        return True
    return following[0].islower() and following[0].isascii() and text[stop - 1 : stop].isalpha() and len(before) < 6


_AFTER_INITIAL: Final = re.compile(
    r"\.\s(?!(?:True|False|Yes|No|None|All|Both|Correct|Incorrect)\b)"
    r"(?:[a-zà-ÿ]{3,}|[A-ZÀ-Þ][\w'’-]+(?:\s[A-ZÀ-Þ][\w'’-]+)?)(?:[.!]?\s*$|[.!]?\s*\n|[.!]\s+[A-Z])"
)
_OPTIONS: Final = re.compile(r"^[ \t>*_-]{0,6}\(?[A-H][).:]\s|\([A-H]\)\s|(?<!\w)[A-H]\)\s|\boptions?\b", re.MULTILINE)
_MOST_BEFORE: Final = 4_000


def _is_initial(text: str, stop: int, right: int) -> bool:
    """Return True if the letter before a full stop is that of a name: "E. coli", and no options stand before."""
    if _AFTER_INITIAL.match(text[stop : min(right, stop + 80)]) is None:
        return False
    line = text.rfind("\n", 0, stop) + 1
    return _OPTIONS.search(text[max(0, line - _MOST_BEFORE) : max(line, stop - 1)].rstrip("(*_ ")) is None


_COPULAS: Final = (" is", " ist", " est", " es", ":", " be", "是", " è", " é", " option", " answer")


def trimmed(text: str, left: int, right: int) -> Span:
    """Return a span without blanks around it."""
    inner = text[left:right]
    stripped = inner.lstrip()
    left += len(inner) - len(stripped)
    return left, left + len(stripped.rstrip())


def last_match(pattern: re.Pattern[str], text: str, left: int) -> re.Match[str] | None:
    """Return the last match of a pattern at or after `left`, or None without a match."""
    last = pattern.search(text, left)
    if last is not None:  # hardly ever, so that most calls create no iterator
        for match in pattern.finditer(text, left):
            last = match
    return last


def tidied(text: str, left: int, right: int) -> Span:
    r"""Return a span without emphasis, quotes, `$…$` or `\text{…}` around it, and without a final full stop."""
    left, right = trimmed(text, left, right)
    inner = text[left:right]
    left = min(left + len(inner) - len(inner.lstrip(" ,;，；、。")), max(left, right - 1))
    for _ in range(_MOST_LAYERS):
        before = left, right
        left, right = without_stop(text, *_without_quotes(text, *_without_emphasis(text, left, right)))
        if (left, right) == before:
            break
    return left, right


def _without_emphasis(text: str, left: int, right: int) -> Span:
    for opening, closing in _AROUND:
        first, last = left + len(opening), right - len(closing)
        if first >= last or not text.startswith(opening, left) or not text.endswith(closing, left, right):
            continue
        inner = text[first:last]
        if opening not in inner and (opening != "_" or " " in inner):
            left, right = trimmed(text, first, last)
    for pattern in (_HTML, _WRAPPED):
        if (wrapped := pattern.fullmatch(text, left, right)) is not None:
            left, right = trimmed(text, *wrapped.span("inner"))
    return left, right


def _without_quotes(text: str, left: int, right: int) -> Span:
    for opening, closing in _QUOTES:
        if right - left > 2 and text[left] == opening and text[right - 1] == closing:
            inner = text[left + 1 : right - 1]
            if opening not in inner and closing not in inner:
                left, right = trimmed(text, left + 1, right - 1)
    return left, right


def without_stop(text: str, left: int, right: int) -> Span:
    """Return a span without its final full stop, unless this belongs to an abbreviation, a number or dots."""
    if right - left > 1 and text[right - 1] in ".。．,;，；:：、":
        answer = text[left:right]
        word = answer[-40:].rstrip(".").rsplit(" ", 1)[-1].lower()
        if answer.endswith("..") or (
            answer.endswith(".")
            and (_ABBREVIATED.search(answer[-16:]) or (word in _LAST_ABBREVIATIONS and len(word) > 1))
        ):
            return left, right
        return trimmed(text, left, right - 1)
    return left, right


_LAST_ABBREVIATIONS: Final = frozenset({"jr", "sr", "etc", "inc", "ltd", "co", "usw", "bzw", "p.m", "a.m"})


def first_clause(text: str, left: int, right: int) -> Span:
    """Return the answer at the start of a span, without what explains it: reasons, relative clauses, brackets.

    "42 because 6*7=42" gives "42". Lists, decimals, times, ratios, titles and addresses stay whole.
    """
    right = min(right, left + 2 * LONGEST_SENTENCE)
    if (listed := sentences(text, left, right)) != []:
        left, right = listed[0]
    limit = min(right, left + LONGEST_SENTENCE)
    cuts = [right]
    for found in (_REASON, _UNSPACED_REASON):
        for reason in found.finditer(text, left + 1, limit):
            if not _enclosed(text, left, reason.start()):
                cuts.append(reason.start())
                break
    inner = text[left:limit]
    if (relative := _RELATIVE.search(inner)) is not None and not _enclosed(inner, 0, relative.start()):
        cuts.append(left + relative.start())
    if (dash := _DASH.search(inner)) is not None and dash.start() and not _is_number_list(inner):
        cuts.append(left + dash.start())
    if (colon := _COLON.search(inner)) is not None and colon.start() and len(inner[: colon.start()].split()) <= 4:
        cuts.append(left + colon.start())
    cuts += [left + place for place in (_explained(inner), _conditioned(inner)) if place is not None]
    right = min(cuts)
    return without_brackets(text, *trimmed(text, left, right))


def _is_number_list(inner: str) -> bool:
    return bool(re.fullmatch(r"[\d\s.,–—-]+", inner))


def _explained(inner: str) -> int | None:
    """Return the place of a comma that an explanation follows, as in "Mars, the fourth planet"; None in a list."""
    comma = next((each.start() for each in _COMMA.finditer(inner) if not _enclosed(inner, 0, each.start())), -1)
    if comma <= 0:
        return None
    head, tail = inner[:comma].strip(), inner[comma + 1 :].strip(" .。!")
    if not tail or _THEN.match(tail) is not None or re.match(r"[-−+$€£]?\d|[(\[]", tail) is not None:
        return None
    parts = _COMMA.split(tail)
    if _UNSPACED_SIGN.match(tail) is not None:
        listed = "、" in inner or (len(parts) > 1 and max(map(len, parts)) <= 5)
        return None if listed or len(tail) < 4 or len(head) > 10 else comma
    if _YES_NO.fullmatch(head) is not None or _QUANTITY.fullmatch(head) is not None:
        return None if len(tail.split()) < 2 or _AND.search(tail) is not None else comma
    return None if len(tail.split()) < 3 or _may_be_listed(head, tail, parts) else comma


def _may_be_listed(head: str, tail: str, parts: list[str]) -> bool:
    """Return True if the parts of a list may be its first and others: all with an article or none, or short ones."""
    article = _DETERMINER.match(head) is not None
    explains = (
        _DETERMINER.match(tail) is not None
        or _EXPLAINS.match(tail) is not None
        or _FULL_NAME.fullmatch(head) is not None
    )
    return (
        len(head.split()) > 5
        or (_PLACE.match(head) is not None and not explains)
        or (_AND.search(tail) is not None and (article or not explains))
        or (tail[0].isupper() and not _TITLED.match(tail) and not explains)
        or (article and explains and (len(tail.split()) <= 3 or len(parts) > 1))
        or (len(parts) > 1 and all(len(part.split()) <= 3 for part in parts))
    )


def _conditioned(inner: str) -> int | None:
    """Return the end of a number, letter or "yes" at the start if a condition follows: "64 when you include it"."""
    found = _CONDITION.match(inner)
    return found.end(1) if found is not None else None


def _enclosed(text: str, left: int, place: int) -> bool:
    """Return True if a place is within quotes or brackets."""
    before = text[left:place]
    if "[" in before or "]" in before:  # brackets of intervals may differ: "(2, 5]", "[2; 5["
        if any(each.start() < place < each.end() for each in _INTERVAL.finditer(text, left, place + _LONGEST_END)):
            return True
        before = _INTERVAL.sub("", before)
    return (
        before.count('"') % 2 == 1
        or before.count("(") > before.count(")")
        or any(
            before.rfind(opening) > before.rfind(closing)
            for opening, closing in (("“", "”"), ("«", "»"), ("《", "》"), ("「", "」"), ("（", "）"))
        )
        or before.count("`") % 2 == 1
    )


def without_brackets(text: str, left: int, right: int) -> Span:
    """Return a span without an explanation in brackets at its end: at least three words, or four Chinese signs."""
    found = _BRACKET.search(text, left, min(right, left + LONGEST_SENTENCE))
    if found is None or found.start() <= left:
        return left, right
    inner = found[1]
    if len(inner.split()) >= 3 or sum("\u3040" <= sign <= "\u9fff" for sign in inner) >= 4:
        return trimmed(text, left, found.start())
    return left, right


def without_end(text: str, left: int, right: int) -> Span:
    """Return a span without a closing courtesy such as です, "of course" or an emoji."""
    if (emoji := _EMOJI.search(text, max(left, right - 12), right)) is not None and emoji.start() > left:
        right = emoji.start()
    if right and text[right - 1] in ".。!！":
        inner = right - 1
        if (polite := _POLITE_END.search(text[max(left, inner - 20) : inner])) is not None:
            right = inner - len(polite[0])
    elif (polite := _POLITE_END.search(text[max(left, right - 20) : right])) is not None:
        right -= len(polite[0])
    return trimmed(text, left, right)


def choice(text: str, left: int, right: int, *, pointed: bool = True) -> Span | None:
    """Return the span of the letter if an answer begins with that of a choice, as "(C) 15" does; otherwise None.

    Args:
        text: The text that contains the answer.
        left: Start of the answer.
        right: End of the answer.
        pointed: True if "C. 15" and "C: 15" count as choices too. "A. Lincoln" is a name.
    """
    answer = text[left:right]
    patterns = (_LATEX_CHOICE, _BRACKETED, _CLOSING, *((_NAMED, _ARTICLE, _POINTED) if pointed else ()))
    for pattern in patterns:
        if (found := pattern.match(answer)) is None:
            continue
        group = found.lastindex or 1
        if pattern is _NAMED and found[group].islower():
            continue
        if pattern is _POINTED and _is_initial(text, left + found.end(group), right):
            continue
        if _OTHER_CHOICE[pattern].match(answer, found.end()) is not None:
            return None  # a list of parts, "(a) the Main, (b) the Neckar", or of letters, "A, C and D"
        return left + found.start(group), left + found.end(group)
    return None


_NO_OTHER: Final = re.compile(r"(?!)")
_OTHER_PART: Final = re.compile(r".{0,600}?(?:^|[\s,;])\(?[b-jB-J2-9]\)", re.DOTALL)
_OTHER_CHOICE: Final = {
    **dict.fromkeys((_LATEX_CHOICE, _NAMED, _ARTICLE), _NO_OTHER),
    **dict.fromkeys((_BRACKETED, _CLOSING), _OTHER_PART),
    _POINTED: re.compile(r"(?<=[,，])\s*[A-H]\b"),
}
