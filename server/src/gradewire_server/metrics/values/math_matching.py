"""Compare the mathematical object in an answer with a reference that is one: a set, an interval, a matrix, a formula."""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Final

from gradewire_server.metrics.values.math_equality import forbidden_form, same
from gradewire_server.metrics.values.math_expressions import Expression
from gradewire_server.metrics.values.math_notation import notation
from gradewire_server.metrics.values.math_objects import (
    Assignment,
    Based,
    Collection,
    Family,
    MathObject,
    Matrix,
    RealSet,
    Relation,
    Style,
)
from gradewire_server.metrics.values.math_parsing import expression
from gradewire_server.metrics.values.math_reading import read_object
from gradewire_server.metrics.values.reading import DENIES, Kind, Outcome
from gradewire_server.metrics.values.tokens import VOCABULARY
from gradewire_server.metrics.values.units import SYMBOLS

_WORDS: Final = VOCABULARY["mathematics"]["questions"]
_MAX_REFERENCE: Final = 600
_MAX_ANSWER: Final = 1_500
_MAX_HEDGE: Final = 200
_MAX_TAILS: Final = 12
_MAX_BOXES: Final = 16
_MAX_CLAIMS: Final = 20

_INTERVAL: Final = re.compile(_WORDS["interval"], re.IGNORECASE)
_POINT: Final = re.compile(_WORDS["point"], re.IGNORECASE)
_ORDER: Final = re.compile(_WORDS["order"], re.IGNORECASE)
_EXACT: Final = re.compile(r"\bexact(?:ly)?\b", re.IGNORECASE)
_DIRECTION: Final = re.compile(r"\bdirection|\bparallel to|\bnormal vector|\beigenvector", re.IGNORECASE)
_BASE: Final = re.compile(
    r"\b(?:base|basis|Basis)[ -](\d{1,2}|two|eight|ten|sixteen)\b|\b(binary|octal|hex(?:adecimal)?)\b"
)
_BASES: Final = {"two": 2, "eight": 8, "ten": 10, "sixteen": 16, "binary": 2, "octal": 8, "hex": 16, "hexadecimal": 16}
_FORMULA_ASKED: Final = re.compile(_WORDS["formula"], re.IGNORECASE)
_PLACE: Final = re.compile(r"\b(?:latitude|longitude|GPS|Breitengrad|score|odds|date)\b", re.IGNORECASE)
_MONEY: Final = re.compile(
    r"[$€£]|\b(?:income|loss|profit|statement|cash|revenue|expense|balance|account)", re.IGNORECASE
)
_VARIABLE: Final = re.compile(r"(?<![^\W\d_])[a-zA-Zα-ω](?![^\W\d_])")

_LEAD: Final = re.compile(_WORDS["lead"], re.IGNORECASE)
_CONNECTOR: Final = re.compile(_WORDS["connector"], re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+(?=[^\W\d_$\\])|\n+|[。！？]")
_SPAN: Final = re.compile(
    r"\$\$?([^$]{1,600})\$\$?|\\\(([^\n]{1,600}?)\\\)|\\\[(.{1,600}?)\\\]|`([^`\n]{1,600})`", re.DOTALL
)
_BOX: Final = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{")
_DERIVED: Final = re.compile(r"⇒|⟹|=>|\\implies|\\Rightarrow|\\therefore|∴|->|→")
_GROUPED: Final = re.compile(r"\(\d{1,3}(?:,\d{3})+(?:\.\d+)?\)")
_SCIENTIFIC: Final = re.compile(
    r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+| ?[*x] ?10)(?:\^\(?[-+]?\d+\)?)?|[-+]?10\^\(?[-+]?\d+\)?"
)
_PLAIN: Final = re.compile(r"[-+]?\(?\(?\d[\d.,]*\)?(?:(?: ?/ ?|-)\(?\d[\d.]*\)?\)?){0,3}|mix\(\d+,\d+,\d+\)")
_LATEX: Final = re.compile(
    r"\\(?:[dtc]?frac|sqrt|[dt]?binom|overline|(?:arc)?(?:sin|cos|tan)h?|sec|csc|cot|ln|log|exp|pi)\b"
)
_MATHEMATICAL: Final = re.compile(
    r"\^|sqrt|root\(|binom|mix\(|overline|[!*+π]|(?<![a-z])(?:a?(?:rc)?(?:sin|cos|tan)h?|sec|csc|cot|ln|log|exp)(?![a-z])"
)
_ONLY_NAMES: Final = re.compile(r"[^\W\d_]{1,4}(?:[-/][^\W\d_]{1,4})*\+?")
_UNIT_BEHIND: Final = re.compile(
    r"(?<=[\d)}π]) ?(?:%|°|[^\W\d_]{1,12}(?:\^\(?-?\d\)?)?(?:[/*][^\W\d_]{1,6}(?:\^\(?-?\d\)?)?)?)\Z"
)
_ABOUT: Final = re.compile(r"\s*(?:about|approximately|roughly|around|≈|~|\\approx)", re.IGNORECASE)
_SPANISH: Final = re.compile(
    r"[¿ñ]|\b(?:solucion(?:es)?|soluciones|resuelve|halla|encuentra|calcula|los|las|soluzioni|risolvi)\b", re.IGNORECASE
)
_ONE_LETTER: Final = re.compile(r"(?<=[\w)}$]) ([yeou]) (?=[-−+($\\\d]|[a-z](?:_?\d)? ?=)")
_SCORES: Final = re.compile(r"\d+[-–:]\d+(?:, ?\d+[-–:]\d+)*")
_COMPASS: Final = re.compile(r"\d ?[°′″'\"].{0,16}[NSEWO]\b")
_FOREIGN: Final = re.compile(_WORDS["foreign"], re.IGNORECASE)
_DECIMAL_COMMA: Final = re.compile(r"([\[\](){}][^\[\](){};]*[\[\](){}])|(?<=\d),(?!\d{3}(?!\d))(?=\d)")
_BOUND: Final = re.compile(
    r"(?:at (?:least|most)|not|more|less|fewer|greater|larger|smaller|below|above|under|over) |[<>≤≥]|\\[lg]e(?:q[a-z]*)?(?![a-z])(?:q[a-z]*)?(?![a-z])"
)
_AMBIGUOUS: Final = frozenset({"none", "infinite", "all numbers", "any number", "empty"})
_UNITS: Final = frozenset(_WORDS["units"].split())
_HEDGE: Final = re.compile(
    r"(?<![\w.=/*+^-])(-?\d+(?:\.\d+)?) (?:or|oder|ou) (-?\d+(?:\.\d+)?)(?![\w*/^=+]|\.\d| ?[-+*/^=]| more| less| fewer)"
)
_TRAILING: Final = re.compile(
    r"(?<=[\w)}\]$])(?: (?!(?:hundred|thousand|million|billion|trillion|percent|dozen|or|and|but|not|nor|more|less|fewer|if|for|when|unless|except|mod|minus|plus|times|to|than|solutions?"
    r"|oder|und|ou|et|is|are)\b)[^\W\d_]{2,16}){1,5}[.!]?\Z"
)
_CONCISE: Final = re.compile(r"(?<![\w.])(\d+)\.(\d+) ?\((\d{1,2})\)")
_CONCLUDES: Final = re.compile(_WORDS["concludes"], re.IGNORECASE)
_REASON: Final = re.compile(
    r",? \b(?:since|because|as [a-z]{2,}|weil|da |car|puisque|porque|ya que|because of)\b", re.IGNORECASE
)
_REMARK: Final = re.compile(
    r"[,;]? \(?(?:which|where|with|i\.e\.|(?:or,? )?equivalently|about|approximately|or about|≈|or approximately)\b|[,;:] (?=\d+ [^\W\d_]{3}|[^\W\d_]{4})",
    re.IGNORECASE,
)
_CLAIMS: Final = re.compile(r"[=≈<>∈]|\b(?:is|are|get|gives)\b")
_IDENTITY: Final = re.compile(
    r"(?:[A-Z] ?= ?)?(-?\d{0,4}) ?(?:I(?:_\(?[\dn]\)?)?|(?:the |an? )?(?:\d ?[*x] ?\d |\d-by-\d )?(?:identity|unit)(?: matrix)?)"
)
_OTHERWISE: Final = re.compile(r"\b(?:otherwise|else|sonst|sinon)\b", re.IGNORECASE)
_TINY: Final = 1e-4
_HUGE: Final = 1e9
_KINDS: Final = {
    RealSet: Kind.INTERVAL, Matrix: Kind.MATRIX, Collection: Kind.LIST, Relation: Kind.OPERATOR, Family: Kind.LIST,
}  # fmt: skip


def compare_objects(question: str, reference: str, answer: str) -> tuple[Kind, Outcome] | None:
    """Compare the object in an answer's final claim with a reference that is a mathematical object.

    Args:
        question: The question, perhaps empty. It decides whether brackets, the order and the form count.
        reference: The reference; objects in at most 600 characters are read.
        answer: The answer. Its final claim is in a box, after "=" or "is", in the last formula, or the whole answer.

    Returns:
        The object's kind and the outcome: FOUND, CONTRADICTED if the answer claims another object or denies this one,
        MISSING if it claims none. None if the reference is not such an object: a plain number, an amount, a text.
    """
    if len(reference) > _MAX_REFERENCE:
        return None
    reference, answer = (_localized(question, _with_and(question, text)) for text in (reference, answer))
    wanted = _reference(question, reference)
    if wanted is None:
        return _hedged(reference, answer)
    kind = _KINDS.get(type(wanted), Kind.EXPRESSION)
    if isinstance(wanted, Expression) and wanted.single and (hedged := _hedged(reference, answer)) is not None:
        return hedged
    found = False
    for claim, denied in islice(_claims(answer), _MAX_CLAIMS):
        outcome = _outcome(question, reference, wanted, claim)
        if outcome is None:
            continue
        if outcome is Outcome.FOUND or denied:
            return kind, Outcome.CONTRADICTED if denied else outcome
        found = True
        if not isinstance(_said(claim), Expression):
            break
    written = notation(reference) or ""
    if not found and isinstance(wanted, Expression) and _PLAIN.fullmatch(written):
        return None  # "\\frac{1}{4}" may be "one quarter" or 25 %
    if isinstance(wanted, Expression) and _unit(notation(reference) or ""):
        return None  # quantities convert and round
    if isinstance(wanted, Expression) and not _is_mathematical(reference, wanted):
        return (kind, Outcome.CONTRADICTED) if found and "." not in reference and _is_sure(answer) else None
    return kind, Outcome.CONTRADICTED if found else Outcome.MISSING


def _outcome(question: str, reference: str, wanted: MathObject, claim: str) -> Outcome | None:
    """Return FOUND or CONTRADICTED for a claim, or None if it is no object that can be compared."""
    style = style_of(question)
    plain = isinstance(wanted, Expression) and not _is_mathematical(reference, wanted)
    outcome = None
    # "24!" may be an exclamation, unless the reference is a factorial.
    exclaimed = claim.endswith("!") and "!" not in reference
    for text in (claim, claim.rstrip(" !")) if exclaimed else (claim,):
        said = _digits(text, wanted, style) or _uncertain(text, wanted) or _identity(text, wanted) or _said(text)
        if said is None or (plain and not _replaces_number(text, wanted, said, exclaimed=exclaimed)):
            continue
        if _are_same(reference, wanted, text, said, style) and not forbidden_form(question, wanted, said, text):
            return Outcome.FOUND
        if not plain or not _SCIENTIFIC.fullmatch(notation(text) or ""):
            outcome = Outcome.CONTRADICTED
    return outcome


def _are_same(reference: str, wanted: MathObject, claim: str, said: MathObject, style: Style) -> bool:
    """Return True if a claim equals the reference; a unit may be missing on one side, but must not differ."""
    theirs, ours = (_unit(notation(text) or "") for text in (reference, claim))
    if same(wanted, said, style):
        return not (theirs and ours) or re.sub(r"[ ()]", "", theirs) == re.sub(r"[ ()]", "", ours)
    if bool(theirs) == bool(ours):
        return False
    bare = [
        read_object((notation(text) or "").removesuffix(unit)) for text, unit in ((reference, theirs), (claim, ours))
    ]
    return bare[0] is not None and bare[1] is not None and same(bare[0], bare[1], style)


def _with_and(question: str, answer: str) -> str:
    """Return an answer with "and" and "or" in place of the one-letter words of Spanish and Italian."""
    if not _SPANISH.search(question) and not _SPANISH.search(answer[:_MAX_REFERENCE]):
        return answer
    return _ONE_LETTER.sub(lambda found: " or " if found[1] in "ou" else " and ", answer)


def _localized(question: str, text: str) -> str:
    """Return a text with decimal points in place of decimal commas, if the question is not in English."""
    if "," not in text or not _FOREIGN.search(question[:2_048]):
        return text
    return _DECIMAL_COMMA.sub(lambda found: found[1] or ".", text)


def _hedged(reference: str, answer: str) -> tuple[Kind, Outcome] | None:
    """Return CONTRADICTED if the answer is "5 or 6" for a reference that is one of them."""
    found = _HEDGE.search(answer) if len(answer) <= _MAX_HEDGE else None
    if found is None or found[1] == found[2] or reference.strip() not in {found[1], found[2]} or "=" in answer:
        return None
    return Kind.QUANTITY, Outcome.CONTRADICTED


@lru_cache(maxsize=64)
def style_of(question: str) -> Style:
    """Return the properties of a question that decide when two objects are equal."""
    begin = question[:2_048]
    base = _BASE.search(begin)
    name = (base[1] or base[2]) if base else ""
    return Style(
        interval=_INTERVAL.search(begin) is not None,
        point=_POINT.search(begin) is not None,
        ordered=_ORDER.search(begin) is not None,
        exact=_EXACT.search(begin) is not None,
        direction=_DIRECTION.search(begin) is not None,
        base=_BASES.get(name) or int(name or 0),
        names=tuple(_VARIABLE.findall(begin)),
    )


def _reference(question: str, reference: str) -> MathObject | None:
    """Return the object that a reference is as a whole, or None for a plain text, an amount or a name."""
    text = _LEAD.sub("", reference.strip())
    if text.count("$") % 2 or _SCORES.fullmatch(text) or _COMPASS.search(text):
        return None
    if text.lower().strip(" .") in _AMBIGUOUS or _BOUND.match(text) or _ABOUT.match(reference):
        return None
    if _GROUPED.fullmatch(text) and _MONEY.search(question):
        return None
    if _PLACE.search(question) and "\\" not in text:
        return None
    written = notation(text) or ""
    if (unit := _unit(written)) and _is_plain(written.removesuffix(unit)):
        return None
    found = _read(text)
    match found:
        case Expression():
            return found if _is_expression(text, found, question) else None
        case Collection(members=members):
            if any(isinstance(each, Expression) and each.names and each.text.isalpha() for each in members):
                return (
                    found if found.opener == "{" or (_FORMULA_ASKED.search(question) and found.opener != ",") else None
                )
            return found
        case _:
            return found


def _read(text: str) -> MathObject | None:
    written = notation(text)
    if written is None:
        return None
    if "±" in written and (unit := _unit(written)):
        return read_object(written[: -len(unit)].replace(f"{unit} ±", " ±"))
    found = read_object(written)
    if found is None and (unit := _unit(written)):
        return read_object(written[: -len(unit)])
    return found


def _unit(written: str) -> str:
    """Return the unit at the end of a text in plain notation, or ""."""
    found = _UNIT_BEHIND.search(written)
    return found[0] if found and re.split(r"[\^/*]", found[0].strip())[0] in _UNITS else ""


def _said(claim: str) -> MathObject | None:
    """Return the object in a claim, perhaps without a remark or the words behind it."""
    if (found := _read(claim)) is not None:
        return found
    remark = _REMARK.search(claim)
    if remark is not None and remark.start() and _CLAIMS.search(claim, remark.end()) is None:
        found = _read(claim[: remark.start()])
        if found is not None:
            return found
    bare = _TRAILING.sub("", claim)
    return _read(bare) if bare != claim else None


def _identity(claim: str, wanted: MathObject) -> Matrix | None:
    """Return the identity matrix, or a multiple, in the size of the reference."""
    found = _IDENTITY.fullmatch((notation(claim) or "").strip(" .")) if isinstance(wanted, Matrix) else None
    if found is None or not isinstance(wanted, Matrix):
        return None
    factor, size = found[1] or "1", range(len(wanted.rows))
    cells = [[expression(factor if row == column else "0") for column in size] for row in size]
    return Matrix(tuple(tuple(cell for cell in row if cell is not None) for row in cells))


def _uncertain(claim: str, wanted: MathObject) -> MathObject | None:
    """Return both ends of "9.79(3)", which is 9.79 ± 0.03, if the reference has two such ends."""
    found = _CONCISE.search(claim) if isinstance(wanted, Collection) and wanted.opener == "±" else None
    if found is None:
        return None
    whole, places, width = found.groups()
    return _read(f"{whole}.{places} ± {Fraction(int(width), 10 ** len(places))}")


def _digits(claim: str, wanted: MathObject, style: Style) -> Based | None:
    """Return a number without its base if the question names the base of the reference."""
    if not isinstance(wanted, Based) or style.base not in {0, wanted.base}:
        return None
    digits = (notation(claim) or "").replace(" ", "").upper()
    if not style.base and not any(map(str.isalpha, digits)):
        return None
    return Based(digits, wanted.base) if 0 < len(digits) <= 64 and _fits(digits, wanted.base) else None


def _fits(digits: str, base: int) -> bool:
    return digits.isascii() and digits.isalnum() and all(int(digit, 36) < base for digit in digits)


def _is_expression(text: str, found: Expression, question: str) -> bool:
    """Return True if an expression is one, and not a name, a word, an amount with a unit, or a date."""
    written = notation(text) or ""
    if found.infinite:
        return True
    if not found.names:
        return "°" not in written and "%" not in written and not re.fullmatch(r"\d+(?:-\d+)+|\d+/\d+/\d+", written)
    if _is_product_of_names(found) or _ONLY_NAMES.fullmatch(written):
        return bool(_FORMULA_ASKED.search(question)) and len(found.names) > 1 and not _is_product_of_names(found)
    if _is_amount(found.text):
        return False
    return bool(_MATHEMATICAL.search(written) or _LATEX.search(text) or _FORMULA_ASKED.search(question)) or (
        bool(re.search(r"\d ?[a-z](?![a-z])|[a-z] [-/+] [\da-z]|\([a-z\d]", written))
    )


def _is_plain(written: str) -> bool:
    return (_PLAIN.fullmatch(written.strip()) or _SCIENTIFIC.fullmatch(written.strip())) is not None


def _is_product_of_names(found: Expression) -> bool:
    return all(name[0] == "=" or name == "*" for name, _ in found.steps)


def _is_amount(written: str) -> bool:
    """Return True for a number with a unit: "12 cm", "50 km/h", "5 m^2", "3 * 10^(8) m/s"."""
    number = re.match(r"-?\d[\d.,]*(?: ?\* ?10\^\(?-?\d+\)?)?", written)
    if number is None:
        return False
    rest = re.sub(r"[\^(]+-?\d\)?|[)*]", " ", written[number.end() :])
    names = re.split(r"[ /]+", rest.strip())
    return bool(names[0]) and all(name in _UNITS or name in SYMBOLS for name in names if name)


def _is_mathematical(reference: str, wanted: Expression) -> bool:
    """Return True unless a reference is a plain number, fraction or power of ten."""
    if wanted.names or wanted.infinite or ("i", 0) in wanted.steps:
        return True
    written = notation(reference) or ""
    if _SCIENTIFIC.fullmatch(written):
        return False
    if _PLAIN.fullmatch(written):
        return bool(_LATEX.search(reference))
    return True


def _is_extreme(number: Expression) -> bool:
    value = number.value
    if value is None or isinstance(value, complex):
        return False
    return 0 < abs(value) < _TINY or abs(value) >= _HUGE


def _replaces_number(claim: str, wanted: Expression, said: MathObject, *, exclaimed: bool) -> bool:
    """Return True if a claim is a formula that can be compared with a plain number."""
    if isinstance(said, Assignment):
        said = said.value
    if isinstance(said, Based):
        return True
    if not isinstance(said, Expression) or said.names or (said.single and not exclaimed and not _is_extreme(wanted)):
        return False
    written = notation(claim) or ""
    if "°" in written:
        return False
    return exclaimed or said.single or "\\" in claim or _MATHEMATICAL.search(written) is not None or not wanted.single


def _is_sure(answer: str) -> bool:
    """Return True if an answer is a formula as a whole, or has a box."""
    return _BOX.search(answer) is not None or _read(_LEAD.sub("", answer.strip())) is not None


def _claims(answer: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts that may be the final claim, the likeliest first, and True if the answer denies them."""
    tail = answer[-_MAX_ANSWER:].strip()
    boxes = _boxes(answer)
    if boxes:
        yield ", ".join(boxes) if len(boxes) > 1 else boxes[0], False
        if len(boxes) > 1:
            yield boxes[-1], False
        return
    if len(tail) <= _MAX_REFERENCE:
        yield _LEAD.sub("", tail), False
    sentences = [each for each in _SENTENCE.split(tail) if each and re.search(r"\w|[∅∞ℝ]", each)]
    last = sentences[-1] if sentences else tail
    if _OTHERWISE.search(last):
        return
    denies = DENIES.search(last)
    conclusions = [found.end() for found in _CONCLUDES.finditer(last)]
    if conclusions:
        yield _LEAD.sub("", last[conclusions[-1] :].strip()), False
    for text in _tails(last):
        yield text, denies is not None and denies.start() < last.find(text[:20])
    spans = [next(group for group in found.groups() if group) for found in _SPAN.finditer(last)]
    if len(spans) > 1:
        yield ", ".join(spans), denies is not None
    if spans:
        yield spans[-1], denies is not None
    elif (
        spans := [next(group for group in found.groups() if group) for found in _SPAN.finditer(tail)]
    ) and last is not tail:
        yield spans[-1], False


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
    yield _LEAD.sub("", sentence)
    ends = [found.end() for found in _CONNECTOR.finditer(sentence)]
    for end in ends[-_MAX_TAILS:]:
        yield sentence[end:]


def _boxes(answer: str) -> Sequence[str]:
    r"""Return the contents of "\boxed{…}" in the last line that has any."""
    found: list[str] = []
    begin = last = max(0, len(answer) - 2 * _MAX_ANSWER)
    for box in list(_BOX.finditer(answer, begin))[-_MAX_BOXES:]:
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
    """Return the position of the brace that closes a group, within _MAX_ANSWER characters; otherwise -1."""
    depth = 1
    for at in range(start, min(len(text), start + _MAX_ANSWER)):
        if text[at] == "{" and text[at - 1] != "\\":
            depth += 1
        elif text[at] == "}" and text[at - 1] != "\\":
            depth -= 1
            if not depth:
                return at
    return -1
