"""Contrasts: "not X but Y", "X, not Y", "don't use X, use Y", "X? No, Y", "X is wrong; Y", and first thoughts.

Only the last 1 600 characters are searched, and each sentence up to 600 characters.
"""

import re
from typing import Final

from gradewire_proto.final_answer.clauses import LONGEST_SENTENCE, sentences, trimmed
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of, expression, pairs

_LONGEST_CONTRAST: Final = 1_600

_NO: Final = re.compile(rf"[?？]\s{{0,4}}(?:{any_of('no')})\s?[,.:;!—–，。：、！]\s{{0,4}}", re.IGNORECASE)
_WRONG: Final = re.compile(
    rf"(?:\b(?:is|are|was|ist|sind|war|est|es|è|é|to)\s|是|に|は)?(?:{any_of('wrong')})(?:\s(?:here|hier|ici|aquí|"
    rf"though))?\s?[,;.:—–，；。]\s{{0,4}}",
    re.IGNORECASE,
)
_FIRST: Final = re.compile(any_of("first"), re.IGNORECASE)
_BELIEF: Final = re.compile(
    r"\b(?:sa(?:y|id|ys)|sound|th(?:ink|ought)|guess|expect|appear|look|seem|tempt|believ|belief|answer|wrong|mistake|instinct|"
    r"convinced|wrote|assum|suspect|"
    r"mistook|intuit|used to|had the better|confus|had in mind|idea|impression|candidate|glance|started with|"
    r"began with|"
    r"dach|denk|glaub|mein|sag|halt|hielt|tipp|schein|vermut|blick|gedanke|hätt|früher|nenn|wirk|"
    r"pens|croi|croy|cru|di[ts]|dir|sembl|répond|vue|idée|faill|autrefois|hésit|abord|"
    r"parec|cre[ey]|cre[ií]a|dic|contest|respond|vista|antes|casi|supus|idea|"
    r"cred|sembr|primo|dett|ach|diz|diss|lijk|leek|dacht|zeg|gezicht|myśl|wyda|mów|rzut|думал|каз|каж|говор|счита|"
    r"мысл|взгляд|ошиб)|"
    r"以为|觉得|认为|会答|会说|看|猜|选|写|答|想|思|見|생각|보|直觉|反应|误|曾|以前|ظن|وهلة|يعتقد",
    re.IGNORECASE,
)
_BUT: Final = re.compile(
    rf"(?:[,，;；—–]\s?(?:{any_of('but')})[\s,，]?|[;；.。!！,，]\s{{0,4}}(?:{any_of('but')})[\s,，]{{0,2}}|"
    rf"\s(?:{any_of('but')})\s)",
    re.IGNORECASE,
)
_NEXT: Final = re.compile(r"[;；.。!！]\s{0,4}(?=\S)|[,，]\s?(?=\S)")
_INSTEAD: Final = re.compile(rf"(?:{any_of('instead')})\s([^,，]{{1,80}})[,，]\s?", re.IGNORECASE)
_LINKED: Final = re.compile(r"\s(?:is|was|are|were|ist|war|sind|est|sont|es|son|fue|è|é)\s", re.IGNORECASE)
_NEITHER: Final = re.compile(r"\b(?:neither|weder|ni|né|nem|noch|ani)\b[^:;.]{1,120}[:;]\s{0,4}(?=\S)", re.IGNORECASE)

_NEGATION: Final = (
    r"(?:(?:is|are|was|were|do|does|did|has|have|would|can|could|should)(?:n['’]t|\s(?:\w+ly\s)?not)|['’]s\snot|"
    r"['’]re\snot|nicht|kein\w{0,2}|"
    r"(?:n['’]|ne\s)\w+\spas|non\s(?:è|sono|era)|\bno\s(?:es|son|era|fue|está)|não\s(?:é|são|era|foi)|niet|geen|nie|не|"
    r"不是|并不是|并非|不叫|不在)"
)
_NOT_THEN: Final = re.compile(
    rf"{_NEGATION}(?!\s(?:only|nur|solo|seulement|"
    rf"just))[^.;。；!?！？\n]{{1,200}}?[.;,。；，—–]\s{{0,4}}(?P<next>"
    r"(?:(?:actually|instead|tatsächlich|en réalité)\s)?"
    rf"(?:{any_of('it_is')}|er ist|she is|he is|you|er war)(?!\w)[^\n]{{1,300}}|"
    r"\S{1,60}\s(?:did|does|was|is|were)\.)",
    re.IGNORECASE,
)
_NOT_ONLY: Final = re.compile(
    r"(?:only|nur|solo|seulement|merely|simply|just|sólo|solamente|только|仅|只)\b", re.IGNORECASE
)
_SUBJECT: Final = re.compile(
    r"(?:also|auch|aussi|también|it|he|she|they|we|i|you|er|sie|es\s|il\s\w+\s|elle|this|that|there|only|can|could|"
    r"will|would|do|does|did|is|are|was|were|had|has|have|who|which)\b",
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
    for find in (_replied, _not_but, _not_then, _is_wrong, _neither, _first_thought, _instead):
        found = find(text, left)
        if found is not None and (best is None or found[0] > best[0]):
            best = found
    return best


def _last(pattern: re.Pattern[str], text: str, left: int) -> re.Match[str] | None:
    last = None
    for match in pattern.finditer(text, left):
        last = match
    return last


def _replied(text: str, left: int) -> Span | None:
    found = _last(_NO, text, left)
    if found is None or not text[found.end() :].strip() or not text[left : found.start()].strip():
        return None
    return trimmed(text, found.end(), len(text))


def _not_but(text: str, left: int) -> Span | None:
    best: Span | None = None
    for pattern in _PAIRS:
        found = _last(pattern, text, left)
        if found is None:
            continue
        sentence = sentences(text, found.end(), min(len(text), found.end() + LONGEST_SENTENCE))[:1]
        if not sentence or _SUBJECT.match(text, *sentence[0]) or len(text[sentence[0][0] : sentence[0][1]].split()) > 8:
            continue
        if best is None or sentence[0][0] > best[0]:
            best = sentence[0]
    return best


def _not_then(text: str, left: int) -> Span | None:
    found = _last(_NOT_THEN, text, left)
    return None if found is None else trimmed(text, *found.span("next"))


def _is_wrong(text: str, left: int) -> Span | None:
    found = _last(_WRONG, text, left)
    if found is None or len(text) - found.end() > 200 or not text[found.end() :].strip():
        return None
    if not text[left : found.start()].strip():
        return None
    rest = sentences(text, found.end(), len(text))
    return rest[-1] if rest else None


def _neither(text: str, left: int) -> Span | None:
    found = _last(_NEITHER, text, left)
    return None if found is None else trimmed(text, found.end(), len(text))


def _first_thought(text: str, left: int) -> Span | None:
    thought = _FIRST.search(text, left)
    if thought is None:
        return None
    if text[left : thought.start()].count(".") > 2:
        return None
    if _BELIEF.search(text, left, min(len(text), thought.end() + 160)) is None:
        return None
    turn = _last(_BUT, text, thought.end())
    if turn is None:
        turn = _last(_NEXT, text, thought.end())
        if turn is None:
            return None
        sentence = _last(re.compile(r"[;；.。!！]\s{0,4}(?=\S)"), text, thought.end())
        turn = sentence or turn
    else:
        later = _last(re.compile(r"[;.。]\s{0,4}(?=\S)"), text, turn.end())
        turn = later or turn
    rest = trimmed(text, turn.end(), len(text))
    return rest if rest[0] < rest[1] else None


def _instead(text: str, left: int) -> Span | None:
    found = _last(_INSTEAD, text, left)
    if found is None or len(text) - found.end() > 200:
        return None
    span = trimmed(text, found.end(), len(text))
    if span[0] >= span[1]:
        return None
    if _LINKED.search(text, *span) is None:
        # Without a verb to divide at, the true part has as many words as the one that it replaces.
        count = len(found[1].split())
        tail = re.search(rf"(?:\S+\s+){{{count - 1}}}\S+$", text[span[0] : span[1]]) if count <= 4 else None
        if tail is not None:
            return span[0] + tail.start(), span[1]
    return span
