"""Phrases that announce a final answer ("the answer is", "Antwort:", "#### 12", "I choose C"), in several languages."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final

from gradewire_proto.final_answer.clauses import first_clause, trimmed
from gradewire_proto.final_answer.marks import Statement
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of

_NUMBER: Final = r"(?:\s?(?:\d{1,3}|\#\d{1,3}|(?-i:[A-H])|\([ivx\da-h]{1,4}\))(?=\s?[:：=]))?"
_ASIDE: Final = r"(?:\s?[(（][^()（）\n]{0,80}[)）])?"
_WORD: Final = (
    r"(?!(?:it|he|she|they|not|isn|aren|wasn|no|non|nicht|pas|n|niet|nie|не|is|are|ist|est|es|era|kein|keine|cannot|lautet|lauten|heißt|sind|war|"
    r"beträgt|bleibt|sont|sera|será|son|fue|foi|was|were|remains|equals|comes|"
    r"would|could|will|can|but|because|when|if|"
    r"never)\b)[^\W\d_][\w'’-]*"
)
_QUALIFIED: Final = rf"(?:[ \t]{{1,4}}{_WORD}){{0,6}}?"
_UNSPACED: Final = r"(?:(?![是为為选選在不。，、：；！？])[\u3040-\u9fff\uac00-\ud7af]){0,8}?"
_SIGN: Final = (
    r"(?:[:：]{1,2}|[-=]>|=(?!=)|(?<=\s)of(?=\s[\d$€£−-])|[→⇒➜➡]\ufe0f?|"
    r"(?<=ans|odp|ntw)\.(?=\s)|(?<=\s)[—–-]{1,2}(?=\s)|(?<=\w)[—–](?=\w|\s)|['’]s(?=\s(?!\w+\s(?:is|are|was|were)\b)))"
)
_COPULA: Final = (
    rf"(?:[ \t]{{1,4}}|(?<=[^\x00-\x7f]))(?:(?P<maybe>{any_of('maybe')})|"
    rf"(?P<is>(?!选[项择])(?:{any_of('is')}|(?<=odpowiedź\s)to(?=\s)|(?<=答)(?=[A-H]\b))))\s{{0,4}}[:：]?"
)

_INSERTED: Final = r"(?:\s[\"“][^\"”\n]{1,120}[\"”]|,\s[^,.:\n]{1,40},)?"

_ANSWER: Final = re.compile(
    rf"(?:(?P<strong>{any_of('answer')})|(?P<weak>{any_of('result')})){_NUMBER}{_ASIDE}"
    rf"(?:(?:{_QUALIFIED}|{_UNSPACED})(?:,\s[^,.:：\n]{{1,40}}?)?{_ASIDE}[ \t]{{0,8}}(?P<sign>{_SIGN})|"
    rf"(?:{_QUALIFIED}|{_UNSPACED}){_INSERTED}{_COPULA})",
    re.IGNORECASE,
)
_MENTION: Final = re.compile(rf"(?={any_of('answer', 'result')})", re.IGNORECASE)
_MOST_MENTIONS: Final = 150
_INVERTED: Final = re.compile(
    r"(?<!\w)(?:ist|lautet|beträgt|wäre|heißt)\s(?:die|das|der|meine|unsere)\s(?:[a-zäöü]+\s)?"
    rf"(?:{any_of('answer', 'result')})\s?[:：]?\s(?=[^\s.,;!?])",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    r"(?:^|(?<=[.!?\n])[ \t]?|(?<=[.!?:,]\s)|(?<=[。，]))(?:(?:so|thus|hence|therefore|also|somit|donc|"
    r"所以|因此)[\s,，]{0,2})?"
    r"(?P<named>(?!(?:this|that|it|which|here|there|what|das|dies|hier|es|c|ce|voici|esta|esto|这|那|以上|not|who)(?!\w))"
    r"[^\n.!?:;,，。]{1,60}?)"
    r"(?:\s(?:is|must be|ist|est|es|è|é)\s"
    r"(?:therefore\s|thus\s|also\s|donc\s)?(?:the|my|die|la|mi|ma)\s(?:[^\W\d_]{1,16}\s){0,2}?|"
    r"(?:就|才|便)?是(?:正确|最终)?的?)"
    rf"(?:{any_of('answer')})(?=\s?(?:[.!,;。，]|$|\n|\s(?:because|since|weil|car|porque|to)\b))",
    re.IGNORECASE | re.MULTILINE,
)
_APPOSED: Final = re.compile(
    rf",\s(?P<named>[^,.\n]{{1,30}}),\s(?:is|ist|est|es|è|é)\s(?:the|die|la)\s(?:{any_of('answer')})(?!\w)",
    re.IGNORECASE,
)
_CORRECT: Final = re.compile(
    r"(?:\b(?:the|der|die|das|la|le|lo|el|il|o|a)\s)?(?:\b(?:correct|right|best|exact|actual|true|richtige|richtiger|"
    r"richtiges|"
    r"korrekte|bonne|bon|"
    r"correcta|correcto|corretta|corretto|giusta|giusto|certa|certo|juiste|правильный|правильная|правильное)|正确的?|正確的?)"
    rf"(?:\s(?!(?:{any_of('because')}|that|when|and|but|"
    rf"as)\b)[^\W\d_][\w-]{{0,20}}){{0,5}}?(?:[\u3040-\u9fff]{{0,4}}?){_COPULA}",
    re.IGNORECASE,
)
_HASHES: Final = re.compile(r"^[ \t]{0,4}####[ \t]{0,8}(?=\S)", re.MULTILINE)
_HEADING: Final = re.compile(
    rf"^[ \t]{{0,8}}(?:#{{1,6}}[ \t]{{1,4}})?(?:\d{{1,2}}[.)][ \t]{{1,2}})?[^\w\n]{{0,8}}"
    rf"(?:[^\W\d_]{{1,16}}[ \t]{{1,2}}){{0,2}}?(?:(?P<strong>{any_of('answer')})|(?P<weak>{any_of('result')}))"
    r"(?:[ \t]{1,2}[^\W\d_]{1,16}){0,2}"
    r"(?P<end>[ \t]{0,8}[:：]?[ \t]{0,8}\n(?:[ \t]{0,4}[=-]{3,80}[ \t]{0,4}\n)?)",
    re.IGNORECASE | re.MULTILINE,
)
_REPLY: Final = re.compile(r"^[ \t]{0,4}(?:A|R)[ \t]?(?P<colon>[:：])[ \t]{1,4}(?=\S)", re.MULTILINE)
_OTHER_LINE: Final = re.compile(r"^[ \t]{0,4}(?:[B-H])[ \t]?[:：.)]", re.MULTILINE)
_ASKED: Final = re.compile(r"(?:^|\n)[ \t]{0,4}(?:Q|F|P|问|Question|Frage)[ \t]?[:：]")

_BEFORE: Final = re.compile(
    r"(?:\b(?:if|whether|why|how|hope|wenn|ob|falls|warum|si|se|what|where|that's what|says|this|diese|esta|cette|"
    r"questa|these|my previous)\s"
    r"(?:(?:the|an|my|your|die|la|una|final|correct)\s){0,2}|"
    r"(?!i\s)\w{1,12}\s(?:might|would|could|may|will)\s(?:think|say|guess|assume|expect|"
    r"believe)\s(?:that\s)?(?:the\s)?|"
    r"以上|如果|上述)$",
    re.IGNORECASE,
)
_OTHER_ANSWER: Final = re.compile(
    r"(?:wrong|incorrect|initial|first|original|previous|earlier|knee-jerk|naive|tempting|intuitive|obvious|common|"
    r"popular|usual|gut|"
    r"instinctive|long|longer|full|detailed|old|hasty|tentative|quick|expected|falsche|erste|ursprüngliche|spontane|"
    r"häufige|übliche|"
    r"frühere|lange|ausführliche|fausse|mauvaise|première|longue|primera|larga|prima|lunga|primeira|longa|第一个|错误的?|"
    r"原来的|详细)\s?$",
    re.IGNORECASE,
)
_GUESS: Final = re.compile(r"my (?:guess|pick|choice|vote)|meine wahl|mon choix|mi elección", re.IGNORECASE)
# Small letters only: "Just" may be a name.
_SKIP: Final = re.compile(rf"(?:[\s:：,，=]|(?:that|dass)\s|{any_of('therefore')}(?=[\s,，:：]|[^\x00-\x7f])){{0,8}}")
_VAGUE: Final = re.compile(
    rf"(?:(?:not|quite|also|always|very|so|too|therefore|"
    rf"indeed)\s)?(?:{any_of('vague')})(?=\s{{0,2}}(?:[.,;:!?)。，！？]|$|"
    r"\s(?:in|on|because|if|as|by|when|and|but|from|to|for|since|that|with|weil|wenn|und|si|car|porque|given|the|of|"
    r"at)\b))",
    re.IGNORECASE,
)
_FINAL: Final = re.compile(r"final\s(?!(?:is|was|answer)(?!\w))[^\W_]", re.IGNORECASE)
_PLAYED: Final = re.compile(
    r"final\s(?:is|was)\s(?:\w+ed|held|won|lost|drawn)\s(?:in|on|at|by|to|for)\s", re.IGNORECASE
)
_SIDE: Final = re.compile(
    r"(?:the )?right (?:to|side|hand|arm|foot|leg|eye|ear|half|wing|bank|ventricle|atrium|lung|kidney|shoulder|"
    r"edge|corner)"
    r"(?!\w)",
    re.IGNORECASE,
)
_COMPARED: Final = re.compile(r"(?:more|less)\s[a-z]|[a-z]+ed,\s[a-z]")
_RIGHT: Final = re.compile(r"right(?!\w)", re.IGNORECASE)
_STARTS: Final = re.compile(r"(?:^|[.!?:,;\n(*_\"“])\s{0,4}$")
_NUMBER_SAID: Final = re.compile(
    r"[\s:：*_$€£(\\-]{0,6}(?:[a-z]\s?=\s?)?(?P<said>\d+(?:[.,]\d+)*)[^.!?。\n]{0,80}?(?=[,;，；.!?。\n]\s?(?!\d)|$)"
)
_CONCLUDES: Final = re.compile(
    r"(?:[.!?。,，;；\n]\s{0,2}(?:and\s|und\s|et\s|y\s)?(?:so|therefore|thus|hence|also|daher|somit|folglich|"
    r"donc|par conséquent|por (?:lo )?tanto|así que|entonces|quindi|portanto|所以|因此)[^.!?\n]{0,120}?\d+(?:[.,]\d+)*|"
    r"\d[^.!?\n]{0,60}(?:remains?|(?:is|are) left|bleiben übrig|restent|quedan)(?!\w))",
    re.IGNORECASE,
)
_MOST_CONCLUDED: Final = 400
_ORDINARY: Final = re.compile(
    r"(?!(?:yes|no|ja|nein|oui|non|sí|sì|true|false|x|y|therefore|about|approximately|exactly|roughly|nearly|around|"
    r"only|etwa|rund|genau|environ|unos|unas|circa|lautet)(?!\w))[a-zà-ÿ]+(?:['’]\w+)?(?=[\s.,;:!?]|$)(?!\s?[=≈])"
)
"""A word with a small letter, as an answer seldom begins with; case matters."""
_ACTUAL: Final = re.compile(r"(?:the |das |der |die )?(?:actual|exact|true|best)(?!\w)", re.IGNORECASE)
_PASSIVE: Final = re.compile(
    r"(?:(?:today|now|also|still|often|\w+ly)\s)?(?:[a-z]+ed|broadcast|known|made|held|shown|seen|built)\s(?:for|by|in|to|with|at|on|as|from|until|into)\b"
)
_NEGATED: Final = re.compile(
    r"(?:definitely\s|certainly\s|clearly\s|actually\s)?(?:not|n't|nicht|kein\w{0,3}|pas|niet|geen|不是|不)\b|不",
    re.IGNORECASE,
)

_LETTER: Final = r"[(\[（]?(?P<letter>(?-i:[A-H])|[①-⑧]|(?-i:[IVX]{2,4})|(?-i:[А-Д]))[)\]）]?"
_AFTER_LETTER: Final = (
    rf"(?=\s?(?:[.!,;:\"'”。，；、：]|项|選項|选项|$|\n|\s[—–-]\s|\s(?:{any_of('because')}|as|an|is|ist|est|"
    rf"denn|car|da|here|there|now|then|though|hier|ici|aquí)(?!\w)))"
)
_CHOSEN: Final = re.compile(
    rf"(?:{any_of('choose')})\s{{0,2}}[:：]?\s{{0,2}}(?:['’]\s?)?(?:(?:therefore|so|donc|also|daher|only|nur|just|"
    rf"the|la|die|le|el|que|la opción)\s){{0,2}}"
    rf"(?:(?:{any_of('option')})\s{{0,2}})?{_LETTER}{_AFTER_LETTER}",
    re.IGNORECASE,
)
_VERDICT: Final = re.compile(
    rf"(?:(?:(?<!\w)l['’])?(?:{any_of('option')})\s{{0,2}})?(?<![A-Za-zА-я\d_]){_LETTER}(?:项|選項|选项)?\s{{0,2}}"
    rf"(?:is|ist|est|es|è|é|是|is the|must be|—)?\s{{0,2}}(?:therefore\s|also\s|thus\s|"
    rf"clearly\s)?(?:{any_of('correct')})(?!\w)(?!\s(?:nicht|not|pas|no)\b)",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(
    rf"(?:{any_of('option')})\s{{1,2}}{_LETTER}\s{{0,2}}(?=[.!。]?\s{{0,4}}$|(?:{any_of('because')}))",
    re.IGNORECASE | re.MULTILINE,
)
_BEST: Final = re.compile(
    rf"(?<![A-Za-zА-я\d_]){_LETTER}\s(?:is|ist|est|es|è|é)\s(?:therefore\s|thus\s|also\s|donc\s)?(?:the|die|der|das|"
    rf"la|le|el|a|il)?\s?"
    r"(?:better|best|right|correct|only|strongest|closest|richtige|korrekte|beste|einzige|bonne|meilleure|seule|"
    r"correcta|única|mejor|"
    r"giusta|migliore|certa|melhor|only\s\w+|most\s\w+)\s(?:one|choice|option|answer|fit|match|statement|candidate|"
    r"possibility|wahl|"
    r"antwort|aussage|lösung|réponse|proposition|respuesta|opción|risposta|opzione|resposta|opção|alternativa)(?!\w)",
    re.IGNORECASE,
)
_SO_LETTER: Final = re.compile(
    rf"(?:^|(?<=[.!?。\n])\s?|(?<=[,，;])\s?)"
    rf"(?:{any_of('so', 'therefore')}|答)[\s,，:：]{{0,3}}(?:(?:the|it's|it is|die|"
    rf"la|le|el|il|a|o|c['’]est|"
    rf"es|è|é|option)\s){{0,2}}{_LETTER}(?=\s?[.!。]?\s*$)",
    re.IGNORECASE,
)
_LETTER_END: Final = re.compile(
    rf"\s(?:is|be|ist|wäre|est|es|è|é|seems|remains|bleibt)\s(?:(?:under|listed as|listed under|given by|marked|"
    rf"labelled|unter|sous)\s)?(?:the\s|die\s|la\s|"
    rf"option\s|letter\s)?{_LETTER}(?=\s?[.!]?\s*$)",
    re.IGNORECASE,
)
_ONLY_LETTER: Final = re.compile(
    rf"(?<!\w)(?:only|just|nur(?: noch)?|seule?s?|solo|sólo|soltanto|apenas|somente|только|alleen)\s(?:the\s|die\s|"
    rf"la\s|a\s)?"
    rf"(?:(?:{any_of('option')})\s)?{_LETTER}(?=[\s.,;!]|$)",
    re.IGNORECASE,
)
_SEEMS: Final = re.compile(
    rf"(?:^|(?<=[.!?\n]\s)){_LETTER}\s(?:seems|looks|appears|sounds|fits|works|matches|scheint|passt|semble|parece|"
    rf"sembra)(?!\w)",
    re.IGNORECASE,
)
_CORRECT_LABEL: Final = re.compile(
    rf"(?:^|(?<=[.!?\n]\s))(?:{any_of('correct')})(?:\s\w{{1,16}})?\s?[:：]\s{{0,4}}(?=\S)", re.IGNORECASE
)
_BRACKETED_LETTER: Final = re.compile(r"(?<![\w)])\((?P<letter>[A-H])\)(?!\w)")
_BRACKETED_WORD: Final = re.compile(r"\([^\W\d_]{1,4}\)")
_LONGEST_LAST: Final = 320
_LAST_SENTENCE: Final = re.compile(r"[^.!?。\n]{1,300}[.!。]?\s*$")
_ONLY: Final = re.compile(rf"(?:只有|只剩下?){_LETTER}(?:项|選項|选项)?", re.IGNORECASE)

_LINE_STARTS: Final = re.compile(r"(?:^|[\n.!?:;,。！？；，(（\"“>*_#|-])\s{0,8}[*_#>]{0,4}\s{0,4}$")
_ARTICLES: Final = frozenset({"final", "our", "my", "the", "das", "la", "le", "el", "il", "end"})
_PARAGRAPH_END: Final = re.compile(r"\n[ \t]*\n")
_SAID: Final = re.compile(r"\S")
_SAID_LATER: Final = re.compile(rf"[.;!?。；！？]\s{{0,4}}\S|[,，]\s?(?:{any_of('but')})", re.IGNORECASE)
_UNSPACED_SIGNS: Final = r"\u3040-\u9fff\uac00-\ud7af"
_WORD_OR_SIGN: Final = re.compile(
    rf"\\[a-z]+|[{_UNSPACED_SIGNS}]|(?:[./-]{{0,4}}[^\W{_UNSPACED_SIGNS}])+|[<>=%\u2260\u2264\u2265]"
)
"""A word, number, command of LaTeX or sign that tells answers apart."""
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DECIMAL_COMMA: Final = re.compile(r"(?<=\d),(?=\d)")
_SET: Final = re.compile(
    r"\\(?:boxed|fbox|text(?:bf|rm|it)?|math(?:rm|bf|it)|displaystyle|left|right)(?![a-z])|\\(?=[^\w\s])"
)
"""Commands around an answer in LaTeX, and its backslash before a sign."""
_FRACTION: Final = re.compile(r"\\[dt]?frac\{([^{}]{1,40})\}\{([^{}]{1,40})\}")
_COMPARED_SIGNS: Final = 120
MOST_SEARCHED: Final = 4_000
"""Characters at the end of a text in which phrases are searched."""


def last_phrase(text: str, original: str) -> Statement | None:
    """Return the last phrase that announces an answer; one that is certain, if there is one.

    Args:
        text: The text, with emphasis blanked.
        original: The text as it was, of the same length.
    """
    best: Statement | None = None
    contents: set[str] = set()
    before = max(0, len(text) - MOST_SEARCHED)
    if before:
        found = last_phrase(text[before:], original[before:])
        return found and replace(
            found, start=found.start + before, left=found.left + before, right=found.right + before
        )
    for found in _statements(text, original):
        if best is None or (found.force, found.start) >= (best.force, best.start):
            best = found
        if found.force > 1:
            contents.add(text[found.left : min(found.right, found.left + _COMPARED_SIGNS)])
    return replace(best, contested=True) if best is not None and _differ(contents) else best


def _differ(contents: set[str]) -> bool:
    """Return True if some contents begin with different words: "12" and "12 km" are one answer, "1" and "12" two."""
    said = [words for content in contents if (words := _compared(content))]
    # "\sqrt{2}" and "the root of 2" may be the same.
    plain = [words for words in said if not any(word[0] == "\\" for word in words)]
    return any(
        words[: len(shortest)] != shortest
        for alike in (plain, [words for words in said if words not in plain])
        for shortest in [min(alike, key=len, default=[])]
        for words in alike
    )


def _compared(content: str) -> list[str]:
    left, right = first_clause(content, 0, len(content))
    plain = _SET.sub("", _FRACTION.sub(r"\1/\2", content[left:right]))
    return _WORD_OR_SIGN.findall(with_decimal_point(plain).lower())


def with_decimal_point(text: str) -> str:
    """Return a text whose numbers have no commas: "1,234" is "1234", and "1,5" is "1.5"."""
    return _DECIMAL_COMMA.sub(".", _THOUSANDS.sub("", text))


def is_answered(text: str) -> bool:
    """Return True if a phrase announces an answer near the end of a text."""
    return next(_announced(text[-MOST_SEARCHED:]), None) is not None


def _announced(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `_ANSWER` that begin at one of the last words for an answer."""
    end = 0
    for mention in [each.start() for each in _MENTION.finditer(text)][-_MOST_MENTIONS:]:
        if mention >= end and (match := _ANSWER.match(text, mention)) is not None:
            end = match.end()
            yield match


def _statements(text: str, original: str) -> Iterator[Statement]:
    for match in _announced(text):
        weak = match["weak"] is not None or (match["strong"].lower() == "final" and match["is"] is not None)
        if weak and _is_intermediate(text, match):
            continue
        certain = match["weak"] is None and match["maybe"] is None
        labelled = match["sign"] is None or (match["weak"] is None and match["sign"] != ".")  # "12 ans." are years
        if (labelled or _is_label(text, match.start())) and (statement := _statement(text, match, 1 + certain)):
            yield statement
    for match in _CORRECT.finditer(text, max(0, len(text) - MOST_SEARCHED // 2)):  # each try costs twice as much
        if (statement := _statement(text, match, 1 + (match["maybe"] is None))) is not None:
            yield statement
    yield from _headings(text, original)
    yield from _named(text)


def _is_intermediate(text: str, match: re.Match[str]) -> bool:
    """Return True if a noun such as "total" announces a number from which a later clause concludes another one."""
    number = _NUMBER_SAID.match(text, match.end())
    if number is None:
        return False
    concluded = _CONCLUDES.search(text, number.end(), number.end() + _MOST_CONCLUDED)
    return concluded is not None and re.findall(r"\d+(?:[.,]\d+)*", concluded[0])[-1] != number["said"]


def _is_ordinary(text: str, match: re.Match[str], end: int) -> bool:
    """Return True if a noun is the subject of an ordinary sentence: "the response was slow", "the total is made up"."""
    if match["is"] is None and match["maybe"] is None:
        return False
    spoken = text[match.end() - 1 : end + 60].lstrip(" ")
    return (
        _ORDINARY.match(text, end) is not None and "\\boxed" not in spoken and match["is"] not in {"lautet", "lauten"}
    )


def _named(text: str) -> Iterator[Statement]:
    """Yield statements that name the answer before the word for it, and the letters of choices."""
    for match in _INVERTED.finditer(text):
        if (content := _content(text, match.end())) is not None:
            yield Statement(match.start(), *content, "phrase")
    for match in (*_NAMED.finditer(text), *_APPOSED.finditer(text)):
        yield Statement(match.start(), *match.span("named"), "phrase")
    for match in _CORRECT_LABEL.finditer(text):
        if (content := _content(text, match.end())) is not None:
            yield Statement(match.start(), *content, "phrase", 1)
    yield from _letters(text)


def _letters(text: str) -> Iterator[Statement]:
    """Yield statements that choose a letter; uncertain ones in the last sentence only."""
    for pattern in (_CHOSEN, _VERDICT, _BEST, _SO_LETTER, _OPTION, _ONLY):
        for match in pattern.finditer(text):
            if not _only_mentioned(text, match):
                yield Statement(match.start(), *match.span("letter"), "phrase", 1 if pattern is _ONLY else 2)
    said = _LAST_SENTENCE.search(text, max(0, len(text) - _LONGEST_LAST))
    if said is None:
        return
    for pattern in (_LETTER_END, _ONLY_LETTER, _SEEMS):
        for match in pattern.finditer(text, said.start()):
            yield Statement(match.start(), *match.span("letter"), "phrase", 1)
    bracketed = list(_BRACKETED_LETTER.finditer(text, said.start()))
    if (
        len(bracketed) == 1 == len(_BRACKETED_WORD.findall(text, said.start()))
        and text[said.start() : bracketed[0].start()].count(" ") > 1
    ):
        yield Statement(bracketed[0].start(), *bracketed[0].span("letter"), "phrase", 1)


def _headings(text: str, original: str) -> Iterator[Statement]:
    """Yield statements that begin after a heading, `####` or the reply to a question ("A:")."""
    for match in _HEADING.finditer(text):
        # From the line break on, so that all lines of a list follow.
        if (content := _content(text, match.end() - 1)) is not None:
            yield Statement(match.start(), *content, "phrase", 2 if match["strong"] else 1)
    for match in _HASHES.finditer(original):
        content = _content(text, match.end())
        if content is not None and not _ANSWER.match(text, content[0]) and not _HEADING.match(text, match.start()):
            yield Statement(match.start(), *content, "phrase")
    asked = _ASKED.search(text) is not None
    for match in list(_REPLY.finditer(text))[-1:] if asked or _OTHER_LINE.search(text) is None else ():
        told = text[: match.start()].rstrip()[-1:] in {".", "!", "。"}
        bold = original.lstrip().startswith(("**A:**", "**R:**"))
        if (asked or told or bold) and (content := _content(text, match.end())) is not None:
            yield Statement(match.start(), *content, "phrase")


def _is_label(text: str, start: int) -> bool:
    """Return True if a word at `start` begins a line or sentence, or follows an article: so its colon announces."""
    before = text[max(0, start - 24) : start]
    return _LINE_STARTS.search(before) is not None or before.rstrip().rpartition(" ")[2].lower() in _ARTICLES


def _only_mentioned(text: str, match: re.Match[str]) -> bool:
    """Return True if a phrase stands in "if the answer is" and the like."""
    return _BEFORE.search(text[max(0, match.start() - 40) : match.start()]) is not None


def _is_other(text: str, match: re.Match[str]) -> bool:
    """Return True if a phrase announces another answer than the final one: "my first answer", "my guess was"."""
    guessed = match["is"] in {"was", "war", "était", "era", "fue"} and _GUESS.match(text, match.start()) is not None
    return guessed or _OTHER_ANSWER.search(text[max(0, match.start() - 24) : match.start()]) is not None


def _statement(text: str, match: re.Match[str], force: int) -> Statement | None:
    """Return a statement, or None where the phrase only speaks about an answer."""
    copula = match["is"]
    if _is_other(text, match):
        if _SAID_LATER.search(text, match.end()) is not None:
            return None
        force = 1
    title = copula and copula.istitle() and copula.isascii() and text[match.end() - 1] not in ":："
    if title or _only_mentioned(text, match):  # a title: "The Answer Is Never"
        return None
    left = _SKIP.match(text, match.end())
    end = left.end() if left else match.end()
    if "\n" in text[match.end() : end]:
        end = text.index("\n", match.end())  # a list may follow
    if _NEGATED.match(text, end) is not None and copula:
        return None
    if copula and (_VAGUE.match(text, end) or (_PASSIVE.match(text, end) and force == 1)):
        return None
    if _described(text, match, end):
        return None
    content = _content(text, end)
    return None if content is None else Statement(match.start(), *content, "phrase", force)


def _described(text: str, match: re.Match[str], end: int) -> bool:
    """Return True if a phrase only describes a thing: "the final score of", "the right side is", "the actual X is"."""
    if _PLAYED.match(text, match.start()) is not None:
        return True
    if _FINAL.match(text, match.start(), match.end()) is not None:
        announced = text[end - 1 : end] in ":：" or text[match.start() : match.end()].rstrip()[-1:] in ":：=>→"
        return not announced and (match["is"] is None or re.match(r"[-−$€£]?\d", text[end : end + 2]) is None)
    if match.groupdict().get("weak"):
        before = text[max(0, match.start() - 6) : match.start()].lower()
        noun = match["weak"].lower()
        if _is_ordinary(text, match, end):
            return True
        defined = re.search(r"(?<!\w)(?:an?|one|once)\s$", before) is not None
        mathematical = noun != "roots" or re.search(r"\d", text[end : end + 60]) is not None
        return defined or not mathematical or _COMPARED.match(text, end) is not None
    if _RIGHT.match(text, match.start(), match.end()) is not None and _STARTS.search(text[: match.start()]) is None:
        return True
    sided = _SIDE.match(text, match.start(), match.end()) or text[: match.start()].endswith(("on ", "to "))
    return bool(sided) or (
        _ACTUAL.match(text, match.start(), match.end()) is not None and _PASSIVE.match(text, end) is not None
    )


def _content(text: str, left: int) -> Span | None:
    """Return the span of the line after a mark, or of the next lines if nothing follows the mark in its own line."""
    end = _line_end(text, left)
    line = trimmed(text, left, end)
    if line[0] < line[1]:
        return line
    said = _SAID.search(text, end)
    if said is None:
        return None
    start = said.start()
    ends = _paragraph_ends(text)
    after = bisect_left(ends, start)
    return trimmed(text, start, ends[after] if after < len(ends) else len(text))


@lru_cache(maxsize=4)
def _paragraph_ends(text: str) -> list[int]:
    """Return the ends of the paragraphs in the part of a text in which phrases are searched."""
    return [end.start() for end in _PARAGRAPH_END.finditer(text)]


def _line_end(text: str, left: int) -> int:
    end = text.find("\n", left)
    return len(text) if end < 0 else end
