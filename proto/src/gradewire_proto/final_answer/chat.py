"""Sentences that only address the reader: those that open and close a chat, questions, and plans without a result."""

import re
from typing import Final

from gradewire_proto.final_answer.assertions import asserted_answer
from gradewire_proto.final_answer.clauses import sentences, tidied, trimmed, without_end
from gradewire_proto.final_answer.corrections import retracts
from gradewire_proto.final_answer.found import Found, finish
from gradewire_proto.final_answer.marks import Statement, empty_mark
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of

_CLOSER: Final = re.compile(
    rf"[\s(*_¡¿\"-]{{0,8}}(?:{any_of('closer')})(?!\w|['’])|[\s(]{{0,4}}(?:{any_of('closer')})", re.IGNORECASE
)
_IF_YOU: Final = re.compile(
    r"[\s(*_]{0,8}if you(?:['’]d| would| ever| still)? (?:have|need|want|like|wish|prefer|enjoy|found|share|tell|"
    r"provide|let|get stuck|"
    r"run into|are (?:interested|curious|looking|unsure))(?!\w)|[\s(*_]{0,8}if you[^.\n]{0,120}\b(?:let me know|"
    r"tell me|just ask|"
    r"feel free|(?-i:please)|i can|i['’]d be|i['’]ll|i would|ask me|happy to)\b",
    re.IGNORECASE,
)
_OPENER: Final = re.compile(
    rf"[¡\s]{{0,4}}(?:{any_of('opener')})(?:[,，]\s?(?:{any_of('opener')})){{0,2}}(?:[^.!?:。！,，]{{0,24}}(?:[.!。！：]|:(?!\d))|"
    rf"[,，：]|:(?!\d)|\s[—–-](?=\s))\s{{0,4}}(?:👋\s?)?",
    re.IGNORECASE,
)
_IT_IS: Final = re.compile(rf"(?:{any_of('it_is')})(?:(?!\w|['’]\w)|(?<=[\u4e00-\u9fff]))\s?(?=\S)", re.IGNORECASE)
_YOU: Final = re.compile(any_of("you"), re.IGNORECASE)
_PLANNING: Final = re.compile(rf"[\s*#_]{{0,8}}(?:{any_of('planning')})", re.IGNORECASE)
_FINISHED: Final = re.compile(r"[.!?。！？…)\]}\"'”»*_`|$]\s*$|\d\s*\S{0,4}\s*$")
_OPEN_LABEL: Final = re.compile(
    rf"[\s*#_]{{0,8}}(?:[^\W\d_]{{1,16}}\s){{0,2}}(?:{any_of('answer', 'result')})\s?[:：]?[\s*_]{{0,8}}", re.IGNORECASE
)


_LONGEST_OPENED: Final = 4000
_COURTESY: Final = re.compile(
    r"(?<!\w)(?:question|great|nice|good|fun one|lovely|interesting|fascinating|wonderful|awesome|help|assist|glad|"
    r"happy|pleasure|thanks?|"
    r"welcome|patience|sure|of course|klar|natürlich|claro|certo|bien sûr|évidemment|frage|toll|super|schön|spannend|"
    r"interessant|danke|gern|helfen|hilfe|freue?|"
    r"intéressant|bonne|belle|"
    r"merci|plaisir|ravi|aider|génial|pregunta|interesante|buen|gracias|gusto|ayudar|encantado|genial|domanda|bella|"
    r"interessante|grazie|"
    r"piacere|aiutar|pergunta|boa|ótima|obrigad|prazer|ajudar|вопрос|спасибо|интересн|рад)\w{0,4}(?!\w)|问题|感谢|谢谢|高兴|"
    r"有趣|質問|ありがとう|질문",
    re.IGNORECASE,
)
_EXCLAIMED: Final = re.compile(
    r"[¡\s]{0,4}[^.!?:。！？\n\"“„«]{1,60}[!！]+\s{0,4}"
    r"(?:[\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F]\s{0,2})*(?=[^\sa-zà-ÿ])"
)
_COURTEOUS: Final = re.compile(r"[^.!?:。！？\n]{1,80}[.!。！]\s{0,4}(?=\S)")
_ADDRESSED: Final = re.compile(
    r"[^.!?:。！？\n]{0,40}?(?<!\w)(?:you|dir|ihnen|Ihnen|euch|te|vous|ti|lhe|вам|тебе|您|"
    r"你)(?!\w)[^.!?:。！？\n]{0,24}[:：]\s{0,4}(?=\S)"
)
_LONGEST_ASKED: Final = 400
_LONGEST_QUESTION: Final = 1200
_REQUEST: Final = re.compile(
    r"[¿¡\s]{0,4}(?:please|bitte|s['’]il (?:te|vous) plaît|por favor|per favore|пожалуйста|请|¿?me (?:puedes?|"
    r"podrías?)|"
    r"peux-tu|pouvez-vous|puoi|podes)(?!\w)",
    re.IGNORECASE,
)
_EMOJI: Final = re.compile(r"[\s\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F\u200d]+\Z")
_BELIEVED: Final = re.compile(
    rf"(?=(?:i|ich|je|creo|pienso|penso|credo|acho|я)\s)(?:{any_of('it_is')})(?!\w)", re.IGNORECASE
)
_GREETED: Final = re.compile(
    r"(?:hello|hi|hey|good morning|good evening|good night|bonjour|hola|hallo|ciao|salut|oh|"
    r"ah),\s\w+(?:\s\w+)?[.!?]?\s*",
    re.IGNORECASE,
)
"""A greeting by name, such as the title "Hello, Dolly!"."""
_FURTHER: Final = re.compile(
    r"(?<!\w)(?:help|else|more|further|noch|weiter|sonst|autre|plus|más|otra|altro|mais|outra|ещё|ещe|можем|помочь|"
    r"еще)(?!\w)|其他|还|吗|别的|"
    r"ますか|ありますか",
    re.IGNORECASE,
)
_QUOTED_END: Final = re.compile(r"[\"“„«「`*]{1,2}([^\"“”„«»「」`*\n]{1,60})[\"”“»」`*]{1,2}\s?[.!。]?\s*$")


_TITLE_SMALL: Final = (
    r"(?:an?|the|of|in|on|at|to|and|or|for|by|with|from|as|but|nor|de|la|le|el|di|von|van|der|des|du)(?!\w)"
)
_TITLE_WORD: Final = r"[A-ZÀ-Þ\d][\w'’.-]{0,40}"
_TITLE_TEXT: Final = rf"{_TITLE_WORD}(?:[,:]?\s(?:{_TITLE_SMALL}|{_TITLE_WORD}|[–—-](?=\s))){{2,16}}\s?[?？]"
_TITLE: Final = re.compile(rf"[\s*_\"“«¿]{{0,4}}{_TITLE_TEXT}[\s*_\"”»]{{0,4}}")
"""A question of three or more words, all with capitals apart from small ones: "Who Framed Roger Rabbit?"."""
_LAST_TITLE: Final = re.compile(rf"(?:^|[\s*_\"“«¿])({_TITLE_TEXT})[\s*_\"”».]{{0,4}}\Z")
_LONGEST_TITLE: Final = 160
_TITLED: Final = re.compile(
    rf"(?:{any_of('it_is')}|[^.!?\n]{{1,40}}\s(?:called|titled|entitled|named|heißt|s['’]appelle|se llama|si chiama))\s"
    r"[\"“«*_]{0,2}(?-i:[A-ZÀ-Þ¿])",
    re.IGNORECASE,
)
_ASKING: Final = re.compile(
    r"(?:who|what|where|when|why|how|which|whose|are|is|am|do|does|did|can|could|will|would|should|may|shall|wer|was|"
    r"wo|wie|warum|wann|welche\w?|qui|que|où|quand|comment|pourquoi|est-ce|quo|chi|che|dove|quando|perché|come|"
    r"кто|что|где|когда|кому|как)(?!\w)|[¿谁什哪]",
    re.IGNORECASE,
)


def is_title(text: str, left: int, right: int) -> bool:
    """Return True if a span is a question that is written like a title; one in capitals throughout is not."""
    return _TITLE.fullmatch(text, left, right) is not None and not text[left:right].isupper()


def asked_title(text: str, left: int, right: int) -> Span | None:
    """Return the span of an announced answer that is a question: a title, or all that is said."""
    first = next(iter(sentences(text, left, right)), None)
    if first is None or text[first[1] - 1] not in "?？":
        return None
    alone = first[1] == right and _ASKING.match(text, *first) is not None
    return first if alone or is_title(text, *first) else None


def without_closers(text: str) -> int:
    """Return the end of a text without the sentences at its end that only address the reader."""
    end = len(text.rstrip())
    emoji = _EMOJI.search(text, max(0, end - 24), end)
    if emoji is not None and text[: emoji.start()].endswith((".", "!", "?", "。", "！")):
        end = emoji.start()
    for _ in range(8):
        paragraph = text.rfind("\n\n", 0, end)
        listed = sentences(text, max(0, end - 1200), end)
        if paragraph >= 0 and is_title(text, *trimmed(text, paragraph + 2, end)):
            break
        if (paragraph >= 0 and text[:paragraph].strip() and _addresses(text, paragraph + 2, end)) or (
            0 <= paragraph >= end - 200 and re.fullmatch(r"\s*(?:---+|\*\*\*+)\s*", text[paragraph:end])
        ):
            end = len(text[:paragraph].rstrip())
        elif len(listed) > 1 and _closes(text, *listed[-1]) and listed[-1][0] > 0:
            end = len(text[: listed[-1][0]].rstrip(" \n(*_¡¿"))
        else:
            break
    return end


def _addresses(text: str, left: int, right: int) -> bool:
    """Return True if a span begins with words that address the reader; "if you mean X, it is Y" answers."""
    return _IF_YOU.match(text, left, right) is not None or _CLOSER.match(text, left, right) is not None


def _closes(text: str, left: int, right: int) -> bool:
    """Return True if a sentence addresses the reader: it begins with a closing word, or offers further help."""
    if _addresses(text, left, right):
        return not retracts(text, left, right)
    return text[right - 1] in "?？" and right - left <= 80 and _FURTHER.search(text, left, right) is not None


def _after_opener(text: str, begin: int, end: int) -> int:
    """Return the end of a sentence that opens a chat, or `begin` without such a sentence."""
    if (opener := _OPENER.match(text, begin, end)) is not None and _GREETED.fullmatch(text, begin, end) is None:
        return opener.end()
    exclaimed = _EXCLAIMED.match(text, begin, end)
    if (
        exclaimed is not None
        and len(exclaimed[0].split()) <= 6
        and (_IT_IS.match(text, exclaimed.end(), end) is not None or _COURTESY.search(exclaimed[0]) is not None)
    ):
        return exclaimed.end()
    courteous = _COURTEOUS.match(text, begin, end)
    if (
        courteous is not None
        and len(courteous[0].split()) <= 9
        and (_COURTESY.search(courteous[0][:16]) is not None and _IT_IS.match(text, courteous.end(), end) is not None)
    ):
        return courteous.end()
    addressed = _ADDRESSED.match(text, begin, end)
    return begin if addressed is None else addressed.end()


def unasserted(text: str, end: int, statement: Statement | None) -> str:
    """Return the reason if a text asserts nothing: a question to the reader, a plan, or the mark of an answer alone."""
    said = text[:end].strip()
    if not said:
        return "the completion is empty"
    if len(said) < 40 and empty_mark(said):
        return "the marked answer is empty"
    if statement is None and _OPEN_LABEL.fullmatch(said) is not None and said.rstrip("*_ ").endswith((":", "：")):
        return "nothing follows the announcement of the answer"
    if _only_asks(text.strip()) and not is_title(said, 0, len(said)):
        return "the completion asks a question"
    if (
        statement is None
        and _PLANNING.match(said) is not None
        and _FINISHED.search(said[-200:]) is None
        and len(said) > 24
        and (said[:3].lower() != "to " or "," in said)
    ):
        return "the completion ends before an answer"
    return ""


def _only_asks(text: str) -> bool:
    """Return True if a text is a question to the reader, or a short one of several questions and requests."""
    said = text[-_LONGEST_QUESTION:]
    if "?" not in said and "？" not in said:
        return False
    listed = sentences(said, 0, len(said))
    asked = [said[right - 1] in "?？" for _, right in listed]
    requested = [_REQUEST.match(said, *span) is not None for span in listed]
    addressed = any(requested) or _YOU.search(said) is not None
    if len(listed) == 1:
        if _TITLED.match(said) is not None:
            return False
        titled = None if said.isupper() else _LAST_TITLE.search(said, max(0, len(said) - _LONGEST_TITLE))
        # In "The book is called Are You Afraid of the Dark?" only the title says "you".
        return asked[0] and _YOU.search(said, 0, len(said) if titled is None else titled.start(1)) is not None
    return len(text) <= _LONGEST_ASKED and any(asked) and addressed and all(map(max, asked, requested))


def opened(original: str, text: str, end: int) -> Found | None:
    """Return the answer after the sentence that opens a chat, such as "Good question!"."""
    begin = 0
    for _ in range(3):
        after = _after_opener(text, begin, end)
        if after == begin or not text[after:end].strip():
            break
        begin = after
    if not begin and _BELIEVED.match(text, 0, end) is None:
        return None
    if end - begin > _LONGEST_OPENED:
        return Found(begin, end, "whole")
    listed = sentences(text, begin, end)
    if len(listed) > 2:
        return Found(begin, end, "whole")
    left, right = (
        listed[-1] if begin and len(listed) == 2 and _IT_IS.match(text, *listed[-1]) else (listed[0][0], listed[-1][1])
    )
    quoted = _QUOTED_END.search(original, left, right)
    if quoted is not None and len(listed) == 1 and original[left : quoted.start()].count(" ") <= 8:
        return finish(original, *quoted.span(1), "line")
    if (it_is := _IT_IS.match(text, left, right)) is not None and len(text[it_is.end() : right].split()) <= 8:
        return finish(original, *asserted_answer(text, left, right), "line")
    return Found(*without_end(original, *tidied(original, left, right)), "line")
