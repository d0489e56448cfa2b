"""Contrasts: "not X but Y", "X, not Y", "don't use X, use Y", "X? No, Y" and "X is wrong; Y".

Only the last 1 600 characters are searched, and each sentence up to 600 characters.
"""

import re
from operator import itemgetter
from typing import Final

from gradewire_proto.final_answer.clauses import LONGEST_SENTENCE, last_match, sentences, trimmed
from gradewire_proto.final_answer.corrections import explains_rejected
from gradewire_proto.final_answer.first_thoughts import first_thought
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of, expression, pairs

_LONGEST_CONTRAST: Final = 1_600

_NO: Final = re.compile(
    rf"[?？]\s{{0,4}}(?:(?:{any_of('no')})\s?[,.:;!—–，。：、！]\s{{0,4}}|(?:that|it|this|he|she) (?:isn['’]t|is not|"
    rf"wasn['’]t|was not|"
    r"can['’]t be|cannot be)\s[^.!?\n]{0,60}[.!]\s{1,4})",
    re.IGNORECASE,
)
_WRONG: Final = re.compile(
    rf"(?:\b(?:is|are|was|ist|sind|war|est|es|è|é|to)\s|是|に|は)?(?:{any_of('wrong')})(?:\s(?:here|hier|ici|aquí|"
    rf"though))?\s?[,;.:—–，；。]\s{{0,4}}",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(r"false\s?,", re.IGNORECASE)
_INSTEAD: Final = re.compile(
    rf"(?:^|[.!?;:\n][\s“\"]{{1,4}}|[。，；\n])(?:(?:so|and|but|then|also|und|et|y)\s)?"
    rf"(?:{any_of('instead')})\s?([^,，.;!?\n]{{1,80}})[,，]\s?",
    re.IGNORECASE,
)
_UNLIKE: Final = re.compile(
    r"unlike|as opposed to|in contrast|anders als|im gegensatz|contrairement|a diferencia", re.IGNORECASE
)
_PRO_VERB: Final = re.compile(
    r"\s(?:(?:does|did|do|can|will)(?:\s(?:that|it|so|this))?|\w{3,}(?:s|ed)\s(?:it|that|this|them))\s?[.!]?$"
)
_BY_NAME: Final = re.compile(r"(?:it|he|she|they|this|that|the (?:answer|right|correct))(?!\w)", re.IGNORECASE)
_INSTEAD_IS: Final = re.compile(
    rf"(?:{any_of('instead')})\s[^,，.;]{{1,60}}?\s(?:ist|sind|war|waren|kostet|kosten|beträgt|is|are|was|were|es|son|"
    rf"est|sont|è|sono|é|são)\s"
    r"(?:es\s)?(?=\S)",
    re.IGNORECASE,
)
_BEGUN_NOT: Final = re.compile(
    r"(?:^|(?<=[.!?;:\n]\s))(?:not|nicht|kein\w{0,2}|pas|non|no|não|niet|nie|не|不是)(?!\w)[^.;:!?\n]{1,80}$",
    re.IGNORECASE,
)
_PREDICATE: Final = re.compile(
    r"\s(?:is|was|are|were|has|had|did|does|will|won|wrote|made|contains?|holds?|shows?|gives?|makes?|takes?|ist|war|"
    r"sind|hat|haben|wurde|wird|bleibt|gewann|"
    r"schrieb|est|a|ont|"
    r"était|es|fue|ha|era|ganó|è|é|foi)\s",
    re.IGNORECASE,
)
_LINKED: Final = re.compile(r"\s(?:is|was|are|were|ist|war|sind|est|sont|es|son|fue|è|é)\s", re.IGNORECASE)
_NEITHER: Final = re.compile(r"\b(?:neither|weder|ni|né|nem|noch|ani)\b[^:;.]{1,120}[:;]\s{0,4}(?=\S)", re.IGNORECASE)

_NEGATION: Final = (
    r"(?:(?<!\w)(?:(?:is|are|was|were|do|does|did|has|have|would|can|could|should)(?:n['’]t|\s(?:\w+ly\s)?not)|can['’]t|cannot|won['’]t|"
    r"(?:that|it|this|he|she) (?:is|was) no(?=\s\w+[,;.])|"
    r"nicht|kein\w{0,2}|(?:n['’]|ne\s)\w+\spas|non\s(?:è|sono|era)|no\s(?:es|son|era|fue|está)|não\s(?:é|são|era|foi)|"
    r"niet|geen|nie|не)(?!\w)|['’](?:s|re)\snot(?!\w)|不是|并不是|并非|不叫|不在)"
)
_NOT_THEN: Final = re.compile(
    rf"{_NEGATION}(?!\s(?:only|nur|solo|seulement|"
    rf"just))[^.;。；!?！？\n]{{1,200}}?[.;,。；，—–]\s{{0,4}}(?P<next>"
    r"(?:(?:actually|instead|tatsächlich|en réalité)\s)?"
    rf"(?:{any_of('it_is')}|(?:er|sie) (?:ist|war|heißt)|(?:she|he) is|we should|you|"
    r"(?:它|他|她|这|那)是(?=\w)|"
    r"(?:his|her|its|their|the (?:right|correct|real|actual|true|proper)) \w+(?: \w+)? (?:is|"
    r"was))(?:(?!\w)|(?<=是))[^\n]{1,300}|"
    r"(?:only\s|but\s)?\S{1,40}(?:\s\S{1,40}){0,4}\s(?:did|does|do|was|is|are|were|can|could|will)(?=\s?[.!]?\s*$))",
    re.IGNORECASE,
)
_PARTICIPLE: Final = re.compile(
    r"(?:it|he|she|they) (?:is|was|are|were) (?:\w+ly\s)?(originally|initially|later|\w+ed|made|held|shown|known|"
    r"seen|written|sung)\s(?:in|on|at|as|by|"
    r"to|for|from|with|a|the)\s",
    re.IGNORECASE,
)
_HAS: Final = re.compile(
    r"(?:it|he|she|they) (?:has|have|contains?|takes?)(?!\w)",
    re.IGNORECASE,
)
_DO_NOT: Final = re.compile(r"(?:do|does|did)(?!\w)", re.IGNORECASE)
_BE_NOT: Final = re.compile(r"(?:is|are|was|were)(?!\w)", re.IGNORECASE)
_THEY: Final = re.compile(r"they(?:['’]re| are| were)(?!\w)", re.IGNORECASE)
_ALONE: Final = re.compile(r"^(?:it|he|she) (?:is|was) (?:\w+ed|\w+en)\s?[.!]?$", re.IGNORECASE)
_THERE: Final = re.compile(r"(?<!\w)there(?!\w)", re.IGNORECASE)
_ALSO: Final = re.compile(
    r"(?:it|he|she|they) (?:is|was|are|were) (?:also|still)(?!\w)|[^.;\n]{0,60}(?<!\w)(?:it|he|she|they) (?:is|"
    r"was|does|did)\s?[.!]?$",
    re.IGNORECASE,
)
_IF: Final = re.compile(r"(?<!\w)(?:if|whether)\s[^.;,\n]*$", re.IGNORECASE)
_OWNED: Final = re.compile(r"(?:his|her|its|their) (?:\w+ )?\w+ (?:is|was)(?!\w)", re.IGNORECASE)
_NOT_ONLY: Final = re.compile(
    r"(?:only|nur|solo|seulement|merely|simply|just|sólo|solamente|только|仅|只)\b", re.IGNORECASE
)
_SUBJECT: Final = re.compile(
    r"(?:also|auch|aussi|también|it|he|she|they|we|i|you|er|sie|es\s|il\s\w+\s|elle|this|that|there|only|can|could|"
    r"will|would|do|does|did|is|are|was|were|had|has|have|who|which)\b",
    re.IGNORECASE,
)


_WORDS: Final = r"[^.;:!?。；！？\n]{1,120}?"
_INSTEAD_WORD: Final = (
    r"(?:(?:but|instead|rather|just|please|sondern|mais|sino|ma|mas|а|而是|而要|而|要|请|改)[\s,，]{0,2})?"
)
_PRONOUN: Final = (
    r"(?:you|we|one|they|he|she|it|i|das|die|der|dies|es|er|sie|wir|man|ich|du|ihr|ce|cela|il|elle|on|nous|vous|je|eso|"
    r"esto|él|ella)"
)
_SAME_VERB: Final = (
    re.compile(
        rf"\b(?:do not|don['’]t|never|(?:should|must|can|could)\s?(?:not|n['’]t)|cannot|"
        rf"не)\s(?P<verb>[^\W\d_]{{2,16}})\s"
        rf"{_WORDS}[,;.:—–]\s{{0,4}}(?:{_PRONOUN}\s(?:\w{{3,7}}\s)?)?{_INSTEAD_WORD}(?P=verb)\s(?P<true>\S[^\n]{{0,300}})",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:does not|doesn['’]t|no|non|não|nunca|mai)\s(?P<verb>[^\W\d_]{{2,16}}?)[aeioué]?(?:s|re?)?\s{_WORDS}"
        rf"[,;.:—–]\s{{0,4}}(?:{_PRONOUN}\s)?{_INSTEAD_WORD}(?P=verb)[aeioué]?s?\s(?P<true>\S[^\n]{{0,300}})",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?<!\w)(?:n(?:e\s|['’]))?(?!{_PRONOUN}\s|(?:is|are|was|were|do|does|did)\b)"
        rf"(?P<verb>[^\W\d_]{{3,16}}?)(?:e|s|t|st|en|z)?\s(?:\w+\s)?(?:nicht|kein\w{{0,2}}|nie|niemals|pas|jamais|niet|"
        rf"geen|never)\s{_WORDS}[,;.:—–]\s{{0,4}}"
        rf"(?:{_PRONOUN}\s)?{_INSTEAD_WORD}(?P=verb)(?:e|s|t|st|en|z)?\s(?P<true>\S[^\n]{{0,300}})",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?:不要|别|不应该?|不能|勿|不可以?|不用)(?P<verb>[\u4e00-\u9fff]){_WORDS}[，。；,]"
        rf"(?:你?应该?|应当|可以)?{_INSTEAD_WORD}(?P=verb)(?P<true>[^\n，。；]{{1,60}})"
    ),
)
_SAME_SUBJECT: Final = re.compile(
    r"(?:^|(?<=[.!?\n]\s))(?P<subject>\w+(?:\s\w+){1,3})\s(?:(?:is|was|are|were)(?:n['’]t| not)|(?:ist|war|"
    r"sind) (?:nicht|kein\w*)|"
    r"n['’](?:est|était) pas|no (?:es|era|son))\s[^.;:!?\n]{1,120}?[.;,]\s{1,4}(?P=subject)\s(?:is|was|are|were|ist|"
    r"war|sind|est|"
    r"était|es|era|son)\s(?P<true>\S[^\n]{0,300})",
    re.IGNORECASE,
)
_DISMISSED: Final = re.compile(
    r"(?:^|(?<=[.!?\n]\s))(?:(?:forget|ignore|disregard|never mind|skip|vergiss|vergessen sie|oubliez|oublie|"
    r"olvid\w{1,4}(?:\sde)?|"
    r"dimentica|esque\w{1,4}|забудьте|忘掉|别管)(?:\s|(?<=[^\x00-\x7f]))[^\n.,:;!?—–。，]{1,40}[.,:;!—–。，]|"
    r"(?:no,?\s)?(?:not|nicht|pas|не|不是)\s?[^\s\n.,:;!?—–。，]{1,20}[.;:!—–。])\s{0,4}(?P<true>\S[^\n]{0,200})",
    re.IGNORECASE,
)
_DENIED: Final = (
    re.compile(
        r"^\s*(?:no[,.!:]?\s)?(?:it|that|this|he|she)\s(?:is|was)(?:n['’]t|\snot)\s(?-i:[A-ZÀ-Þ\d])[^\s.;!?\n]+(?:\s[^\s.;!?\n]+){0,3}[.;!]\s"
        r"(?P<true>(?!(?:it|that|this|he|she|they|there|in|we|you|i|however|but|while|although)\W)[^\n.!?;]{1,80}[.]?)\s*$",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bit(?:\sis|['’]s)\s(?:false|wrong|untrue|not true|incorrect)\s(?:that|"
        r"to say)\s[^.;,\n]{1,100}[.;,]\s(?P<true>\S[^\n]{0,100})$",
        re.IGNORECASE,
    ),
    re.compile(
        r"[^\s,.;:]\sit\s(?:isn['’]t|is not|wasn['’]t|was not)[,;.]\s(?:so\s|but\s)?(?P<true>(?!(?:though|however|"
        r"either)\W)\S[^\n]{0,80})$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^\s*(?:not|nicht|pas|no|non)\s(?:an?|the|eine?|der|die|das|une?|le|la|el|una|uno|il)\s[^,.;\n]{1,30},\s"
        r"(?P<true>(?:an?|the|eine?|der|die|das|une?|le|la|el|una|uno|il)\s[^,;\n]{1,40})$",
        re.IGNORECASE,
    ),
)
"""Denials, each with the true part after it: "It wasn't X. Y did it.", "X it isn't, so Y"."""
_ISNT: Final = re.compile(
    r"[;,]\s(?!(?:(?:but|and)\s)?(?:it|he|she|they|that|this|there|i|you|we)\s)[^;.,\n]{2,50}\s(?:(?:is|are|was|were|does|did|do)(?:n['’]t|\snot))\s?[.!]?$",
    re.IGNORECASE,
)
_WRONG_ASIDE: Final = re.compile(
    rf"\s[(（](?=[^()（）]{{0,80}}(?:\bdistractor\b|{any_of('wrong')}))[^()（）]{{1,120}}[)）]\s?[.]?$", re.IGNORECASE
)
_CONCEDED: Final = re.compile(
    r"(?:although|though|even though|while|whereas|despite|obwohl|auch wenn|bien que|même si|aunque|"
    r"in contrast (?:to|with))\s"
    r"[^,.;\n]{3,80},\s(?P<true>(?:it|he|she|they)\s(?:is|was|were|are)\s[^\n]{1,100})$",
    re.IGNORECASE,
)
_LONGEST_FRAGMENT: Final = 4
_REJECTED: Final = re.compile(
    r"(?:(?:[,，;；—–]\s?(?:(?:and|und|et|y|e)\s)?|\s(?:and|und|et|y|e)\s)"
    r"(?:(?:not|never|nicht|pas|non|no|não|niet|nie|не|kein\w{0,2})\s|(?:而|并)?不是)|"
    r"[,，]?\s(?:unlike|in contrast (?:to|with)|anders als|im gegensatz zu|contrairement à|a diferencia de|"
    r"rather than|instead of|as opposed to|statt|anstatt|plutôt que|au lieu d[eu']|en vez de|en lugar de|"
    r"invece di|"
    r"anziché|em vez de)\s)(?!(?:only|just|because|when|if|by|weil|nur|to|merely|that|so|too|"
    r"very|yet)\b)(?:(?!(?:so|is|are|it|because)\s)[^\s,;，；]+\s){0,5}[^\s,;，；]+\s?$",
    re.IGNORECASE,
)
_PREPOSITION: Final = re.compile(
    r"\s(in|on|at|by|from|of|with|for|to|von|in|im|am|bei|mit|durch|aus|dans|par|de|en|à|con|por|da|di|do|em)\s",
    re.IGNORECASE,
)
_SUBJECT_VERB: Final = re.compile(
    rf"(?:{any_of('it_is')})(?!\w|['’]\w)|\s(?:is|was|are|were|ist|war|sind|est|était|es|son|era|fue|è|é|это)\s|是",
    re.IGNORECASE,
)
_YES: Final = re.compile(
    r"(?:yes|no|ja|nein|oui|non|sí|no|sì|да|нет|perhaps|maybe|probably|usually|certainly|why|of course)(?!\w)",
    re.IGNORECASE,
)


def _pair(first: str, second: str) -> re.Pattern[str]:
    before = expression((first,)) if first != "n't" else "n['’]t"
    if not second:
        return re.compile(rf"{before}[\s、,，]{{0,2}}", re.IGNORECASE)
    comma = (
        r"[,，]" if second in {"a", "ale", "maar", "но", "是", "не", "als", "ma", "mas", "rather", "而"} else r"[,，]?"
    )
    return re.compile(
        rf"{before}(?!\s?(?:only|nur|solo|seulement|sólo|仅|"
        rf"只))(?:[^.;:!?。；！？\n]{{1,200}}?)\s?{comma}\s?{expression((second,))}\s?",
        re.IGNORECASE,
    )


_PAIRS: Final = [_pair(first, second) for first, second in pairs("not_but")]


def contrast(text: str, left: int, right: int) -> Span | None:
    """Return the span of what is true in a contrast such as "not X but Y" or "At first I thought X, but Y".

    The span begins with the true part and ends with `right`. Return None if there is no contrast.
    """
    text = text[:right]
    left = max(left, right - _LONGEST_CONTRAST)
    best: Span | None = None
    for find in _FINDERS:
        found = find(text, left)
        within = best is not None and found is not None and best[0] >= found[1]  # "X, not Y": Y is no answer
        if found is not None and (best is None or found[0] > best[0] or within):
            best = found
    return best


def _replied(text: str, left: int) -> Span | None:
    found = last_match(_NO, text, left)
    if found is None or not text[found.end() :].strip() or not text[left : found.start()].strip():
        return None
    listed = sentences(text, found.end(), len(text))
    while len(listed) > 1 and explains_rejected(text, *listed[:2]):
        listed = listed[1:]
    return listed[0][0], len(text.rstrip())


def _not_but(text: str, left: int) -> Span | None:
    best: Span | None = None
    for pattern in _PAIRS:
        found = last_match(pattern, text, left)
        if found is None:
            continue
        sentence = sentences(text, found.end(), min(len(text), found.end() + LONGEST_SENTENCE))[:1]
        if not sentence or _SUBJECT.match(text, *sentence[0]) or len(text[sentence[0][0] : sentence[0][1]].split()) > 8:
            continue
        if best is None or sentence[0][0] > best[0]:
            best = sentence[0]
            negated = text[left : found.end()].rstrip()
            # "Not X but Y did it": the sentence goes on after Y.
            if _BEGUN_NOT.search(negated) and (verb := _PREDICATE.search(text, *best)) is not None:
                best = best[0], verb.start()
    return best


def _not_then(text: str, left: int) -> Span | None:
    found = last_match(_NOT_THEN, text, left)
    if found is None:
        return None
    left, right = trimmed(text, *found.span("next"))
    negated = text[found.start() : found.start("next")]
    conditional = _IF.search(text, max(0, found.start() - 60), found.start()) is not None
    return None if conditional or _goes_on(text[left:right], negated) else (left, right)


def _goes_on(said: str, negated: str) -> bool:
    """Return True if a sentence after a negated one only tells more: its verb is another, so it is no contrast."""
    participle = _PARTICIPLE.match(said)
    if participle is not None and re.search(rf"\s{participle[1]}(?!\w)", negated) is None:
        return True
    if _DO_NOT.match(negated) is not None:
        return any(pattern.match(said) for pattern in (_THEY, _ALONE, _OWNED, _PARTICIPLE, _ALSO))
    has = _HAS.match(said) is not None and _BE_NOT.match(negated) is not None
    there = _THERE.match(said) is not None and _THERE.search(negated) is None
    return has or there or _ALSO.match(said) is not None


def _is_wrong(text: str, left: int) -> Span | None:
    found = last_match(_WRONG, text, left)
    if found is None or len(text) - found.end() > 200 or not text[found.end() :].strip():
        return None
    before = text[left : found.start()].strip()
    if not before or (before[-1] in ",，" and _LISTED.match(found[0]) is not None):
        return None  # "True, False, 0" is a list
    rest = sentences(text, found.end(), len(text))
    return rest[-1] if rest else None


def _neither(text: str, left: int) -> Span | None:
    found = last_match(_NEITHER, text, left)
    return None if found is None else trimmed(text, found.end(), len(text))


def _last_truth(text: str, left: int, *patterns: re.Pattern[str]) -> Span | None:
    """Return the span of the group "true" that begins last among the last matches of some patterns."""
    matches = (last_match(pattern, text, left) for pattern in patterns)
    return max((match.span("true") for match in matches if match is not None), key=itemgetter(0), default=None)


def _same_verb(text: str, left: int) -> Span | None:
    """Return what follows the verb that a negated sentence repeats: "don't use X, use Y"."""
    found = _last_truth(text, left, *_SAME_VERB, _SAME_SUBJECT)
    return None if found is None else sentences(text, *found)[0]


def _dismissed(text: str, left: int) -> Span | None:
    found = _last_truth(text, left, _DISMISSED)
    return None if found is None else trimmed(text, *found)


def _rejected(text: str, left: int) -> Span | None:
    """Return the last sentence without its end if that only says what is not true: "It is Y, not X"."""
    listed = sentences(text, left, len(text))
    if not listed:
        return None
    begin, end = listed[-1]
    end -= len(text[begin:end]) - len(text[begin:end].rstrip(" .!。！)"))
    tail = _REJECTED.search(text[:end], max(begin, end - 80))
    if tail is not None and (place := _parallel(text, begin, tail)) is not None:
        return place, tail.start()
    if len(listed) == 1 and (denied := _ISNT.search(text, begin) or _WRONG_ASIDE.search(text, begin)) is not None:
        return begin, denied.start()
    if tail is None:
        return None
    if _SUBJECT_VERB.search(text, begin, tail.start()) is None:
        fragment = text[begin : tail.start()].split()
        rejected = text[tail.start() : end].split()
        short = len(listed) == 1 and len(fragment) <= _LONGEST_FRAGMENT and len(rejected) <= _LONGEST_FRAGMENT + 1
        return (begin, tail.start()) if short and _YES.match(text, begin, tail.start()) is None else None
    return (begin, tail.start()) if len(text[begin : tail.start()].split()) <= 14 else None


def _denied(text: str, left: int) -> Span | None:
    found = _last_truth(text, left, *_DENIED)
    conceded = _CONCEDED.match(text, left) if found is None else None
    if conceded is not None and len(sentences(text, left, len(text))) == 1:
        found = conceded.span("true")
    return None if found is None else trimmed(text, *found)


def _instead(text: str, left: int) -> Span | None:
    if (linked := last_match(_INSTEAD_IS, text, left)) is not None and len(text) - linked.end() <= 100:
        return trimmed(text, linked.end(), len(text))
    found = last_match(_INSTEAD, text, left)
    if found is None or len(text) - found.end() > 200:
        return None
    span = trimmed(text, found.end(), len(text))
    if span[0] >= span[1] or _PRO_VERB.search(text, *span) is not None:
        return span if span[0] < span[1] else None
    unlike = _UNLIKE.match(found[0].strip(' .!?;:,\n“"')) is not None
    linked = _LINKED.search(text, *span)
    if linked is not None or unlike:
        return (_compared(text, *span, linked) if unlike and linked is not None else None) or span
    # Without a verb to divide at, the true part has as many words as the one that it replaces.
    count = len(found[1].split())
    tail = re.search(rf"(?:\S+\s+){{{count - 1}}}\S+$", text[span[0] : span[1]]) if count <= 4 else None
    return span if tail is None else (span[0] + tail.start(), span[1])


def _compared(text: str, left: int, right: int, linked: re.Match[str]) -> Span | None:
    """Return the subject if it is what differs: "Unlike reptiles, birds are warm-blooded" is about birds."""
    predicate = text[linked.end() : right]
    plain = predicate == predicate.lower() and re.search(r"\d", predicate) is None and len(predicate.split()) <= 3
    return trimmed(text, left, linked.start()) if plain and _BY_NAME.match(text, left, right) is None else None


def _parallel(text: str, begin: int, tail: re.Match[str]) -> int | None:
    """Return the last place of the preposition with which the rejected part begins: "in Rome and not in Pisa"."""
    words = _PREPOSITION.search(tail[0])
    place = text.rfind(f" {words[1]} ", begin, tail.start()) if words is not None else -1
    return None if place < 0 else place + 1


_FINDERS: Final = (
    _replied,
    _not_but,
    _not_then,
    _same_verb,
    _dismissed,
    _denied,
    _is_wrong,
    _neither,
    first_thought,
    _instead,
    _rejected,
)
