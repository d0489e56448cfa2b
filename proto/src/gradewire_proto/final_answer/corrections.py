"""Corrections: the statement after "no wait, …", after an admitted mistake, or after a check ("Yes, 16").

Only the last 4 000 characters are searched, and each sentence up to 600 characters.
"""

import re
from typing import Final

from gradewire_proto.final_answer.clauses import (
    LONGEST_SENTENCE,
    first_clause,
    last_match,
    sentences,
    tidied,
    trimmed,
)
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of

MOST_SEARCHED: Final = 4_000
_MOST_CUES: Final = 8

_BOUNDARY: Final = re.compile(
    r"(?:[.!?…;,:—(\n。！？，；、)]\s{0,8}|\s[–-]{1,2}\s{1,4}|\s[–-]\s{0,4}|–\s{0,4}|[>}]\$?\s{1,8})(?=[^\s.!?…;,:—–()。！？，；、-])|"
    r"\s(?=(?:anzi|beziehungsweise|or rather|i mean)\b)",
    re.IGNORECASE,
)
_FILLER: Final = re.compile(
    r"(?:(?:and|but|although|though|aunque|obwohl|oh|ah|hmm|hm|um|uh|well|okay|ok|so|aber|ach|oh|mais|pero|ma|mas|哦|"
    r"啊|嗯|呃|噢|no|non|nein|não|不|いや|"
    r"нет|nee|nie)[\s,.!…，、]{1,3})?",
    re.IGNORECASE,
)
_AFTER_CUE: Final = r"(?=[\s,.:!?—–;…，。：、！-]|$|[^\x00-\x7f])"
_RETRACT: Final = re.compile(rf"(?:{any_of('retract')}){_AFTER_CUE}", re.IGNORECASE)
_ADDS: Final = re.compile(any_of("adds"), re.IGNORECASE)
_SHOULD_BE: Final = re.compile(
    r"(?:(?:that|this|it)\s)?should (?:be|have been|read)(?=\s)|(?:das |es )?(?:müsste|sollte)(?=\s)|"
    r"(?:ça|cela|ce) devrait être|debería ser|dovrebbe essere|deveria ser|应该?是|应为",
    re.IGNORECASE,
)
_NO_AFTER_DOUBT: Final = re.compile(r"[\s,，]{1,3}(?:no|nein|non|não|nee|nie|нет|不)(?=[\s,.!—–，])", re.IGNORECASE)
_PUNCTUATED: Final = re.compile(r"\s?[,.:!?—–…，。：、！-]|\s*$")
_DOUBT_WORD: Final = re.compile(rf"(?:{any_of('doubt')})[\s,，]{{1,3}}(?=\S)", re.IGNORECASE)
_LETTER: Final = re.compile(r"[(\[]?[A-Ja-j][)\]]?")
_AMOUNT: Final = re.compile(
    r"(?:(?!seit |así |desde |since |depuis )[^\W\d]+[.]?\s){0,2}?[-−+$€£¥]{0,2}(?:[a-zA-Z]\s?=\s?)?"
    r"\d[\d.,:/^%° ]{0,20}"
    r"(?:\s?(?!(?:is|are|was|were|has|have|and|ist|sind|est|es|son)(?!\w))[^\W\d][\w²³/°%-]{0,14}){0,3}"
)
_SMALL_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "of the a an and to in on for de la le les du des del el los las von van der die das den dem di da do und et y "
        "e",
    )
)
_NO_NAME: Final = re.compile(
    r"(?:for|if|in|at|about|to|with|by|as|and|but|this|that|it|all|so|not|well|für|wenn|in|bei|aber|pour|si|dans|par|"
    r"mais|cela|por|para|en|pero|eso|\w+ly|\w+ment|\w+mente)(?!\w)",
    re.IGNORECASE,
)
_MOST_WORDS: Final = 6
_MOST_SIGNS: Final = 8
_SIGNS: Final = re.compile("[\u3040-\u9fff\uac00-\ud7af]")
_SIGNS_OF_PROSE: Final = re.compile("[了吗呢吧这那都还很不没的也]")
_DOUBT: Final = re.compile(
    rf"(?:{any_of('doubt')})(?:[,.:!?…—–;，。：！、]|\s[—–-]\s|\s(?={any_of('it_is', 'excuse', 'doubt')})|(?=是\w))",
    re.IGNORECASE,
)
_HEADED: Final = re.compile(r"(?:edit|update)(?!\s?[:：—–-])", re.IGNORECASE)
"""Nouns that announce a correction before a colon only; elsewhere they are words of a list or sentence."""
_APOLOGY: Final = re.compile(r"(?:sorry|entschuldigung|désolée?|lo siento)\s?\.", re.IGNORECASE)
"""An apology for what was said before or elsewhere: "Only in grey, sorry."."""
_SORRY_FOR: Final = re.compile(r"(?:sorry|apologies)\s(?:that|for|about|to)\s(?!the (?:error|mistake))", re.IGNORECASE)
_ELABORATES: Final = re.compile(r"(?:in fact|tatsächlich|en fait)\s?,(?:\s[^\s.!?]+){9}", re.IGNORECASE)
"""A long sentence that begins with "in fact" tells more, and corrects nothing."""
_FAULT: Final = re.compile(
    r"(?:i|we)(?:['’]ve| have| had)? (?:\w+ly )?(?:mis\w+|confused|forgot\w*(?! to (?:mention|say|add|note))|"
    r"mixed|transposed|swapped|overlooked|"
    r"missed|dropped|skipped|"
    r"omitted|ignored|double.counted|retract|(?:read|used|took|picked|looked at|added) the wrong)(?!\w)|"
    r"ich (?:habe|hatte|hab)\s[^.,:;!?\n]{0,40}?(?:ver(?:wechselt|tauscht|gessen|zählt|rechnet|tan|lesen|dreht)|"
    r"übersehen|falsch \w+)|"
    r"j['’](?:ai|avais) (?:confondu|oublié|mal \w+|inversé|sauté|omis)|(?:me )?(?:confundí|olvidé|equivoqué|salté|"
    r"(?:conté|leí|sumé) mal)|"
    r"ho (?:dimenticato|confuso|sbagliato|saltato)|(?:me )?(?:esqueci|confundi|errei|enganei|pulei)|"
    r"я (?:забыл|перепутал|ошиб|пропустил|неверно)\w*",
    re.IGNORECASE,
)
_AGAIN: Final = re.compile(
    r"(?:looking|reading|going|checking|counting|working|thinking|adding)\s[^.,:;\n]{0,40}?(?:again|back|closely|"
    r"twice|closer|once more)|"
    r"(?:bei|nach)\s(?:noch\w*|erneut\w*|genauer\w*|zweit\w*|näher\w*)\s\w+|neue[rs]? (?:versuch|rechnung|anlauf|"
    r"ansatz)|"
    r"en (?:re(?:lis|compt|calcul|vérifi|fais|voy)\w*ant)|(?:à|après) (?:la |une )?(?:nouvelle |seconde |"
    r"deuxième )?re\w{4,12}|"
    r"(?:al|tras|después de) (?:re\w+|(?:contar|mirar|leer|sumar|calcular)\w*)(?: (?:de nuevo|otra vez|bien))?|"
    r"ri(?:legg|cont|calcol|controll|guard)\w+ndo|re(?:l|cont|calcul|f)\w+ndo",
    re.IGNORECASE,
)
_SAID: Final = re.compile(r"[^\s.,;:—–(-]")
_SEPARATOR: Final = re.compile(r"[\s,.:!?—–;…，。：、！-]{0,8}")
_EXCUSE: Final = re.compile(rf"(?:(?:da|oh|ah|well|und|and|et|y)\s)?(?:{any_of('excuse')})", re.IGNORECASE)
_STATED: Final = re.compile(
    rf"[,;，；]\s?(?={any_of('it_is')}(?!\w)|(?:应该|应)?(?:是|为|选)|"
    r"[^,;\n]{1,60}\s(?:does|did|is|was|are|were)\s?[.!]?$)",
    re.IGNORECASE,
)
_CONTINUES: Final = re.compile(
    rf"[,，]\s?(?:{any_of('so')}|which (?:makes|gives|means|leaves)|making|giving|leaving)(?!\w)|"
    rf"[,，](?:{any_of('so')})|"
    r"[:：]\s?\S|[,，]\s?\S{1,12}\s(?:ist es|so)|\bso\b|也就是|应该|\balso\b|\bdonc\b|应为|->|=",
    re.IGNORECASE,
)
_TAKEN_BACK: Final = re.compile(
    r"(?<!\w)i (?:take|withdraw|retract) [^,.;\n]{1,40}? back(?!\w)|ich nehme [^,.;\n]{1,40}? zurück", re.IGNORECASE
)
_LATER_HALF: Final = re.compile(
    r"[;；]\s{0,2}(?=[^;；\n]{1,80}?\s(?:is|are|was|ist|sind|war|est|es|son|è|é|это)\s|.{0,12}是)", re.IGNORECASE
)
_DEMONSTRATIVE: Final = re.compile(
    r"(?:that|this|it|das|dies|es|c|ce|eso|esto|questo|isso|это|那|这)(?:['’]s| is| was| ist| war| est|['’]est| es| è|"
    r" é|是)?(?!\w)|那是|这是",
    re.IGNORECASE,
)
_CONFIRMED: Final = re.compile(
    rf"(?:{any_of('confirm')})\s?[,，:—–]\s?(?:(?:{any_of('it_is')})\s|"
    rf"the answer is\s)?(?P<again>\S.{{0,40}}?)\s?[.!。]?$",
    re.IGNORECASE,
)
_EXPLAINED: Final = re.compile(
    r"(?:that|this|das|dies|c|ce|cela|ça|eso|esto|questo|isso|那|这)(?:['’]s| is| was| would be|['’]d be| isn['’]t|"
    r" wasn['’]t| ist|"
    r" war| wäre|['’]est| était| serait| es| sería| è| sarebbe| é| seria|是)(?!\w)|那是|这是|"
    r"(?:he|she|they) [a-z]+(?!\w)|(?:that|it|this|he|she) (?:isn['’]t|is not|wasn['’]t|was not|can['’]t be|"
    r"cannot be)(?!\w)",
    re.IGNORECASE,
)
_REFERS: Final = re.compile(
    r"(?:its|he|she|they|his|her|their|which|sie|er|ihre?|seine?|son|sa|su)(?!\w)", re.IGNORECASE
)
_STRUCK_OUT: Final = (
    r"(?:crossed[ -]out|struck[ -](?:out|through|off)|scored out|rubbed out|scratched out|lined through|"
    r"strikethrough|struck|"
    r"deleted|erased|durchgestrichen|gestrichen|gelöscht|rayé|barré|biffé|supprimé|tachado|borrado|cancellato|barrato|riscado|"
    r"зачёркнуто|зачеркнуто|划掉|删除|删去)"
)
_STRUCK_NOTE: Final = re.compile(
    rf"[(\[](?:(?:[\"“‘'`]?[^()\[\]\n]{{1,40}}?)\s(?:(?:has|have) been|was|is)\s)?{_STRUCK_OUT}"
    r"(?:\sby [^()\[\]:,;\n]{1,24})?(?:(?:[,;:]\s?|\s(?=(?:and )?(?:replaced|changed|now|new|ersetzt|remplacé)\s))"
    r"(?:and )?(?:replaced by|changed to|now|new|ersetzt durch|remplacé par)?:?\s?(?P<other>[^()\[\]\n]{1,60}))?[)\]]",
    re.IGNORECASE,
)
_NEW: Final = re.compile(r"\s?[(\[](?:new|neu|nouveau|nuevo|inserted|added|corrected)[)\]]\s?[.]?$", re.IGNORECASE)
_TICKED: Final = (
    re.compile(r"\S\s?[✗✘❌✕]\ufe0f?\s{0,4}(?P<true>[^✗✘❌✕✓✔✅\n]{1,60}?)\s?[✓✔✅]\ufe0f?\s?[.]?$"),
    re.compile(r"^\s*[✗✘❌✕]\ufe0f?[^✗✘❌✕✓✔✅\n]{1,60}[✓✔✅]\ufe0f?\s{0,4}(?P<true>[^✗✘❌✕✓✔✅\n]{1,60})$"),
)
"""The ticked one of two candidates: marks after both, or before both."""
_READ: Final = re.compile(
    r"[(\[](?:sic[,;:]?\s(?:read|recte|correctly|should be|richtig|lies|lire|lisez|léase|leggi):?\s|"
    r"(?:read|recte|should be|richtig|lies|lisez|léase|leggi):\s)(?P<true>[^()\[\]\n]{1,60})[)\]]",
    re.IGNORECASE,
)
_MOST_STRUCK_WORDS: Final = 6
_TOKENS: Final = re.compile(r"\w+")
_SPEAKER: Final = re.compile(r"(?:i|we|ich|wir|je|nous|yo|eu|io|ik|я)\s|j['’]|我", re.IGNORECASE)
_IT_IS: Final = re.compile(any_of("it_is"), re.IGNORECASE)
_CONFIRM: Final = re.compile(rf"(?:{any_of('confirm')})(?=\s?[,.!:;—–。，！]|$)", re.IGNORECASE)
_SO: Final = re.compile(rf"(?:{any_of('so')})(?=[\s,，:：]|[^\x00-\x7f])", re.IGNORECASE)

_SO_CLAUSE: Final = re.compile(
    rf"[,，;；]\s?(?:{any_of('so')})\s?(?:(?:the|die|der|das|la|le|el)\s\w+\s(?:is|ist|est|es)\s)?", re.IGNORECASE
)
_SECOND_THOUGHT: Final = re.compile(
    rf"(?P<firm>{any_of('retract')})|(?P<plain>(?:wait|actually|in fact|hold on|hang on|let me \w{{1,16}}|eigentlich|"
    r"tatsächlich|moment(?: mal)?|warte|attendez|attends|en fait|en réalité|esper[ae]|en realidad|de hecho|"
    r"un (?:momento|attimo)|aspetta|in realtà|na (?:verdade|realidade)|wacht|eigenlijk|czekaj|właściwie|"
    r"на самом деле|подождите|подожди|постойте|стоп)(?!\w)|其实|其實|实际上|事实上|実は|実際は|사실은?)|"
    rf"{any_of('doubt')}|(?:well|nun|bien|pues|allora)(?!\w)",
    re.IGNORECASE,
)
_JUST_SAID: Final = re.compile(r"(?<!\w)(?:actually|in fact|really),\s{1,4}\Z", re.IGNORECASE)
"""Words before an answer that the phrase's own pattern skips."""
_DENIAL: Final = re.compile(any_of("no"), re.IGNORECASE)
_AFTER_THOUGHT: Final = re.compile(r"\s?[,.:!?…—–;，。：！、]{1,3}\s{0,4}|\s{1,4}[—–-]{1,2}\s{1,4}")
_NUMERIC: Final = re.compile(r"[-−$€£]?\d")
_MOST_THOUGHTS: Final = 4


def without_second_thoughts(text: str, left: int, right: int) -> int:
    """Return the start of an announced answer behind words that take something back: 12 in "Actually, it's 12".

    Yes-no answers and names keep their first words: "No, it is not", "Oh, Calcutta!", "Wait Until Dark".
    """
    begin = left
    for _ in range(_MOST_THOUGHTS):
        thought = _SECOND_THOUGHT.match(text, begin, right)
        if thought is None or _HEADED.match(text, begin, right) is not None:
            break
        mark = _AFTER_THOUGHT.match(text, thought.end(), right)
        rest = mark.end() if mark else right - len(text[thought.end() : right].lstrip())
        if (not mark and rest == thought.end() and text[rest - 1].isascii()) or not text[rest:right].strip(" .!?。"):
            break
        stated = any(each.match(text, rest, right) for each in (_IT_IS, _NUMERIC))
        following = _SECOND_THOUGHT.match(text, rest, right) if mark else None
        if _DENIAL.fullmatch(thought[0]) is not None:
            follows = thought["firm"] is not None and stated
        elif thought["firm"] or thought["plain"]:
            follows = mark is not None or stated
        else:
            again = following is not None and (following["firm"] or following["plain"])
            follows = mark is not None and bool(stated or again)
        if not follows:
            break
        begin = rest
    taken_back = begin > left or _JUST_SAID.search(text, max(0, left - 24), left) is not None
    it_is = _IT_IS.match(text, begin, right) if taken_back else None
    # "Actually, It's a Wonderful Life"
    if it_is is None or (text[begin].isupper() and text[:begin].rstrip()[-1:] in ",，"):
        return begin
    after = trimmed(text, it_is.end(), right)
    return after[0] if after[0] < after[1] else begin


def retraction(text: str, left: int, *, answer: str | None) -> Span | None:
    """Return the span after the last retraction in a text, to the end of the text; None if nothing is retracted.

    Args:
        text: The spoken text, without closing sentences.
        left: Start of the statement that may be retracted.
        answer: The answer of a marked statement, otherwise None. An explicit retraction replaces it; a mere doubt or a
            word such as "more precisely" does so only in its own paragraph, by a short answer of the same type.
    """
    if (again := _confirmed(text, left)) is not None and (answer is None or _is_alike(text, again, answer)):
        return again
    for cue, place, firm in _retracted(text, left, marked=answer is not None):
        separator = _SEPARATOR.match(text, place)
        begin = separator.end() if separator else place
        if re.compile(r"\w").search(text, begin) is None:
            continue
        listed = sentences(text, begin, len(text))
        if listed and _CONFIRM.match(text, listed[-1][0]):
            return None
        before = sentences(text, max(left, cue - LONGEST_SENTENCE), cue)
        # "I made a mistake in the sum. It is 8.": the first sentence may only end the retraction.
        for said in (listed, listed[1:] if firm and answer is not None else []):
            core = asserted(text, said, text[slice(*before[-1])] if before else "")
            if core is not None and (answer is None or _replaces(text, core, answer, listed, place if firm else None)):
                return core
    return None


def _replaces(text: str, core: Span, answer: str, listed: list[Span], firm: int | None) -> bool:
    """Return True if a correction may replace a marked answer; `firm` is the end of an explicit retraction."""
    if firm is None:
        concluded = last_match(_SO_CLAUSE, text[: core[1]], core[0])
        return _is_alike(text, core, answer) or (
            concluded is not None and _is_alike(text, (concluded.end(), core[1]), answer)
        )
    if _FAULT.match(text, firm) is not None:
        return re.search(r"\d", answer) is None or re.search(r"\d", text[slice(*core)]) is not None
    if _PUNCTUATED.match(text, firm) is not None or not text[firm - 1].isalnum() or _is_alike(text, core, answer):
        return True
    return len(listed) > 1 and core[0] >= listed[1][0] and _IT_IS.match(text, *core) is not None


def _is_alike(text: str, span: Span, answer: str) -> bool:
    """Return True if a sentence is a short answer of the same type as another: a number, a letter or a name."""
    left, right = span
    named = False
    for begin in (_FILLER, _DOUBT_WORD, _SO, _IT_IS):
        if (found := begin.match(text, left, right)) is not None and found.end() > left:
            left = found.end()
            named = named or begin is _IT_IS
            left += len(text[left:right]) - len(text[left:right].lstrip(" ,，:："))
    said = text[slice(*tidied(text, *first_clause(text, left, right)))].rstrip("!?！？)）")
    answer = answer.strip(" .。()[]*")
    words = said.split()
    if not words or len(words) > _MOST_WORDS or len(said) > 10 * _MOST_WORDS:
        return False
    if re.search(r"\d", answer) is not None:
        return _AMOUNT.fullmatch(said.rstrip(" $")) is not None
    if _LETTER.fullmatch(answer) is not None:
        return _LETTER.fullmatch(said) is not None
    if _SIGNS.search(said) is not None:
        prose = len(said) > _MOST_SIGNS or (not named and _SIGNS_OF_PROSE.search(said) is not None)
        return _SIGNS.search(answer) is not None and not prose
    return _NO_NAME.match(said) is None and _is_name_like(words, answer.split(), named=named)


def _is_name_like(words: list[str], answer: list[str], *, named: bool) -> bool:
    """Return True if some words are written like an answer: all capitalized, or two or three small ones."""
    said = [word for word in words if word.lower() not in _SMALL_WORDS]
    if not said or not answer:
        return False
    if any(word[0].isupper() for word in answer):
        article = words[0] in _SMALL_WORDS - {"the", "le", "el", "il"}
        capitalized = any(word[0].isupper() for word in said) and not any(word[0].islower() for word in said)
        return capitalized and (not article or answer[0].lower() in _SMALL_WORDS)
    small = len(said) <= 3 and all(word.replace("-", "").isalpha() for word in said)
    return small and (named or len(words) - len(said) == (answer[0].lower() in _SMALL_WORDS))


def retracts(text: str, left: int, right: int) -> bool:
    """Return True if a sentence begins with a retraction."""
    return _RETRACT.match(text, left, right) is not None


def _confirmed(text: str, left: int) -> Span | None:
    """Return the answer that a last sentence repeats after a check: "Yes, 16."."""
    listed = sentences(text, max(left, len(text) - LONGEST_SENTENCE), len(text))
    found = _CONFIRMED.match(text, *listed[-1]) if len(listed) > 1 else None
    if found is None or len(found["again"].split()) > 4:
        return None
    said = found["again"].lower()
    repeated = re.search(r"\d", said) is not None or said in text[: listed[-1][0]].lower()
    return found.span("again") if repeated else None


def _retracted(text: str, left: int, *, marked: bool) -> list[tuple[int, int, bool]]:
    """Return the spans of the last cues, the last first, and whether each is an explicit retraction."""
    said = _SAID.search(text, left)
    if said is None:
        return []
    paragraph = text.find("\n\n", left) if marked else -1
    near = len(text) if paragraph < 0 else paragraph
    cues: list[tuple[int, int, bool]] = []
    for boundary in _BOUNDARY.finditer(text, max(left, len(text) - MOST_SEARCHED)):
        if boundary.start() < said.start():
            continue
        filler = _FILLER.match(text, boundary.end())
        places = {boundary.end(): None, (filler or boundary).end(): None}
        cue = next(filter(None, (cue.match(text, place) for place in places for cue in (_RETRACT, _AGAIN))), None)
        if cue is not None and _is_apology(text, boundary, cue.start()):
            cue = None
        firm = cue is not None and cue.re is _RETRACT and _ADDS.fullmatch(cue[0]) is None
        if cue is None and boundary.start() <= near:
            cue = next(filter(None, (_DOUBT.match(text, place) for place in places)), None)
            if cue is not None and (
                _is_apology(text, boundary, cue.start()) or (not marked and _ELABORATES.match(text, cue.start()))
            ):
                cue = None
            firm = cue is not None and _NO_AFTER_DOUBT.match(text, cue.end() - (not cue[0][-1].isalnum())) is not None
        if cue is None and marked:
            cue = _SHOULD_BE.match(text, boundary.end())
        if cue is not None:
            cues.append((boundary.start(), cue.end(), firm))
        elif _FAULT.match(text, boundary.end()) is not None:
            cues.append((boundary.start(), boundary.end(), True))
    return cues[: -_MOST_CUES - 1 : -1]


def _is_apology(text: str, boundary: re.Match[str], cue: int) -> bool:
    """Return True if a cue apologizes for something else, or is a word of a list such as "read, update, delete"."""
    if boundary[0][0] in ",，" and _APOLOGY.match(text, cue) is not None:
        return True
    return _SORRY_FOR.match(text, cue) is not None or _HEADED.match(text, cue) is not None


def asserted(text: str, listed: list[Span], replaced: str) -> Span | None:
    """Return the sentence that asserts something, among the sentences of a correction; None if all only excuse.

    Args:
        text: The text that contains the sentences.
        listed: Spans of the sentences.
        replaced: The sentence before the correction. One that begins like it, or also has a number, replaces it.
    """
    said = [rest for span in listed if (rest := _without_excuse(text, span)) is not None]
    if not said:
        return None
    while len(said) > 1 and explains_rejected(text, *said[:2]):
        said = said[1:]
    frame = _TOKENS.findall(replaced.lower())[:2]
    alike = [span for span in said if len(frame) == 2 and _TOKENS.findall(text[slice(*span)].lower())[:2] == frame]
    concluding = [span for span in said[1:] if _SO.match(text, span[0])]
    if concluding or alike:
        return (concluding or alike)[-1]
    if re.search(r"\d", replaced) and (counted := [span for span in said if re.search(r"\d", text[slice(*span)])]):
        said = counted
    first = said[0]
    short = len(text[first[0] : first[1]].split()) <= 8 and first[1] - first[0] <= 60
    unspaced = re.search("[\u3040-\u9fff]", text[first[0] : first[1]]) is not None
    return first if (short and (not unspaced or first[1] - first[0] <= 16)) else said[-1]


def explains_rejected(text: str, span: Span, following: Span) -> bool:
    """Return True if a sentence says what a rejected answer would be, and the next one gives the answer.

    "No, that's power. The ohm.": the first sentence explains the watt.
    """
    said = text[slice(*span)]
    if _EXPLAINED.match(said) is None or re.search(r"\d", said) is not None:
        return False
    last = _TOKENS.findall(said.lower())[-1]
    then = text[slice(*following)]
    return last not in _TOKENS.findall(then.lower()) and _REFERS.match(then) is None


def _without_excuse(text: str, span: Span) -> Span | None:
    """Return a sentence, without an excuse at its start if a statement follows; None if the sentence only excuses."""
    if _TAKEN_BACK.search(text, *span) is not None:
        return None
    half = _LATER_HALF.search(text, *span)
    excused = _EXCUSE.match(text, *span) is not None or _FAULT.match(text, *span) is not None
    if half is not None and (excused or _DEMONSTRATIVE.match(text, *span) is not None):
        return half.end(), span[1]
    if not excused and (_SPEAKER.match(text, *span) is None or _IT_IS.match(text, *span)):
        return span
    if (stated := _STATED.search(text, *span)) is not None:
        return stated.end(), span[1]
    return span if _CONTINUES.search(text, *span) is not None else None


def replacement(text: str) -> Span | None:
    """Return what replaces an answer that a note calls crossed out or misread: "75% [deleted] 34% [new]".

    None if there is no such note, or nothing replaces what it strikes.
    """
    begin = max(0, len(text) - LONGEST_SENTENCE)
    for pattern in (*_TICKED, _READ):
        if (named := pattern.search(text, begin)) is not None:
            return named.span("true")
    if (note := last_match(_STRUCK_NOTE, text, begin)) is None:
        return None
    line = text.rfind("\n", 0, note.start()) + 1
    stripped = text[note.end() :].strip(" .,;:→\n")
    other = (note["other"] or "").strip()
    replaced = re.search(r"replaced|changed|now|new|ersetzt|remplacé", note[0], re.IGNORECASE) is not None
    if other and replaced:
        return note.span("other")
    if not stripped or len(text[line : note.start()].split()) > _MOST_STRUCK_WORDS:
        return None
    start = text.index(stripped[0], note.end())
    end = _NEW.search(text, start)
    return start, end.start() if end is not None else len(text)
