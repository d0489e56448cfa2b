"""The answer within a sentence that asserts it: "so it is 500 grams" asserts "500 grams"."""

import re
from typing import Final

from gradewire_proto.final_answer.clauses import LONGEST_SENTENCE, choice, first_clause, sentences, trimmed
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of

_LEAD: Final = re.compile(
    rf"(?:[\s,，:：—–]|-(?!\d)|(?:and|but|well|no(?=,)|non(?=,)|nein(?=,)|um(?=,)|hmm|oh|ah|y|et|und|e|pero|mais|aber|really|"
    rf"actually|today|now|still|"
    rf"instead|indeed|eigentlich|eher|plutôt|más bien|"
    rf"in fact|tatsächlich|in wahrheit|en realidad|en réalité|en fait|in realtà|na verdade|the right one|"
    rf"其实|实际上|不(?=[,，])|那么|就|而|但)(?=[\s,，:：]|[^\x00-\x7f])|(?:{any_of('so')})(?=[\s,，:：]|[^\x00-\x7f])){{0,8}}",
    re.IGNORECASE,
)
_IT_IS: Final = re.compile(
    rf"(?:(?:{any_of('it_is')})|(?:{any_of('correct')})\s(?:is|ist|est|es|è|é)|(?:the\s)?(?:correct|right|true|best|"
    rf"actual)(?:\s\w+){{0,2}}\s(?:is|was|are))"
    r"(?:\s(?:actually|really|therefore|also|thus|in fact|tatsächlich|donc|en realidad|doch|eher|just|exactly|"
    r"called|jedoch|aber|nur))?(?:\s?[:：]|(?!\w)|(?<=[^\x00-\x7f]))\s{0,4}",
    re.IGNORECASE,
)
_VERB: Final = re.compile(
    rf"(?<!\sa)(?<!\sby)(?<!\sthis)\s(?:{any_of('verbs', 'it_is')})(?!\sup\s)(?:\s(?:actually|really|therefore|"
    rf"also|only|in fact|tatsächlich|aber|jedoch|"
    rf"donc|doch|en realidad))?(?:\s{{1,4}}|\s?[:：]\s?)(?=\S)",
    re.IGNORECASE,
)
_UNSPACED_VERB: Final = re.compile(
    "(?:应该是|应当是|应该为|应为|就是|其实是|实际上是|应该选|应选|等于|而是|(?<!不)(?<!但)是|故选|选)"
)
_CONCLUDES: Final = re.compile(
    rf"[,，;；—–]\s?(?:und\s|and\s|et\s|y\s)?(?:{any_of('so')})[\s,，:：]{{1,2}}(?=\S)|[,，](?:{any_of('so')})(?=\S)|"
    rf"[,，]\s?which (?:makes|gives|means|leaves)(?: it| us with| that)?\s|[→⇒]\s?|\sso\s(?=\d)",
    re.IGNORECASE,
)
_COLON: Final = re.compile(r"(?:：|:(?!\d))\s{0,4}(?=\S)")
_CLEFT: Final = re.compile(
    r"(?<!\sin)(?<!\son)(?<!\sat)(?<!\sof)(?<!\sby)(?<!\sto)(?<!\sfor)(?<!\sfrom)(?<!\swith)\s(?:that|who|which|qui|que|dont|che)\s|\squ['’](?=il|elle|on|ils)|,\s(?:der|die|das|den|qui|que|che)\s|"
    r"\s(?:in Python|here)(?=\s|$)",
    re.IGNORECASE,
)
_BY: Final = re.compile(r"(?:\w+ed|made|given|written|built|driven|shown)\s(?:with|by|in|as|from)\s(?=\S)")
_ABOUT: Final = re.compile(r"(?:um|jedoch um|aber um)\s(?=(?:den|die|das|ein|eine|einen)\s|[A-ZÄÖÜ])")
_OBJECT: Final = re.compile(r"(?:you|us|me|dir|uns|ihnen|nous|vous)\s(?=\S)", re.IGNORECASE)
_YOU_DO: Final = re.compile(
    r"(?:you|we|one|man|on(?!\s(?:the|an?|his|her|my|its|top)\s)|du)\s[^\W\d_]+\s(?=\S)", re.IGNORECASE
)
_PASSIVE: Final = re.compile(r"[^\W\d_]+(?:ed|en|é|ée|és|ido|ado|to|ta|t)\s?[.!]?$")
_ELLIPSIS: Final = re.compile(
    r"\s(?:(?:did|does)(?: (?:it|so|this|that|the job|the trick))?|do|was|is|are|were|has|have|had|can|could|"
    r"will)\s?\.?$"
)
_TRAILING: Final = re.compile(
    r"\s(?:instead|after all|though|altogether|in all|in total|insgesamt|zusammen|en tout|en total|it is|ist es|"
    r"that was)\s?[.]?$"
)
_REASON_FIRST: Final = re.compile(
    r"(?:since|because|as|given that|da|weil|como|ya que|puisque|comme|poiché|siccome|"
    r"já que)\s[^,.;:\n]{3,80},\s(?=\S)",
    re.IGNORECASE,
)
_EXCUSED: Final = re.compile(rf"[,;]\s(?={any_of('excuse')})", re.IGNORECASE)
_PSEUDO_CLEFT: Final = re.compile(
    r"(?P<subject>(?!(?:it|that|this|here)\s)\S+(?:\s\S+){0,5}?)\s(?:is|are|was|were)\s(?:what|the ones?\s(?:that|"
    r"who|which))\s",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    r"(?P<subject>(?!(?:It|That|This|The|Der|Die|Das|He|She|They|There|These|Those|We|I|You|What|Which|My|His|Her|Its|Their|A|An)"
    r"\b)[A-ZÀ-Þ\d][^\s,.;]*(?:\s[^\s,.;]+){0,4}?)\s(?:is|was|are|were)\sthe\s[a-z][a-z\s-]{1,60}\.?"
)
"""A name that a sentence describes: "Liszt is the composer."."""
_HIS: Final = re.compile(r"[^s\s]\sson\s", re.IGNORECASE)
"""The French possessive, where the Spanish verb would follow a plural."""
_COUNTED: Final = re.compile(
    r"\s(?:altogether|together|in all|in total|in the end|left(?: over)?|each|remaining|insgesamt|zusammen|übrig|"
    r"en tout|ensemble|"
    r"au total|en total|juntos|in tutto|in totale|no total|ao todo|всего)\s?[.!]?$"
)
_NOT: Final = re.compile(
    r"[,，]?\s?(?:and|und|et|y)?\s?(?:(?<!\w)(?:not|nicht|pas|non|no|não|niet|nie|не)\s(?=\S)|而不是|不是)",
    re.IGNORECASE,
)
_NUMBER: Final = (
    r"(?:\d{1,2}(?:\s?h\s?|:)\d{2}(?!\w)|"
    r"[-−+]?(?:[$€£¥]\s?)?\d(?:[\d.,'’\u00a0\u202f]*\d)?(?:\s\d{3})*(?:/\d+)?(?:\s?[%°])?)"
)
_TAIL_QUANTITY: Final = re.compile(
    rf"(?:(?<=[\u3040-\u9fff])|(?<![\w.,=+*/×·÷(−-]))({_NUMBER}(?:\s?[^\s\d.,;:!?]+(?:\s(?:of|de|d['’]|von|"
    rf"di)?\s?[^\s\d.,;:!?]+)?)?)\s?[.!。！]?$"
)
_REMAINS: Final = re.compile(
    rf"(?:^|\s)({_NUMBER}(?:\s[^\s\d.,;:!?]+)?)\s(?:remain\w*|(?:are|is|were) (?:left|needed|missing)|stay|bleiben|"
    rf"fehlen|restent|"
    r"quedan|sobran|restano|rimangono|sobram|restam|остаётся|осталось)(?:\s\w+)?\s?[.!]?$",
    re.IGNORECASE,
)
_AMOUNT: Final = re.compile(r"\d[\d.,]*\s?[^\W\d]")
_EQUALS: Final = re.compile("[=≈]")
_ANOTHER: Final = re.compile(r"\b(?:or|oder|ou|o|and|und|et|y|e)\b\s*\w{1,3}\s?$|或")
_VARIABLE: Final = re.compile(r"(?:^|(?<!\d)[\s,，。])([a-zA-Z])\s?$")
_RESULT: Final = re.compile(
    rf"[=≈]\s?(-?{_NUMBER}(?:\.\.\.|…|(?:\s?π)?(?:\s?(?:km/h|m/s²?|°C|cm[²³]?|m[²³]|km[²]?|kg|mm|ml|dl|cl|mg|kJ|kWh?|Wh|Hz|"
    rf"MB|GB|kN|Ω|€|%|[a-zA-ZµΩ]{{1,3}}(?=[\s.,;]|$)|[\u4e00-\u9fff]{{1,2}}(?=$|[。，])))?))"
)


def asserted_answer(text: str, left: int, right: int) -> Span:
    """Return the span of the answer that a corrected statement asserts.

    The answer stands after a conclusion ("…, so 40 N"), a colon, or the subject and verb of a short statement.
    """
    right = min(right, left + LONGEST_SENTENCE)
    left, right = trimmed(text, left, right)
    left = _after(_LEAD, text, left, right)
    left = _after(_REASON_FIRST, text, left, right)
    if (cleft := _PSEUDO_CLEFT.match(text, left, right) or _NAMED.fullmatch(text, left, right)) is not None:
        return trimmed(text, *cleft.span("subject"))
    if (excused := _EXCUSED.search(text, left + 1, right)) is not None:
        restated = _COLON.search(text, excused.end(), right)
        left, right = (restated.end(), right) if restated is not None else (left, excused.start())
    if (letter := choice(text, left, right)) is not None:
        return letter
    left, right = _concluding(text, left, right)
    if (first := sentences(text, left, right)[:1]) != []:
        left, right = first[0]
    ellipsis = _ELLIPSIS.search(text, left, right)
    if ellipsis is not None and len(text[left : ellipsis.start()].split()) <= 4:
        return trimmed(text, left, ellipsis.start())
    left, right = first_clause(text, _predicate(text, left, right), right)
    if _AMOUNT.match(text, left, right) is not None and (verb := _VERB.search(text, left, right)) is not None:
        right = verb.start()  # "63 seats are free"
    for ends in (_TRAILING, _NOT, _CLEFT):
        if (end := ends.search(text, left + 1, right)) is not None:
            right = end.start()
    return trimmed(text, max(_after(_BY, text, left, right), _after(_ABOUT, text, left, right)), right)


def _concluding(text: str, left: int, right: int) -> Span:
    """Return the span after a conclusion's first word or an excuse's colon, or before an explanation's colon."""
    if (conclusion := _last(_CONCLUDES, text, left, right)) is not None:
        left = _after(_LEAD, text, conclusion, right)
        named = _last(_COLON, text, left, right)
        if named is not None and len(text[named:right].split()) <= 4 and text[left : named - 1].count(" ") > 2:
            left = _after(_LEAD, text, named, right)
    elif (colon := _COLON.search(text, left, right)) is not None:
        said = _IT_IS.match(text, left, colon.start())
        explained = (
            len(text[left : colon.start()].split()) <= 2 and len(re.findall(r"\w+", text[colon.end() : right])) > 2
        )
        if (said is not None and text[said.end() : colon.start()].strip()) or (said is None and explained):
            right = colon.start()
        else:
            left = _after(_LEAD, text, colon.end(), right)
    return left, right


def _predicate(text: str, left: int, right: int) -> int:
    """Return the start of what follows the subject and verb of a sentence, or `left`."""
    start = _after_verb(text, left, right)
    if start - left >= 8 and _PASSIVE.fullmatch(text, start, right) is not None:
        return left  # "the tag was deleted" has no shorter answer
    return _after(_OBJECT, text, start, right) if start > left else left


def _after_verb(text: str, left: int, right: int) -> int:
    if (it_is := _after(_IT_IS, text, left, right)) > left:
        return _after(_IT_IS, text, it_is, right)
    bracket = text.find(" (", left, right)
    verb = _VERB.search(text, left, right if bracket < 0 else bracket + 2)
    if verb is not None and _HIS.match(text, verb.start() - 1, right) is not None:
        verb = None
    if _AMOUNT.match(text, left, right) is not None:
        return left
    if verb is not None and len(text[left : verb.start()].split()) <= 14:
        return _after(_IT_IS, text, verb.end(), right)
    if (reader := _after(_YOU_DO, text, left, right)) > left:
        return reader
    unspaced = _UNSPACED_VERB.search(text, left, min(right - 1, left + 30))
    return left if unspaced is None else unspaced.end()


def quantity(text: str, left: int, right: int, most: int = 1) -> Span | None:
    """Return the span of the number at a sentence's end, with its unit; None if it has more than `most` numbers."""
    sentence = text[left:right]
    if not 1 <= len(re.findall(_NUMBER, sentence[:LONGEST_SENTENCE])) <= most:
        return None
    if (remains := _REMAINS.search(sentence)) is not None:
        return trimmed(text, left + remains.start(1), left + remains.end(1))
    if (summed := _COUNTED.search(sentence)) is not None:
        right, sentence = left + summed.start(), sentence[: summed.start()]
    found = _TAIL_QUANTITY.search(sentence[-80:])
    if found is None:
        return None
    offset = right - min(80, len(sentence))
    return trimmed(text, offset + found.start(1), offset + found.end(1))


def calculated(text: str, left: int, right: int) -> Span | None:
    """Return the span of the result at the end of a calculation such as "6 * 7 = 42"; None without a calculation."""
    signs = list(_EQUALS.finditer(text, left, right))
    if not signs or re.search(r"\d", text[left:right]) is None:
        return None
    before = text[left : signs[-1].start()]
    start, stop = trimmed(text, signs[-1].end(), right)
    number = re.compile(_NUMBER).match(text, start, stop)
    if number is None or _ANOTHER.search(before) is not None:  # "x = 2 or x = -7" stays whole
        return None
    if len(signs) == 1 and (variable := _VARIABLE.search(before)) is not None:
        return (left + variable.start(1), stop) if before[: variable.start(1)].strip() else None
    if len(text[number.end() : stop].split()) > 1 or stop - number.end() > 16:
        result = _RESULT.match(text, signs[-1].start(), right)
        if result is not None and re.search(r"\d", text[result.end() : stop]) is not None:
            return None  # the sentence goes on with another number
        return None if result is None else result.span(1)
    return start, stop


def _after(pattern: re.Pattern[str], text: str, left: int, right: int) -> int:
    found = pattern.match(text, left, right)
    return found.end() if found is not None and found.end() < right else left


def _last(pattern: re.Pattern[str], text: str, left: int, right: int) -> int | None:
    end = None
    for found in pattern.finditer(text, left, right):
        end = found.end()
    return end
