"""Answers without a mark: a last short line, the result of a calculation, bold text, a conclusion, a list, or all."""

import re
from typing import Final

from gradewire_proto.final_answer.assertions import calculated, quantity
from gradewire_proto.final_answer.chat import opened
from gradewire_proto.final_answer.clauses import choice, first_clause, sentences, tidied, trimmed
from gradewire_proto.final_answer.found import Found, asserted, bold_in, finish, joined
from gradewire_proto.final_answer.marks import list_items, total_row
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of

_MOST_READ: Final = 1200
_LETTER: Final = re.compile(r"[A-J][.)]?")
_REASONED_LETTER: Final = re.compile(
    rf"[*_]{{0,3}}((?-i:[A-H]))[*_]{{0,3}}(?:[,，]?\s?(?:{any_of('because')})(?!\w)|,\s(?:{any_of('aside')})\s|"
    rf"\s[—–-]\s\S+\s\S)",
    re.IGNORECASE,
)
_WRAPPED_LINE: Final = re.compile(r"`[^`\n]{1,60}`")
_REPLIED: Final = re.compile(
    r"\s*(?:yes|no|ja|nein|oui|non|sí|no|sì|sim|não|да|нет|true|false|correct|incorrect)\s?[:;,—–-]\s", re.IGNORECASE
)
_ITEM: Final = re.compile(r"[|#*•>\\-]|\d+[.)]\s")
_ARITHMETIC: Final = re.compile(
    r"[\d)²³%!]\s?[-+*/×·÷−:=≈x]\s?[\d(]|=\s?\d|\d\s?(?:(?:and|plus|und|et|y|km|g|kg)(?!\w)|€)"
)
_UNKNOWN: Final = re.compile(r"(?<![A-Za-z])[xyz](?![A-Za-z])\s?(?:[-+^²³*/)]|\\)")
_SUM: Final = re.compile(r"=\s?\d")
_PART: Final = re.compile(r"[,，、;；](?=\s?\S)(?!\d)")
_SOLUTIONS: Final = re.compile(
    r"[\w)]\s?=\s?[^\s=][^=]{0,79}?\b(?:or|oder|ou|o|and|und|et|y|e)\b[\s}\\$]{0,4}[^\W\d]\w{0,3}\s?=|"
    r"=[^=]{1,40}或[^=]{1,40}="
)
_LABELLED_CODE: Final = re.compile(r"[^\n:]{1,80}:\s(`[^`\n]{1,80}`|\*\*[^*\n]{1,80}\*\*)[.]?")
_CONSEQUENCE: Final = re.compile(
    rf"[,;，；—–]\s?(?:(?:and|und|et|y|e)\s)?(?:{any_of('so')}|which (?:makes|gives|leaves|adds up to|comes to|means)|"
    r"for a total of|leaving|adding up|total+ing|resulting|meaning|that (?:leaves|makes|gives)|(?:we|you|i) (?:get|"
    r"obtain|find)|"
    r"wobei|womit|wodurch|erhält man|ergibt sich|ce qui (?:fait|donne|laisse)|on (?:obtient|trouve)|pour un total|"
    r"(?:con |por )?lo que|obtenemos|para un total|il che|per cui|si ottiene|o que|obtemos)(?!\w)\s?|"
    rf"[,，、](?:{any_of('so')})|"
    r"[,，]\s?[^\W\d]\w{0,14}\s(?:\w{1,12}\s){0,3}?(?=(?:also|somit|damit|donc|por tanto|portanto)\s)|"
    r"(?<=\d)\s(?:so|giving|leaving|making)\s|[;；]\s?(?=\d)|"
    r"^(?:so|thus|hence|therefore|also|donc|entonces|quindi)[\s,]\s?|[,，]\s(?:making|or|giving|was|"
    r"macht)\s(?=\D{0,24}\d)",
    re.IGNORECASE,
)
_TOTALS: Final = re.compile(
    r"(?:altogether|in total|in all|so|thus|hence|therefore|then|insgesamt|zusammen|also|somit|damit|en tout|"
    r"au total|donc|"
    r"en total|entonces|in totale|quindi|no total)(?!\w)[\s,]{1,2}(?=\D{1,40}\d[\d.,]*\s?\w{0,20}\s?\w{0,12}[.!]?$)",
    re.IGNORECASE,
)
_LONGEST_SUM: Final = 120
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d\s?[.!]?")
_TAIL_TOTAL: Final = re.compile(
    r"\s(?:altogether|in all|in total|together|left|remaining|insgesamt|zusammen|übrig|en tout|au total|en total|"
    r"in totale|no total)"
    r"\s?[.!]?$",
    re.IGNORECASE,
)
_RESULT: Final = re.compile(r"[=≈]\s?[$€£]?(\d[\d.,]*\d|\d)")
_NO_UNIT: Final = r"(?:in|on|at|for|left|and|or|to|is|are|im|in|an|und|übrig|en|et|dans|y|e|da|con|with)"
_WORDED: Final = re.compile(
    r"\d[^.\n]{0,60}?\b(?:plus|minus|times|divided by|multiplied by|mal|geteilt durch|fois|divisé par|más|menos|più|"
    r"meno|vezes)\s"
    r"[^.\n]{0,60}?\b(?:is|makes|gives|equals|ist|sind|ergibt|macht|font|fait|égale|es|son|da|fa|é|são)\s"
    r"(\d[\d.,:]*(?:\s[^\s\d.,;:!?]+)?)\s?[.!]?$",
    re.IGNORECASE,
)
_COUNT: Final = re.compile(r"\d[\d.,]*")
_OR: Final = re.compile(r"\s(?:or|and|oder|und|ou|et|o|y|e)\s")
_EQUATION: Final = re.compile(r"\$?[a-zA-Z]\s?[=≈]\s?[^=≈\n]{1,40}")
_SO: Final = re.compile(
    rf"(?:^|(?<=[,;，；.。—–\n])\s?|(?<=[,;.—–\n]\s))(?:(?:and|und|et|y)\s)?(?:(?:{any_of('so')})[,，:：]?\s{{0,2}}){{1,2}}"
    r"(?!\s{0,2}it (?:is|was) (?:\w+ly\s)?(?:also|best|common|difficult|hard|important|impossible|necessary|often|"
    r"possible|"
    r"typically|generally|usually|considered|recommended|not|found|known|made|seen|used|\w+ed)(?!\w))"
    rf"(?=(?P<equation>[a-zA-Z]\s?=)|(?:{any_of('it_is')})(?!\w)|(?:about\s)?[-−$€£]?\d)",
    re.IGNORECASE,
)
_MUST_BE: Final = re.compile(
    r"(?:es|das|dies) (?:muss|kann|dürfte|müsste) (?:sich )?(?:also|daher|somit|demnach|folglich|wohl|"
    r"nur)\s(?:(?:um|nur)\s)?"
    r"(?P<true>[^,.;\n]{1,60}?)\s(?:sein|handeln)(?=[,.;\s]|$)",
    re.IGNORECASE,
)
_CALLED: Final = re.compile(
    r"\s(?:is|are) (?:called|known as|termed)\s|\sheißt\s|\s(?:nennt man|wird) (?=[^.]{1,40} genannt)|"
    r"\ss['’]appelle\s|\sse llama\s|\ssi chiama\s|(?:叫做|称为|被称为|叫作)",
    re.IGNORECASE,
)
_MAKES: Final = re.compile(
    r"(?<![a-zà-ÿ])(?:that makes|that is|that gives|this makes|gives|makes|macht zusammen|macht|ergibt|cela fait|"
    r"ça fait|"
    r"cela donne|font|"
    r"eso da|eso hace|son|dan|fanno|fa|isso dá|dá|在一共是|一共是|一共有|总共是|总共有|共有|共是|left with|in total|"
    r"en total|"
    r"that is|soit|that's|,\s?i\.e\.|合计|合計|это|razem|samen)\s?[:：]?\s?(?=[\d$€£]|one|two)",
    re.IGNORECASE,
)


def lone_line(original: str, text: str, end: int) -> Found | None:
    """Return the last line before `end` if it is a letter, or short and apart from prose before it; otherwise None."""
    said = text[:end].rstrip()
    start = said.rfind("\n") + 1
    left, right = trimmed(text, start, len(said))
    before = text[:start].rstrip()
    if not before or left >= right:
        return None
    line = text[left:right]
    letter = choice(text, left, right, pointed=False) if right - left <= 4 else None
    if letter is None and _LETTER.fullmatch(line) is not None and before[-1] not in ":：":
        letter = left, left + 1
    if letter is not None:
        return Found(*letter, "line")
    apart = "\n" in text[len(before) : start].replace("\n", "", 1)
    prose = before[-1] in ".!?。！？:：)" or before.endswith("---")
    headed = line.rstrip("*_ ").endswith((":", "："))
    apart = apart or _WRAPPED_LINE.fullmatch(original, left, right) is not None
    return finish(original, left, right, "line") if apart and prose and not headed and _is_short(line) else None


def _is_short(line: str) -> bool:
    """Return True if a line may be an answer by itself: at most six words, and no sentence, item or equation."""
    words = len(line.split())
    sentence = words > 3 and line.rstrip("*_`")[-1:] in ".!?。！？:："
    return words <= 6 and len(line) <= 60 and _ITEM.match(line) is None and "=" not in line and not sentence


def _row(original: str, text: str, end: int) -> Found | None:
    row = total_row(text[:end])
    return None if row is None else Found(*tidied(original, row.left, row.right), "line")


def _calculation(original: str, text: str, end: int) -> Found | None:
    """Return the result of a calculation that the last sentence shows or sums up."""
    begin = max(0, end - _MOST_READ)
    listed = sentences(text, begin, end)
    if not listed:
        return None
    left, right = listed[-1]
    if len(listed) == 1 and _REPLIED.match(text, left) is not None:
        return None  # the calculation is the reason
    span: Span | None = None
    if _ARITHMETIC.search(text, begin, end) is not None:
        concluded = _concluded(text, begin, left, right)
        equated = _made(text, left, right) or _equated(text, left, right)
        restated = _restated(text, begin, left, right)
        span = concluded if concluded and "=" not in text[concluded[0] : right] else restated or equated
    span = span or _concluded(text, begin, left, right) or _worded(text, left, right)
    equations = _OR.split(text[left:right].rstrip(".$ "))
    if all(map(_EQUATION.fullmatch, equations)) and len(listed) > 1:
        span = left, right
    elif span is None and len(listed) > 1 and _SUM.search(text, begin, listed[-2][1]) is not None:
        span = quantity(text, left, right)
    return None if span is None else finish(original, *span, "calculation")


def _made(text: str, left: int, right: int) -> Span | None:
    """Return the amount after "that makes", "in total" and the like."""
    last = None
    for found in _MAKES.finditer(text, left, right):
        last = found
    if last is None or "=" in text[last.end() : right]:
        return None
    return _short(text, *first_clause(text, last.end(), right))


def _equated(text: str, left: int, right: int) -> Span | None:
    """Return the result after the last sign of equality."""
    sentence = text[left:right]
    if ("=" not in sentence and "≈" not in sentence) or not _reckons(sentence) or _SOLUTIONS.search(sentence):
        return None
    last = _PART.split(sentence)[-1]
    begin = right - len(last) if "=" in last else left
    return calculated(text, *tidied(text, begin, right))


def _reckons(sentence: str) -> bool:
    """Return True if a sentence is arithmetic: a number before its last equals sign, no unknown there, and no code."""
    before = re.split("[=≈]", sentence)[-2]
    if _UNKNOWN.search(before) is not None:
        return False
    return (re.search(r"\d", sentence[: sentence.rfind(before) + len(before)]) is not None) and not re.search(
        r"://|==|[?&]\w+=|\w\(\w+=|[;{]$", sentence
    )


def _concluded(text: str, begin: int, left: int, right: int) -> Span | None:
    """Return the only quantity in the part of a sentence that concludes from two numbers: ", so each gets 45 cents"."""
    last = None
    for found in _CONSEQUENCE.finditer(text, left, right):
        last = found
    counted = _TAIL_TOTAL.search(text, left, right)
    if last is None and counted is not None:
        for found in _PART.finditer(text, left, right):
            last = found
    if last is None and left > begin:
        last = _TOTALS.match(text, left, right)
    if last is None or len(_COUNT.findall(text[begin : last.start()])) < 2:
        return None
    if last[0].strip(" ,").lower() == "or" and re.fullmatch(r"[\d\s,.]+", text[left : last.start()]):
        return None  # "6, 7, or 8"
    weak = last[0].strip(" ,，").lower() in {"making", "or", "giving", "was", "macht"}
    if weak and counted is None and _ARITHMETIC.search(text, begin, last.start()) is None and len(text) > _LONGEST_SUM:
        return None
    span = quantity(text, last.end(), right, most=2)
    return None if span is None or _YEAR.fullmatch(text, *span) is not None else span


def _restated(text: str, begin: int, left: int, right: int) -> Span | None:
    """Return the number of a sentence that restates the result of a calculation before it, with its unit."""
    results = list(_RESULT.finditer(text, begin, right))
    if not results:
        return None
    result = results[-1]
    unit = rf"(?:\s(?!{_NO_UNIT}\b)[^\s\d.,;:!?]+|[\u3040-\u9fff]{{1,3}}(?=[。，]|$))?"
    again = rf"(?<![A-Za-z\d.,−-]){re.escape(result[1])}(?!\d){unit}"
    found = re.compile(again).search(text, max(left, result.end()), right)
    return None if found is None else found.span()


def _worded(text: str, left: int, right: int) -> Span | None:
    """Return the result of a calculation in words: "9:40 plus 35 minutes is 10:15"."""
    found = _WORDED.search(text, left, right)
    return None if found is None else found.span(1)


def _short(text: str, left: int, right: int) -> Span:
    inner = text[left:right]
    found = re.match(r"\S+(?:\s(?!in\b|en\b|im\b|zusammen|altogether)\S+){0,6}", inner)
    return (left, left + found.end()) if found else (left, right)


def _bold(original: str, text: str, end: int) -> Found | None:
    """Return the last paragraph's only bold text if its sentence ends with it or it is a number."""
    del text
    span = bold_in(original, max(original.rfind("\n", 0, end) + 1, end - 2 * _MOST_READ), end)
    return None if span is None else finish(original, *span, "line")


def _code(original: str, text: str, end: int) -> Found | None:
    """Return the code or bold text after a colon at the end of the last line."""
    del text
    found = _LABELLED_CODE.fullmatch(original[:end].rstrip(), original.rfind("\n", 0, end) + 1)
    return None if found is None else finish(original, *found.span(1), "line")


def _conclusion(original: str, text: str, end: int) -> Found | None:
    """Return the answer of a last sentence that concludes ("so it must be 5") or names ("is called a starter")."""
    listed = sentences(text, max(0, end - 1200), end)
    if not listed:
        return None
    left, right = listed[-1]
    last = None
    for found in _SO.finditer(text, left, right):
        last = found
    if (must := _MUST_BE.match(text, left, right)) is not None:
        return finish(original, *must.span("true"), "line")
    if (
        last is not None
        and last[0].strip(" ,.;").lower() == "then"
        and re.search(r"\d", text[last.end() : right]) is None
    ):
        last = None
    if last is not None and (last["equation"] or text[: last.start()].strip()):
        return asserted(original, text, last.end(), right, "line")
    for found in _CALLED.finditer(text, left, right):
        last = found
    if (
        last is not None
        and len(listed) > 1
        and len(text[last.end() : right].split()) <= 5
        and (len(text[left : last.start()].split()) >= 5 or not last[0][0].isspace())
    ):
        return finish(original, *first_clause(text, last.end(), right), "line")
    return None


def _items(original: str, text: str, end: int) -> Found | None:
    del text
    left, right = trimmed(original, 0, end)
    if (items := list_items(original, left, right)) != []:
        return joined(original, items, "whole")
    return None


def unmarked(original: str, text: str, end: int) -> Found | None:
    """Return an answer that needs no mark, before the position `end`; None if only the whole text is an answer."""
    for find in (_row, _calculation, _code, _bold, _conclusion, _items, opened):
        if (found := find(original, text, end)) is not None:
            return found
    return None


def whole(original: str, text: str, end: int) -> Found:
    """Return the whole text, or its letter if it is a choice."""
    left, right = trimmed(text, 0, end)
    left, right = trimmed(original, left, right)
    if len(original[:left].strip("*_> \n")) == 0:
        left = len(original) - len(original.lstrip())
    if text[right:].strip() == "":
        right = len(original.rstrip())
        left -= len(original[:left]) - len(original[:left].rstrip("*_"))
    narrow = tidied(original, left, right)
    if (letter := choice(original, *narrow, pointed=False)) is not None or (
        (letter := choice(original, *narrow)) is not None and narrow[1] - narrow[0] <= 2
    ):
        return Found(*letter, "whole")
    if (reasoned := _REASONED_LETTER.match(original, left, right)) is not None:
        return Found(*reasoned.span(1), "whole")
    if (
        named := re.fullmatch(
            r"(?:Option|Choice|Antwort|Réponse|Opción|选项?)\s?\(?([A-H])\)?", original[slice(*narrow)]
        )
    ) is not None:
        return Found(narrow[0] + named.start(1), narrow[0] + named.end(1), "whole")
    return Found(*(narrow if original[left:right].rstrip(".")[-1:] in '*_`$"”' else (left, right)), "whole")
