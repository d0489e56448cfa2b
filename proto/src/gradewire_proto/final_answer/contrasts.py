"""Contrasts: "not X but Y", "X, not Y", "don't use X, use Y", "X? No, Y", "X is wrong; Y", and first thoughts.

Only the last 1 600 characters are searched, and each sentence up to 600 characters.
"""

import re
from typing import Final

from gradewire_proto.final_answer.clauses import LONGEST_SENTENCE, sentences, trimmed
from gradewire_proto.final_answer.corrections import explains_rejected
from gradewire_proto.final_answer.types import Span
from gradewire_proto.final_answer.words import any_of, expression, pairs

_LONGEST_CONTRAST: Final = 1_600

_NO: Final = re.compile(
    rf"[?？]\s{{0,4}}(?:(?:{any_of('no')})\s?[,.:;!—–，。：、！]\s{{0,4}}|(?:that|it|this|he|she) (?:isn['’]t|is not|wasn['’]t|was not|"
    r"can['’]t be|cannot be)\s[^.!?\n]{0,60}[.!]\s{1,4})",
    re.IGNORECASE,
)
_WRONG: Final = re.compile(
    rf"(?:\b(?:is|are|was|ist|sind|war|est|es|è|é|to)\s|是|に|は)?(?:{any_of('wrong')})(?:\s(?:here|hier|ici|aquí|"
    rf"though))?\s?[,;.:—–，；。]\s{{0,4}}",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(r"false\s?,", re.IGNORECASE)
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
    r"mistook|intuit|(?<!was )(?<!is )(?<!were )(?<!are )(?<!be )used to|had the better|confus|had in mind|idea|impression|candidate|glance|started with|"
    r"began with|pick|cho(?:o|ose|sen?)\b|read\b|regard|consider|repl(?:y|ies)|respon|to mind|suggest|recko|put\b|"
    r"intend|"
    r"bauchgefühl|gilt|gelten|verwechsel|schreiben|geschrieben|rat(?:en|e)\b|"
    r"dach|denk|glaub|mein|sag|halt|hielt|tipp|schein|vermut|blick|gedanke|hätt|früher|nenn|wirk|"
    r"pens|croi|croy|cru\b|di[ts]\b|dir(?:ai|ait|ais)\b|sembl|répond|vue|idée|faill|autrefois|hésit|premier abord|intuition|cite|not[eé]|"
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
_NEXT: Final = re.compile(r"[;；.。!！]\s{0,4}(?=\S)|[,，]\s?(?=\S)")
_FULL_STOP: Final = re.compile(r"[;；.。!！]\s{0,4}(?=[^\s\d])|[;；.。!！]\s{1,4}(?=\S)")
_STOP: Final = re.compile(r"[;.。]\s{0,4}(?=[^\s\d])|[;.。]\s{1,4}(?=\S)")
_INSTEAD: Final = re.compile(
    rf"(?:^|[.!?;:,\n][\s“\"]{{1,4}}|[。，；\n])(?:(?:so|and|but|then|also|und|et|y)\s)?"
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
    r"(?:it|he|she|they) (?:is|was|are|were) (?:\w+ly\s)?(originally|initially|later|\w+ed|made|held|shown|known|seen|written|sung)\s(?:in|on|at|as|by|"
    r"to|for|from|with|a|the)\s",
    re.IGNORECASE,
)
_HAS: Final = re.compile(
    r"(?:it|he|she|they) (?:has|have|contains?|takes?)(?!\w)",
    re.IGNORECASE,
)
_DO_NOT: Final = re.compile(r"(?:do|does|did)(?!\w)", re.IGNORECASE)
_THEY: Final = re.compile(r"they(?:['’]re| are| were)(?!\w)", re.IGNORECASE)
_ALONE: Final = re.compile(r"^(?:it|he|she) (?:is|was) (?:\w+ed|\w+en)\s?[.!]?$", re.IGNORECASE)
_THERE: Final = re.compile(r"(?<!\w)there(?!\w)", re.IGNORECASE)
_ALSO: Final = re.compile(
    r"(?:it|he|she|they) (?:is|was|are|were) (?:also|still)(?!\w)|[^.;\n]{0,60}(?<!\w)(?:it|he|she|they) (?:is|was|does|did)\s?[.!]?$",
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
        r"^\s*(?:no[,.!:]?\s)?(?:it|that|this|he|she)\s(?:is|was)(?:n['’]t|\snot)\s(?-i:[A-ZÀ-Þ\d]|an?\s|the\s)[^\s.;!?\n]+(?:\s[^\s.;!?\n]+){0,3}[.;!]\s"
        r"(?P<true>(?!(?:it|that|this|he|she|they|there|in|we|you|i|however|but|while|although)\W)[^\n.!?;]{1,80}[.]?)\s*$",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bit(?:\sis|['’]s)\s(?:false|wrong|untrue|not true|incorrect)\s(?:that|to say)\s[^.;,\n]{1,100}[.;,]\s(?P<true>\S[^\n]{0,100})$",
        re.IGNORECASE,
    ),
    re.compile(
        r"\sit\s(?:isn['’]t|is not|wasn['’]t|was not)[,;.]\s(?:so\s|but\s)?(?P<true>(?!(?:though|however|either)\W)\S[^\n]{0,80})$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^\s*(?:not|nicht|pas|no|non)\s(?:an?|the|eine?|der|die|das|une?|le|la|el|una|uno|il)\s[^,.;\n]{1,30},\s"
        r"(?P<true>(?:an?|the|eine?|der|die|das|une?|le|la|el|una|uno|il)\s[^,;\n]{1,40})$",
        re.IGNORECASE,
    ),
)
"""What is true after a denial in its own clause: "It wasn't X. Y did it.", "X it isn't, so Y"."""
_ISNT: Final = re.compile(
    r"[;,]\s(?:but\s|and\s)?(?!(?:it|he|she|they|that|this|there|i|you|we)\s)[^;.,\n]{2,50}\s(?:(?:is|are|was|were|does|did|do)(?:n['’]t|\snot))\s?[.!]?$",
    re.IGNORECASE,
)
_WRONG_ASIDE: Final = re.compile(
    rf"\s[(（](?=[^()（）]{{0,80}}(?:\bdistractor\b|{any_of('wrong')}))[^()（）]{{1,120}}[)）]\s?[.]?$", re.IGNORECASE
)
_CONCEDED: Final = re.compile(
    r"(?:although|though|even though|while|whereas|despite|obwohl|auch wenn|bien que|même si|aunque|in contrast (?:to|with))\s"
    r"[^,.;\n]{3,80},\s(?P<true>(?:it|he|she|they)\s(?:is|was|were|are)\s[^\n]{1,100})$",
    re.IGNORECASE,
)
_LONGEST_FRAGMENT: Final = 4
_REJECTED: Final = re.compile(
    r"(?:(?:[,，;；—–]\s?(?:(?:and|und|et|y|e)\s)?|\s(?:and|und|et|y|e)\s)"
    r"(?:(?:not|never|nicht|pas|non|no|não|niet|nie|не|kein\w{0,2})\s|(?:而|并)?不是)|"
    r"[,，]?\s(?:unlike|in contrast (?:to|with)|anders als|im gegensatz zu|contrairement à|a diferencia de|rather than|instead of|as opposed to|statt|anstatt|plutôt que|au lieu d[eu']|en vez de|en lugar de|"
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
_YES: Final = re.compile(
    r"(?:yes|no|ja|nein|oui|non|sí|no|sì|да|нет|perhaps|maybe|probably|usually|certainly|why|of course)(?!\w)",
    re.IGNORECASE,
)
_ARTICLE: Final = re.compile(r"(?:the|der|die|das|le|la|el|il|o|a)\s|l['’]", re.IGNORECASE)
_BE: Final = re.compile(r"(?:is|are|was|were|ist|sind|war|est|était|es|fue|è|é)\s", re.IGNORECASE)
_AFTER_COMMA: Final = re.compile(r"[,，]\s?(?=\S)")


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


def _last(pattern: re.Pattern[str], text: str, left: int) -> re.Match[str] | None:
    last = None
    for match in pattern.finditer(text, left):
        last = match
    return last


def _replied(text: str, left: int) -> Span | None:
    found = _last(_NO, text, left)
    if found is None or not text[found.end() :].strip() or not text[left : found.start()].strip():
        return None
    listed = sentences(text, found.end(), len(text))
    while len(listed) > 1 and explains_rejected(text, *listed[:2]):
        listed = listed[1:]
    return listed[0][0], len(text.rstrip())


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
            negated = text[left : found.end()].rstrip()
            # "Not X but Y did it": the sentence goes on after Y.
            if _BEGUN_NOT.search(negated) and (verb := _PREDICATE.search(text, *best)) is not None:
                best = best[0], verb.start()
    return best


def _not_then(text: str, left: int) -> Span | None:
    found = _last(_NOT_THEN, text, left)
    if found is None:
        return None
    span = trimmed(text, *found.span("next"))
    negated = text[found.start() : found.start("next")]
    participle = _PARTICIPLE.match(text, *span)
    other_verb = participle is not None and re.search(rf"\s{participle[1]}(?!\w)", negated) is None
    has = _HAS.match(text, *span) is not None and re.match(r"(?:is|are|was|were)(?!\w)", negated, re.IGNORECASE)
    verbal = _DO_NOT.match(negated) is not None and (
        _THEY.match(text, *span) is not None or participle is not None or _ALONE.search(text, *span) is not None
    )
    there = _THERE.match(text, *span) is not None and _THERE.search(negated) is None
    if verbal or there or _ALSO.match(text, *span) or _IF.search(text, max(left, found.start() - 60), found.start()):
        return None
    owned = _OWNED.match(text, *span) is not None and re.match(r"(?:do|does|did)(?!\w)", negated, re.IGNORECASE)
    return None if other_verb or has or owned else span


def _is_wrong(text: str, left: int) -> Span | None:
    found = _last(_WRONG, text, left)
    if found is None or len(text) - found.end() > 200 or not text[found.end() :].strip():
        return None
    before = text[left : found.start()].strip()
    if not before or (before[-1] in ",，" and _LISTED.match(found[0]) is not None):
        return None  # "True, False, 0" is a list
    rest = sentences(text, found.end(), len(text))
    return rest[-1] if rest else None


def _neither(text: str, left: int) -> Span | None:
    found = _last(_NEITHER, text, left)
    return None if found is None else trimmed(text, found.end(), len(text))


def _first_thought(text: str, left: int) -> Span | None:
    text = _QUOTATION.sub(lambda quoted: "_" * len(quoted[0]), text)
    supposed = _SUPPOSED.search(text, left)
    thought = supposed or _FIRST.search(text, left)
    if thought is None or text[left : thought.start()].count(".") > 2:
        return None
    if supposed is None and _BELIEF.search(text, left, min(len(text), thought.end() + 160)) is None:
        return None
    if supposed is None and _HISTORICAL.match(thought[0]) is not None:
        stop = _FULL_STOP.search(text, thought.end())
        begun = _last(_FULL_STOP, text[: thought.start()], left)
        counted = re.match(r"\s[$€£]?\d", text[thought.end() : thought.end() + 3]) is not None
        if (
            not counted
            and _SOMEBODY.search(text, begun.end() if begun else left, stop.start() if stop else len(text)) is None
        ):
            return None
    conceded = _conceded(text, left, thought.end())
    turn = conceded or _last(_BUT, text, thought.end())
    if supposed is None and _APPEARS.match(text, thought.start()) is not None and turn is None:
        return None
    if turn is None:
        turn = _last(_FULL_STOP, text, thought.end()) or _last(_NEXT, text, thought.end())
        if turn is None:
            return None
    elif conceded is None:
        turn = _last(_STOP, text, turn.end()) or turn
    sentence = _last(_FULL_STOP, text, left)
    named = _HOWEVER.match(text, sentence.end() if sentence else left)
    rest = trimmed(text, turn.end(), len(text))
    if named is not None and len(named["true"].split()) <= 5:
        subject = _ARTICLE.match(named["true"]) is None or _BE.match(text, named.end()) is None
        if subject:
            return named.span("true")
        is_ = _BE.match(text, named.end())
        return trimmed(text, is_.end() if is_ else named.end(), len(text))
    return rest if rest[0] < rest[1] else None


def _conceded(text: str, left: int, thought: int) -> re.Match[str] | None:
    """Return the comma after "although X comes to mind", if the first thought stands in such a clause."""
    begun = _last(_FULL_STOP, text[:thought], left)
    start = begun.end() if begun else left
    if _CONCESSION.match(text, start) is None:
        return None
    end = _FULL_STOP.search(text, thought)
    return _last(_AFTER_COMMA, text[: end.start()] if end else text, thought)


def _same_verb(text: str, left: int) -> Span | None:
    """Return what follows the verb that a negated sentence repeats: "don't use X, use Y"."""
    best: Span | None = None
    for pattern in (*_SAME_VERB, _SAME_SUBJECT):
        found = _last(pattern, text, left)
        if found is not None and (best is None or found.start("true") > best[0]):
            best = sentences(text, *found.span("true"))[0]
    return best


def _dismissed(text: str, left: int) -> Span | None:
    found = _last(_DISMISSED, text, left)
    return None if found is None else trimmed(text, *found.span("true"))


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
    best: Span | None = None
    for pattern in _DENIED:
        found = pattern.search(text, left)
        if found is not None and (best is None or found.start("true") > best[0]):
            best = trimmed(text, *found.span("true"))
    if (
        best is None
        and (conceded := _CONCEDED.match(text, left)) is not None
        and len(sentences(text, left, len(text))) == 1
    ):
        best = trimmed(text, *conceded.span("true"))
    return best


def _instead(text: str, left: int) -> Span | None:
    if (linked := _last(_INSTEAD_IS, text, left)) is not None and len(text) - linked.end() <= 100:
        return trimmed(text, linked.end(), len(text))
    found = _last(_INSTEAD, text, left)
    if found is None or len(text) - found.end() > 200:
        return None
    span = trimmed(text, found.end(), len(text))
    if span[0] >= span[1]:
        return None
    if _PRO_VERB.search(text, *span) is not None:
        return span
    if (linked := _LINKED.search(text, *span)) is not None and _UNLIKE.match(found[0].strip(' .!?;:,\n“"')) is not None:
        subject = trimmed(text, span[0], linked.start())
        predicate = text[linked.end() : span[1]]
        if predicate == predicate.lower() and not re.search(r"\d", predicate) and len(predicate.split()) <= 3:
            return span if _BY_NAME.match(text, *subject) is not None else subject
    if linked is None:
        # Without a verb to divide at, the true part has as many words as the one that it replaces.
        count = len(found[1].split())
        tail = re.search(rf"(?:\S+\s+){{{count - 1}}}\S+$", text[span[0] : span[1]]) if count <= 4 else None
        if tail is not None:
            return span[0] + tail.start(), span[1]
    return span


def _parallel(text: str, begin: int, tail: re.Match[str]) -> int | None:
    """Return the last place of the preposition with which the rejected part begins: "in Rome and not in Pisa"."""
    words = _PREPOSITION.search(tail[0])
    place = text.rfind(f" {words[1]} ", begin, tail.start()) if words is not None else -1
    return None if place < 0 else place + 1


_FINDERS: Final = (
    *(
        _replied,
        _not_but,
        _not_then,
        _same_verb,
        _dismissed,
        _denied,
        _is_wrong,
        _neither,
        _first_thought,
        _instead,
        _rejected,
    ),
)
