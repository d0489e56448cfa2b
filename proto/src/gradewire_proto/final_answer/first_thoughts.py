"""First thoughts and common beliefs: "At first I thought X, but it is Y", "Many say X; it is Y"."""

import re
from typing import Final

from gradewire_proto.final_answer.clauses import last_match, trimmed
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of

_FULL_STOP: Final = re.compile(r"[;；.。!！]\s{0,4}(?=[^\s\d])|[;；.。!！]\s{1,4}(?=\S)")
_FIRST: Final = re.compile(any_of("first"), re.IGNORECASE)
_SUPPOSED: Final = re.compile(
    r"\b(?:many|most|some|peop\w+|students|children|(?:a )?beginners?|(?:a )?novices?|readers|everyone|everybody|"
    r"anyone)\s(?!of )(?:(?!to\s)\w+\s){0,3}?"
    r"(?:thinks?|says?|assumes?|guess|believes?|expects?|answers?|picks?|chooses?|confuses?|calls?|reach|"
    r"imagines?|pictures?|associates?|writes?|repl(?:y|ies)|respond|jump|bets?|supposes?|"
    r"go for|opts? for|mistakes?)\b|"
    r"\bi\s(?:\w+\s){0,2}?(?:thought|guessed|assumed|expected|believed|suspected|leaned)\b|\bi was (?:sure|about|"
    r"going|leaning|tempted|"
    r"convinced|thinking|ready)\b|\bi had [^.,;\n]{1,40} in (?:my |the )?(?:head|mind)|\bmy (?:\w+\s)?(?:instinct|"
    r"gut|guess|intuition|"
    r"estimate|impression|hunch|thought|reaction|idea|assumption)\b|\bit(?:['’]s| is| seems| would be) (?:natural|"
    r"tempting|easy|common) to|"
    r"\b(?:if|when) you (?:said|thought|guessed|picked|answered)\b|\bthe (?:intuitive|naive|tempting|obvious|natural|"
    r"usual|expected) (?:\w+ )?(?:answer|guess|reply|response|choice|pick|reading|suspect|candidate|thing|assumption|"
    r"idea|conclusion|thought|mistake|impression|belief|solution)\b|"
    r"\b(?:viele|manche|die meisten|alle|fast jeder|jeder|man)\s(?:\w+\s){0,4}?(?:denk|glaub|meint?|sag|tipp|rät|"
    r"nenn|hält|halten|vermut|"
    r"erwart|antwort|verwechsel)\w*|\bnaheliegend (?:wäre|ist|war)|"
    r"\b(?:beaucoup|certains|la plupart|on|les gens|tout le monde)\s(?:\w+\s){0,2}?(?:pens|croi|dirai|imagin|cite|"
    r"confond|répond|suppos)"
    r"\w*|\bj['’](?:avais|aurais) (?:d['’]abord )?\w+(?:é|dit|mis|cru)|\bavrei \w+|\b(?:habría|hubiera) \w+o\b|"
    r"\bit (?:might|may|could|would|can|does) (?:look|seem|sound|appear|feel)|"
    r"\b(?:muchos|todos|la gente|la mayoría|uno|cualquiera|algunos|todo el mundo)\s(?:\w+\s){0,2}?(?:pens|piens|cree|"
    r"dirí|dice|imagin|"
    r"confund|contest|respond|supon)\w*|\bcasi (?:pongo|digo|escribo|contesto|respondo|elijo)|"
    r"\b(?:molti|tutti|la gente|alcuni|muitos|todos|a gente|as pessoas|alguns)\s(?:\w+\s){0,2}?(?:pens|cred|dic|dir|"
    r"immagin|imagin|"
    r"confond|confund|rispond|respond|ach)\w*|"
    r"(?:многие|все|люди|большинство|некоторые|часто)\s(?:\w+\s){0,3}?(?:дума|счита|говор|полага|отвеча|пута)\w*|"
    r"(?:人们?|大家|学生|初学者)[^，。]{0,6}(?:以为|认为|觉得|想到|猜|会答|会选|会说)",
    re.IGNORECASE,
)
"""A common belief, or an earlier one of the speaker."""
_HISTORICAL: Final = re.compile(
    r"originally|initially|ursprünglich|zunächst|à l['’]origine|originariamente|originalmente",
    re.IGNORECASE,
)
"""First thoughts if somebody has them; otherwise history: "it was originally sung by …"."""
_APPEARS: Final = re.compile(r"(?:it )?appears(?: to (?:be|have))?(?!\w)|it (?:looks like|seems)", re.IGNORECASE)
_SOMEBODY: Final = re.compile(
    r"(?<!\w)(?:i|my|we|people|many|most|one|everyone|you|ich|mein\w?|wir|man|viele|je|j|mon|ma|on|yo|mi|io|mio|eu)"
    r"(?!\w)",
    re.IGNORECASE,
)
_QUOTATION: Final = re.compile(r"“[^”\n]{8,200}”|„[^“”\n]{8,200}[“”]|\"[^\"\n]{8,200}\"|«[^»\n]{8,200}»")
_BELIEF: Final = re.compile(
    r"\b(?:sa(?:y|id|ys)|sound|th(?:ink|ought)|guess|expect|appear|look|seem|tempt|believ|belief|answer|wrong|"
    r"mistake|instinct|"
    r"convinced|wrote|assum|suspect|"
    r"mistook|intuit|(?<!was )(?<!is )(?<!were )(?<!are )(?<!be )used to|had the better|confus|had in mind|idea|"
    r"impression|candidate|glance|started with|"
    r"began with|pick|cho(?:o|ose|sen?)\b|read\b|regard|consider|repl(?:y|ies)|respon|to mind|suggest|recko|put\b|"
    r"intend|"
    r"bauchgefühl|gilt|gelten|verwechsel|schreiben|geschrieben|rat(?:en|e)\b|"
    r"dach|denk|glaub|mein|sag|halt|hielt|tipp|schein|vermut|blick|gedanke|hätt|früher|nenn|wirk|"
    r"pens|croi|croy|cru\b|di[ts]\b|dir(?:ai|ait|ais)\b|sembl|répond|vue|idée|faill|autrefois|hésit|premier abord|"
    r"intuition|cite|not[eé]|"
    r"parec|cre[ey]|cre[ií]a|dic(?:e|en|ho)\b|dir(?:ía|ei|ebbe)|ocurr|pon(?:er|ía)|escrib|intuic|contest|respond|vista|antes|casi|supus|idea|"
    r"cred(?!it)|sembr|primo|dett|ach|diz|diss|lijk|leek|dacht|zeg|gezicht|myśl|wyda|mów|rzut|думал|каз|каж|говор|счита|"
    r"мысл|взгляд|ошиб|подумал|решил|falsch|irrtum|réflex|in mind)|"
    r"以为|觉得|认为|会答|会说|直观|想到|看|猜|选|写|答|想|思|見|생각|보|直觉|反应|误|曾|以前|ظن|وهلة|يعتقد",
    re.IGNORECASE,
)
_BUT: Final = re.compile(
    rf"(?:[,，;；—–]\s?(?:{any_of('but')})[\s,，]?|[;；.。!！,，]\s{{0,4}}(?:{any_of('but')})[\s,，]{{0,2}}|"
    rf"\s(?:{any_of('but')})\s)",
    re.IGNORECASE,
)
_NEXT: Final = re.compile(
    r"[;；。!！]\s{0,4}(?=\S)|\.\s{0,4}(?=[^\s\d])|(?<!\d)\.\s{0,4}(?=\d)|(?<!\d)[,，]\s?(?=\S)|[,，]\s?(?=[^\s\d])"
)
"""A boundary between clauses, but not a decimal point, or the comma in "2,579" and "July 25, 2017"."""
_STOP: Final = re.compile(r"[;.。]\s{0,4}(?=[^\s\d])|[;.。]\s{1,4}(?=\S)")
_HOWEVER: Final = re.compile(
    r"(?P<true>[^\n,，.;]{1,60}),\s(?:however|though|in fact|in truth|actually|jedoch|allerdings|en revanche|en fait|"
    r"cependant|pourtant|"
    r"sin embargo|en cambio|en realidad|invece|però|tuttavia|porém|no entanto|однако),\s",
    re.IGNORECASE,
)
_CONCESSION: Final = re.compile(
    r"(?:although|though|even though|while|despite|obwohl|auch wenn|wenn auch|bien que|même si|aunque|si bien|"
    r"sebbene|anche se|embora|"
    r"хотя|虽然|尽管)(?!\w)",
    re.IGNORECASE,
)
_TRAILING: Final = re.compile(
    rf"[,，]\s?(?:{any_of('but')}|instead|jedoch|allerdings|cependant|pourtant|sin embargo|però|porém)\s?[.!。！]*\s*$",
    re.IGNORECASE,
)
"""A contrast at the end of a sentence: "It is Neptune, however."."""
_ARTICLE: Final = re.compile(r"(?:the|der|die|das|le|la|el|il|o|a)\s|l['’]", re.IGNORECASE)
_BE: Final = re.compile(r"(?:is|are|was|were|ist|sind|war|est|était|es|fue|è|é)\s", re.IGNORECASE)
_AFTER_COMMA: Final = re.compile(r"[,，]\s?(?=\S)")


def first_thought(text: str, left: int) -> Span | None:
    """Return what follows a first thought or a common belief: "At first I thought X, but it is Y"."""
    text = text[:left] + _QUOTATION.sub(lambda quoted: "_" * len(quoted[0]), text[left:])
    supposed = _SUPPOSED.search(text, left)
    thought = supposed or _FIRST.search(text, left)
    if thought is None or text[left : thought.start()].count(".") > 2:
        return None
    if supposed is None and not _is_belief(text, left, thought):
        return None
    turn = _turn(
        text, left, thought.end(), looks=supposed is None and _APPEARS.match(text, thought.start()) is not None
    )
    if turn is None:
        return None
    text = text[: len(text) - len(trailing[0])] if (trailing := _TRAILING.search(text, turn.end())) else text
    sentence = last_match(_FULL_STOP, text, left)
    named = _HOWEVER.match(text, sentence.end() if sentence else left)
    rest = trimmed(text, turn.end(), len(text))
    if named is not None and len(named["true"].split()) <= 5:
        subject = _ARTICLE.match(named["true"]) is None or _BE.match(text, named.end()) is None
        if subject:
            return named.span("true")
        is_ = _BE.match(text, named.end())
        return trimmed(text, is_.end() if is_ else named.end(), len(text))
    return rest if rest[0] < rest[1] else None


def _is_belief(text: str, left: int, thought: re.Match[str]) -> bool:
    """Return True if words such as "at first" or "originally" stand with a belief, not in a piece of history."""
    if re.match(r"\s[$€£]?\d", text[thought.end() : thought.end() + 3]):
        return True  # "Initially 40, then 32"
    if _BELIEF.search(text, left, min(len(text), thought.end() + 160)) is None:
        return False
    if _HISTORICAL.match(thought[0]) is None:
        return True
    begun = last_match(_FULL_STOP, text[: thought.start()], left)
    stop = _FULL_STOP.search(text, thought.end())
    return _SOMEBODY.search(text, begun.end() if begun else left, stop.start() if stop else len(text)) is not None


def _turn(text: str, left: int, thought: int, *, looks: bool) -> re.Match[str] | None:
    """Return the place after which the thought is over; what only looks like something needs a "but"."""
    if (conceded := _conceded(text, left, thought)) is not None:
        return conceded
    if (trailing := _TRAILING.search(text, thought)) is not None:
        text = text[: trailing.start()]
    if (turn := last_match(_BUT, text, thought)) is not None:
        return last_match(_STOP, text, turn.end()) or turn
    if looks and trailing is None:
        return None
    return last_match(_FULL_STOP, text, thought) or last_match(_NEXT, text, thought)


def _conceded(text: str, left: int, thought: int) -> re.Match[str] | None:
    """Return the comma after "although X comes to mind", if the first thought stands in such a clause."""
    begun = last_match(_FULL_STOP, text[:thought], left)
    start = begun.end() if begun else left
    if _CONCESSION.match(text, start) is None:
        return None
    end = _FULL_STOP.search(text, thought)
    return last_match(_AFTER_COMMA, text[: end.start()] if end else text, thought)
