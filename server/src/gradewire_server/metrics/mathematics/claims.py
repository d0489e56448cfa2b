"""Find the claims in an answer that may be its final one, and read them."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from gradewire_server.metrics.mathematics.notation import notation
from gradewire_server.metrics.mathematics.objects import MathObject
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
    r"⇒|⟹|⇔|⟺|<?=>|\\implies|\\iff|\\(?:Long)?(?:Left)?[Rr]ightarrow(?![a-z])|\\therefore|∴|->|→"
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
    r"|[,;:] (?=\d+ [^\W\d_]{3}|[^\W\d_]{4})",
    re.IGNORECASE,
)
_CLAIMS: Final = re.compile(r"[=≈<>∈]|\b(?:is|are|get|gives)\b")
_NOT: Final = re.compile(r"\s*(?:not|nicht)\s+", re.IGNORECASE)
_OTHERWISE: Final = re.compile(r"\b(?:otherwise|else|sonst|sinon)\b", re.IGNORECASE)


def with_and(question: str, answer: str) -> str:
    """Return an answer with "and" and "or" in place of the one-letter words of Spanish and Italian."""
    if not _SPANISH.search(question) and not _SPANISH.search(answer[:MAX_CLAIM]):
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
