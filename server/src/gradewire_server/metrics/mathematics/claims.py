"""Find the claims in an answer that may be its final one, and read them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from gradewire_server.metrics.mathematics.expressions import Expression
from gradewire_server.metrics.mathematics.notation import notation
from gradewire_server.metrics.mathematics.objects import Assignment, Collection, MathObject
from gradewire_server.metrics.mathematics.reading import read_object
from gradewire_server.metrics.values.reading import DENIES
from gradewire_server.metrics.values.tokens import VOCABULARY

_WORDS: Final = VOCABULARY["mathematics"]["questions"]
MAX_CLAIM: Final = 600
"""Maximum number of characters in a reference or a claim."""
MAX_ANSWER: Final = 1_500
"""Maximum number of characters, at the end of an answer, in which to look for its final claim."""
UNITS: Final = frozenset(_WORDS["units"].split())
_MAX_TAILS: Final = 12
_MAX_BOXES: Final = 16
LEAD: Final = re.compile(_WORDS["lead"], re.IGNORECASE)
_CONNECTOR: Final = re.compile(_WORDS["connector"], re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+(?=[^\W\d_$\\])|\n+|[。！？]")
_SPAN: Final = re.compile(
    r"\$\$?([^$]{1,600})\$\$?|\\\(([^\n]{1,600}?)\\\)|\\\[(.{1,600}?)\\\]|`([^`\n]{1,600})`", re.DOTALL
)
BOX: Final = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{")
_DERIVED: Final = re.compile(
    r"⇒|⟹|⇔|⟺|<?=>|\\implies|\\iff|\\(?:Long)?(?:[Ll]eft)?[Rr]ightarrow(?![a-z])|\\therefore|∴|->|→"
)
_UNIT_BEHIND: Final = re.compile(
    r"(?<=[\d)}π]) ?(?:%|°|[^\W\d_]{1,12}(?:\^\(?-?\d\)?)?(?:[/*][^\W\d_]{1,6}(?:\^\(?-?\d\)?)?)?)\Z"
)
_SPANISH: Final = re.compile(
    r"[¿ñ]|\b(?:solucion(?:es)?|soluciones|resuelve|halla|encuentra|calcula|los|las|soluzioni|risolvi)\b", re.IGNORECASE
)
_ONE_LETTER: Final = re.compile(r"(?<=[\w)}$]) ([yeou]) (?=[-−+($\\\d]|[a-z](?:_?\d)? ?=)")
_FOREIGN: Final = re.compile(_WORDS["foreign"], re.IGNORECASE)
_DECIMAL_COMMA: Final = re.compile(
    r"([\[\](){}][^\[\](){};]*[\[\](){}])|(?<=\d),(?!\d{3}(?![\d…]|\.\.))(?=\d|\\overline|\(\d+\))"
)
_TRAILING: Final = re.compile(
    r"(?<=[\w)}\]$])(?: (?!(?:hundred|thousand|million|billion|trillion|percent|dozen|or|and|but|not|nor|more"
    r"|less|fewer|if|for|when|unless|except|mod|minus|plus|times|to|than|solutions?"
    r"|oder|und|ou|et|is|are)\b)[^\W\d_]{2,16}){1,5}[.!]?\Z"
)
_CONCLUDES: Final = re.compile(_WORDS["concludes"], re.IGNORECASE)
_REASON: Final = re.compile(
    r",? \b(?:since|because|as [a-z]{2,}|weil|da |car|puisque|porque|ya que|because of)\b", re.IGNORECASE
)
_REMARK: Final = re.compile(
    r"[,;]? \(?(?:which|where|with|i\.e\.|(?:or,? )?equivalently|about|approximately|or about|≈|or approximately)\b"
    r"|[,;:] (?=\d+ [^\W\d_]{3}|[^\W\d_]{4})"
    r"|,? \(?(?:for|if|provided|für|pour|para|si) \$?[a-z] ?(?:≠|!=|\\neq?(?![a-z]))",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"([^\W\d_]{1,24}(?:[ -][^\W\d_]{2,24}){0,2}) ?(?:=|:| ) ?(.{1,80})")
_LIST: Final = re.compile(r"[,;] ?(?:and |und |et |y )?(?=[$^\W\d_]*[^\W\d_])| (?:and|und|et|y|e) ")
_BETWEEN: Final = re.compile(_WORDS["between"], re.IGNORECASE)
_CLAUSE: Final = re.compile(r"[,;.] (?=[^\W\d_])|; ?| (?:and|und|et|y|or|oder|ou)(?= |\Z)|\Z")
_COUNTED: Final = re.compile(r" (?:years?(?: old)?|old|jahren?(?: alt)?|alt|ans|años)\Z", re.IGNORECASE)
_ASIDE: Final = re.compile(r" ?\([^()=]{0,40}[^\W\d_]{3}[^()=]{0,40}\)")
_EITHER: Final = re.compile(r"\b(?:either|both|entweder|sowohl|soit) ", re.IGNORECASE)
_CASE: Final = re.compile(
    r"[;.] (?=[^\W\d_])|, (?:and )?(?=[^\W\d_]{2,})| (?:or|oder|ou) | (?:and|und|et|y) (?=[^\W\d_]{3})"
)
_ORDERED: Final = re.compile(r"[<>≤≥]|\\[lg]eq?(?![a-z])")
_MAX_LABELS: Final = 6
_CLAIMS: Final = re.compile(r"[=≈<>∈]|\b(?:is|are|get|gives)\b")
_NOT: Final = re.compile(r"\s*(?:not|nicht)\s+", re.IGNORECASE)
_OTHERWISE: Final = re.compile(r"\b(?:otherwise|else|sonst|sinon)\b", re.IGNORECASE)


@lru_cache(maxsize=64)
def _is_spanish(text: str) -> bool:
    return _SPANISH.search(text) is not None


def with_and(question: str, answer: str) -> str:
    """Return an answer with "and" and "or" in place of the one-letter words of Spanish and Italian."""
    if not _is_spanish(question) and not _is_spanish(answer[:MAX_CLAIM]):
        return answer
    return _ONE_LETTER.sub(lambda found: " or " if found[1] in "ou" else " and ", answer)


def localized(question: str, text: str) -> str:
    """Return a text with decimal points in place of decimal commas, if the question is not in English."""
    if "," not in text or not _FOREIGN.search(question[:2_048]):
        return text
    return _DECIMAL_COMMA.sub(lambda found: found[1] or ".", text)


def read(text: str) -> MathObject | None:
    """Return the object that a text is, perhaps with a unit behind it; or None."""
    written = notation(text)
    if written is None:
        return None
    if "±" in written and (unit := unit_of(written)):
        return read_object(written[: -len(unit)].replace(f"{unit} ±", " ±"))
    found = read_object(written)
    if found is None and (unit := unit_of(written)):
        return read_object(written[: -len(unit)])
    return found


def unit_of(written: str) -> str:
    """Return the unit at the end of a text in plain notation, or ""."""
    found = _UNIT_BEHIND.search(written)
    return found[0] if found and re.split(r"[\^/*]", found[0].strip())[0] in UNITS else ""


def said_in(claim: str) -> MathObject | None:
    """Return the object in a claim, perhaps without the clause or the words behind it."""
    if (found := read(claim)) is not None:
        return found
    remark = _REMARK.search(claim)
    ends = remark is not None and ("equivalently" in remark[0] or _CLAIMS.search(claim, remark.end()) is None)
    if remark is not None and remark.start() and ends:
        found = read(claim[: remark.start()])
        if found is not None:
            return found
    bare = _TRAILING.sub("", claim)
    return read(bare) if bare != claim else None


def labelled(reference: str) -> dict[str, Expression] | None:
    """Return the values that a reference gives to names: "a = 3, b = 4", "mean 5, median 3"; None for other texts."""
    parts = _LIST.split(reference)
    if not 1 < len(parts) <= _MAX_LABELS:
        return None
    pieces = [_LABEL.fullmatch(piece.strip(" .$")) for piece in parts]
    values: dict[str, Expression] = {}
    for piece in pieces:
        found = None if piece is None else read(piece[2].strip("$ "))
        if piece is None or not isinstance(found, Expression) or found.names or found.infinite:
            return None
        if len(piece[1]) < 3 and not re.match(r"\S+ ?[=:]", piece[0]):
            return None
        values[piece[1].casefold()] = found
    return values if len(values) == len(pieces) else None


def concludes(question: str, claim: str) -> bool:
    """Return True if a claim has work before a word such as "hence"; "also" is such a word only in German."""
    words = [found[0].lower() for found in _CONCLUDES.finditer(claim)]
    return any(word.strip(" :,") != "also" for word in words) or (bool(words) and _FOREIGN.search(question) is not None)


def labels_in(answer: str, names: Iterable[str]) -> dict[str, MathObject]:
    """Return the last values that an answer gives to names, such as 3 for "the median is 3"."""
    places = [
        (found.start(), found.end(), name)
        for name in names
        for found in re.finditer(
            rf"(?<![\w\\])(?<![-+*/^])(?<![-+*/^] ){re.escape(name)}"
            + (r"(?= ?[=:]| (?:ist?|est?|vaut|vale) )" if len(name) < 3 else r"(?!\w)"),
            answer,
            re.IGNORECASE,
        )
    ]
    places.sort()
    values: dict[str, MathObject] = {}
    for at, (_, begin, name) in enumerate(places):
        end = places[at + 1][0] if at + 1 < len(places) else len(answer)
        if (value := _value_behind(answer[begin:end])) is not None:
            values[name] = value
    return values


def _value_behind(text: str) -> MathObject | None:
    """Return the value behind a name, up to the end of the clause."""
    clause = _CLAUSE.split(text, maxsplit=1)[0].strip(" .,;$")
    begin = _BETWEEN.match(clause)
    if begin is None:
        return None
    value = _COUNTED.sub("", clause[begin.end() :].rpartition("=")[2].strip(" $"))
    found = read(value)
    return found if isinstance(found, Expression) and not found.names else None


def cases_in(answer: str) -> Collection | None:
    """Return the values that the clauses of an answer's end claim, one each, as a list; None for fewer than two."""
    if DENIES.search(answer) is not None:
        return None
    text = _EITHER.sub("", _ASIDE.sub("", answer[-MAX_CLAIM:].strip(" .")))
    values = []
    for clause in _CASE.split(text)[:_MAX_TAILS]:
        claims = (read(tail) for tail in _tails(clause))
        found = next((each for each in claims if each is not None), None)
        if isinstance(found, Assignment) and "(" not in found.left:
            found = found.value
        if isinstance(found, Expression) and not found.names:
            values.append(found)
    return Collection(",", tuple(values)) if len(values) > 1 else None


def claims_of(answer: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts that may be the final claim, the likeliest first, and True if the answer denies them."""
    tail = answer[-MAX_ANSWER:].strip()
    boxes = _boxes(answer)
    if boxes:
        yield from ((text, False) for text in dict.fromkeys((", ".join(boxes), boxes[-1])))
        return
    if len(tail) <= MAX_CLAIM:
        yield LEAD.sub("", tail), False
    sentences = [each for each in _SENTENCE.split(tail) if each and re.search(r"\w|[∅∞ℝ]", each)]
    last = sentences[-1] if sentences else tail
    if _OTHERWISE.search(last):
        return
    denies = DENIES.search(last)
    conclusions = [found.end() for found in _CONCLUDES.finditer(last)]
    if conclusions:
        yield LEAD.sub("", last[conclusions[-1] :].strip()), False
    for text in _tails(last):
        if (negation := _NOT.match(text)) is not None:
            yield text[negation.end() :], True
        yield text, denies is not None and denies.start() < last.find(text[:20])
    spans = _formulas(last)
    if _ORDERED.search(pieces := last.rpartition(" and ")[2]) is not None:
        yield pieces, denies is not None
    if len(spans) > 1:
        yield ", ".join(spans), denies is not None
    for span in spans[-1:] or _formulas(tail)[-1:]:
        yield span, denies is not None and bool(spans)


def _formulas(text: str) -> list[str]:
    return [next(group for group in found.groups() if group) for found in _SPAN.finditer(text)]


def _tails(sentence: str) -> Iterator[str]:
    """Yield the ends of a sentence behind words such as "is" or "at", the longest first."""
    sentence = sentence.strip()
    sentence = sentence if sentence.endswith(("...", "!")) else sentence.rstrip(" .")
    pieces = _DERIVED.split(sentence)
    if len(pieces) > 1:
        yield pieces[-1]
        sentence = pieces[-1]
    if (reason := _REASON.search(sentence)) is not None and reason.start() > 0:
        sentence = sentence[: reason.start()]
    yield LEAD.sub("", sentence)
    ends = [found.end() for found in _CONNECTOR.finditer(sentence)]
    for end in ends[-_MAX_TAILS:]:
        yield sentence[end:]


def _boxes(answer: str) -> Sequence[str]:
    r"""Return the contents of "\boxed{…}" in the last line that has any."""
    found: list[str] = []
    begin = last = max(0, len(answer) - 2 * MAX_ANSWER)
    for box in list(BOX.finditer(answer, begin))[-_MAX_BOXES:]:
        end = _closing(answer, box.end())
        if end < 0:
            continue
        if found and not re.fullmatch(
            r"[\s$]*(?:,|and|or|\\text\{ ?(?:and|or) ?\}|und|oder|et|ou|\$)+[\s$]*", answer[last : box.start()]
        ):
            found.clear()
        found.append(answer[box.end() : end])
        last = end + 1
    return found


def _closing(text: str, start: int) -> int:
    """Return the position of the brace that closes a group, within MAX_ANSWER characters; otherwise -1."""
    depth = 1
    for at in range(start, min(len(text), start + MAX_ANSWER)):
        if text[at] == "{" and text[at - 1] != "\\":
            depth += 1
        elif text[at] == "}" and text[at - 1] != "\\":
            depth -= 1
            if not depth:
                return at
    return -1
