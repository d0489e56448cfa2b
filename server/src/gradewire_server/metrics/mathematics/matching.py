"""Compare the mathematical object in an answer, such as a set or a formula, with a reference that is one."""

import re
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Final

from gradewire_server.metrics.mathematics.claims import (
    BOX,
    LEAD,
    MAX_ANSWER,
    MAX_CLAIM,
    UNITS,
    cases_in,
    claims_of,
    concludes,
    labelled,
    labels_in,
    localized,
    read,
    said_in,
    unit_of,
    with_and,
)
from gradewire_server.metrics.mathematics.equality import forbidden_form, same
from gradewire_server.metrics.mathematics.expressions import Expression
from gradewire_server.metrics.mathematics.notation import notation
from gradewire_server.metrics.mathematics.objects import (
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
from gradewire_server.metrics.mathematics.parsing import expression
from gradewire_server.metrics.mathematics.prose import reads_as_prose
from gradewire_server.metrics.mathematics.reading import read_object
from gradewire_server.metrics.mathematics.values import size_of
from gradewire_server.metrics.values.reading import DENIES, Kind, Outcome
from gradewire_server.metrics.values.tokens import VOCABULARY
from gradewire_server.metrics.values.units import SYMBOLS

_WORDS: Final = VOCABULARY["mathematics"]["questions"]
_AND_PART: Final = re.compile(r"(?<=\d) and (?=\d+/\d|\$?\\[dt]?frac)")
_MAX_HEDGE: Final = 200
_MAX_CLAIMS: Final = 20

_INTERVAL: Final = re.compile(_WORDS["interval"], re.IGNORECASE)
_POINT: Final = re.compile(_WORDS["point"], re.IGNORECASE)
_ORDER: Final = re.compile(_WORDS["order"], re.IGNORECASE)
_EXACT: Final = re.compile(r"\bexact(?:ly|e|a)?\b|\bexakt", re.IGNORECASE)
_DIRECTION: Final = re.compile(
    r"\bdirection|\bparallel to|\bnormal vector|\beigenvector|\b(?:richtungs|normalen|eigen)vektor"
    r"|\bvecteur (?:directeur|normal)|\bvector (?:director|normal)",
    re.IGNORECASE,
)
_UNIT_VECTOR: Final = re.compile(
    r"\bunit (?:\w+ )?vector|\bunit normal|\bnormali[sz]|\beinheitsvektor|\bnormiert|\bunitaire|\bunitario",
    re.IGNORECASE,
)
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
_ABOUT: Final = re.compile(r"\s*(?:about|approximately|roughly|around|≈|~|\\approx)", re.IGNORECASE)
_SCORES: Final = re.compile(r"\d+[-–:]\d+(?:, ?\d+[-–:]\d+)*\Z")
_COMPASS: Final = re.compile(r"\d ?[°′″'\"].{0,16}[NSEWO]\b")
_BOUND: Final = re.compile(
    r"(?:at (?:least|most)|not|more|less|fewer|greater|larger|smaller|below|above|under|over) |[<>≤≥]"
    r"|\\[lg]e(?:q[a-z]*)?(?![a-z])"
)
_AMBIGUOUS: Final = frozenset({"none", "infinite", "all numbers", "any number", "empty"})
_HEDGE: Final = re.compile(
    r"(?<![\w.=/*+^-])(-?\d+(?:\.\d+)?) (?:or|oder|ou) (-?\d+(?:\.\d+)?)"
    r"(?![\w*/^=+]|\.\d| ?[-+*/^=]| more| less| fewer)"
)
_ASIDE: Final = re.compile(r"(.*\S)\s+(?:\(([^()]{1,80})\)|\[([^\[\]]{1,80})\])[ .!]*", re.DOTALL)
"""A value and an aside that says where it is from: "64 (8 × 8)". Without the blank it is a product."""
_OPERATION: Final = re.compile(
    r"\A[\s$]*(?:d/d[a-z](?![a-z])|\\[dt]?frac\s?\{d\}\s?\{d[a-z]\}|(?:\\(?:sum|prod)|[∑∏])_\{[^{}]{1,40}\})"
    r"[^=]*=(?=[^=]+\Z)"
)
"""An operation before its result: "d/dx x^3 = "."""
_CONCISE: Final = re.compile(r"(?<![\w.])(\d+)\.(\d+) ?\((\d{1,2})\)")
_FORMULA: Final = re.compile(r"[\\^!*√×·+=/⁰¹²³⁴-⁹¼-¾⅐-⅞]|\b0[xb]|_\d|squared|choose|\bbase\b|\d \d|\dC\d| or ")
_IDENTITY: Final = re.compile(
    r"(?:[A-Z] ?= ?)?(-?\d{0,4}) ?(?:I(?:_\(?[\dn]\)?)?"
    r"|(?:the |an? )?(?:\d ?[*x] ?\d |\d-by-\d )?(?:identity|unit)(?: matrix)?)"
)
_MAX_CACHED_CHARACTERS: Final = 1_024
_TINY: Final = 1e-4
_HUGE: Final = 1e9
_KINDS: Final = {
    RealSet: Kind.INTERVAL, Matrix: Kind.MATRIX, Collection: Kind.LIST, Relation: Kind.OPERATOR, Family: Kind.LIST,
}  # fmt: skip


def may_be_object(reference: str) -> bool:
    """Return False if `compare_objects` returns None for a reference, whatever else it compares: a fast first look."""
    return len(reference) <= MAX_CLAIM and not reads_as_prose(LEAD.sub("", reference.strip()))


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
    if not may_be_object(reference):
        return None
    reference, answer = (localized(question, with_and(question, text)) for text in (reference, answer))
    wanted = _reference(question, reference)
    if (wanted is None or _is_single(wanted)) and (hedged := _hedged(reference, answer)) is not None:
        return hedged
    if (named := _named(question, reference, answer, wanted)) is not None:
        return named
    if wanted is None or (_is_single(wanted) and not _may_be_formula(reference, wanted, answer)):
        return None
    kind = _KINDS.get(type(wanted), Kind.EXPRESSION)
    outcome = Outcome.MISSING
    for claim, denied in islice(claims_of(answer), _MAX_CLAIMS):
        found = _outcome(question, reference, wanted, claim)
        if found is None:
            continue
        outcome = Outcome.CONTRADICTED if denied else found
        is_last = not isinstance(said_in(claim), Expression) and not concludes(question, claim)
        if denied or found is Outcome.FOUND or is_last:
            break
    if outcome is not Outcome.FOUND and _has_cases(question, wanted, answer):
        outcome = Outcome.FOUND
    return None if _is_left_to_quantities(reference, wanted, answer, outcome) else (kind, outcome)


def _named(question: str, reference: str, answer: str, wanted: MathObject | None) -> tuple[Kind, Outcome] | None:
    """Compare the values of names, such as "mean = 5, median = 3", in any order and with work before them.

    If the reference is an object, only FOUND counts.
    """
    values = labelled(reference)
    said = labels_in(answer[-MAX_ANSWER:], values) if values is not None else {}
    if values is None or len(said) < len(values) or DENIES.search(answer) is not None:
        return None
    style = style_of(question)
    if all(same(value, said[name], style) for name, value in values.items()):
        return Kind.LIST, Outcome.FOUND
    return (Kind.LIST, Outcome.CONTRADICTED) if wanted is None else None


def _has_cases(question: str, wanted: MathObject, answer: str) -> bool:
    """Return True if the clauses of an answer claim the members of a list, one each."""
    members = _value(wanted)
    if not isinstance(members, Collection) or members.opener not in {",", "{"}:
        return False
    cases = cases_in(answer)
    return cases is not None and same(members, cases, style_of(question))


def _value(found: MathObject) -> MathObject:
    return found.value if isinstance(found, Assignment) else found


def _is_single(wanted: MathObject) -> bool:
    return isinstance(wanted, Expression) and wanted.single


def _may_be_formula(reference: str, wanted: MathObject, answer: str) -> bool:
    """Return True if an answer to a plain number has a sign of a formula: a fast first search."""
    is_number = isinstance(wanted, Expression) and not _is_mathematical(reference, wanted)
    if not is_number or (isinstance(wanted, Expression) and _is_extreme(wanted)):
        return True
    return _FORMULA.search(answer[-MAX_ANSWER:]) is not None


def _is_left_to_quantities(reference: str, wanted: MathObject, answer: str, outcome: Outcome) -> bool:
    """Return True if quantities know more than formulas: how to convert, to round and to read "one quarter"."""
    if not isinstance(wanted, Expression) or outcome is Outcome.FOUND:
        return False
    written = notation(reference) or ""
    if unit_of(written) or (outcome is Outcome.MISSING and _PLAIN.fullmatch(written)):
        return True
    if _is_mathematical(reference, wanted):
        return False
    return outcome is Outcome.MISSING or "." in reference or not _is_sure(answer)


def _outcome(question: str, reference: str, wanted: MathObject, claim: str) -> Outcome | None:
    """Return FOUND or CONTRADICTED for a claim, or None if it is no object that can be compared."""
    style = style_of(question)
    plain = wanted if isinstance(wanted, Expression) and not _is_mathematical(reference, wanted) else None
    outcome = None
    if not isinstance(wanted, Relation):
        claim = _OPERATION.sub("", claim)
    if _is_before_aside(reference, wanted, claim, style):
        return Outcome.FOUND
    # "24!" may be an exclamation, unless the reference is a factorial.
    exclaimed = claim.endswith("!") and "!" not in reference
    texts = [claim, claim.rstrip(" !")] if exclaimed else [claim]
    if isinstance(_value(wanted), Collection) and _AND_PART.search(claim):
        texts.append(_AND_PART.sub(", ", claim))  # "3 and 1/2" may be two numbers
    for text in texts:
        if isinstance(wanted, RealSet) and _has_other_name(wanted, said_in(text)):
            continue
        said = _digits(text, wanted, style) or _uncertain(text, wanted) or _identity(text, wanted) or said_in(text)
        if said is None or (plain and not _replaces_number(text, plain, said, exclaimed=exclaimed)):
            continue
        if _are_same(reference, wanted, text, said, style) and not forbidden_form(question, wanted, said, text):
            return Outcome.FOUND
        if not plain or not _SCIENTIFIC.fullmatch(notation(text) or ""):
            outcome = Outcome.CONTRADICTED
    return outcome


def _is_before_aside(reference: str, wanted: MathObject, claim: str, style: Style) -> bool:
    """Return True if a claim is the reference and an aside in brackets, and no product or function of a variable."""
    found = _ASIDE.fullmatch(claim)
    if found is None:
        return False
    aside, said = said_in(found[2] or found[3]), said_in(found[1])
    if isinstance(aside, Based) or (isinstance(aside, Expression) and aside.names):
        return False
    return said is not None and _are_same(reference, wanted, found[1], said, style)


def _has_other_name(wanted: RealSet, said: MathObject | None) -> bool:
    """Return True if two inequalities are about two variables."""
    return isinstance(said, RealSet) and bool(said.name and wanted.name) and said.name != wanted.name


def _are_same(reference: str, wanted: MathObject, claim: str, said: MathObject, style: Style) -> bool:
    """Return True if a claim equals the reference; a unit may be missing on one side, but must not differ."""
    theirs, ours = (unit_of(notation(text) or "") for text in (reference, claim))
    if same(wanted, said, style):
        return not (theirs and ours) or re.sub(r"[ ()]", "", theirs) == re.sub(r"[ ()]", "", ours)
    if bool(theirs) == bool(ours):
        return False
    bare = [
        read_object((notation(text) or "").removesuffix(unit)) for text, unit in ((reference, theirs), (claim, ours))
    ]
    return bare[0] is not None and bare[1] is not None and same(bare[0], bare[1], style)


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
        direction=_DIRECTION.search(begin) is not None and _UNIT_VECTOR.search(begin) is None,
        base=_BASES.get(name) or int(name or 0),
        names=tuple(_VARIABLE.findall(begin)),
    )


def _reference(question: str, reference: str) -> MathObject | None:
    """Return the object that a reference is as a whole, or None for a plain text, an amount or a name."""
    # Many answers are compared with the same reference.
    short = len(question) + len(reference) <= _MAX_CACHED_CHARACTERS
    return _cached_reference(question, reference) if short else _read_reference(question, reference)


def _read_reference(question: str, reference: str) -> MathObject | None:
    text = LEAD.sub("", reference.strip())
    written = notation(text) or ""
    unit = unit_of(written)
    if (
        _is_other(text, question)
        or _ABOUT.match(reference)
        or (unit and (_PLAIN.fullmatch(bare := written.removesuffix(unit).strip()) or _SCIENTIFIC.fullmatch(bare)))
    ):
        return None
    found = read(text)
    if isinstance(found, Expression):
        return found if _is_expression(text, found, question) else None
    if isinstance(found, Collection) and any(_is_bare_name(each) for each in found.members):
        is_math = found.opener == "{" or (found.opener != "," and _FORMULA_ASKED.search(question) is not None)
        return found if is_math else None
    return found


_cached_reference = lru_cache(maxsize=2_048)(_read_reference)


def _is_other(text: str, question: str) -> bool:
    """Return True for an amount of money, a score, a place, a bound without a variable, and an ambiguous word."""
    return (
        bool(text.count("$") % 2)
        or text.lower().strip(" .") in _AMBIGUOUS
        or any(pattern.match(text) for pattern in (_SCORES, _BOUND))
        or _COMPASS.search(text) is not None
        or (_GROUPED.fullmatch(text) is not None and _MONEY.search(question) is not None)
        or (_PLACE.search(question) is not None and "\\" not in text)
    )


def _is_bare_name(member: MathObject) -> bool:
    return isinstance(member, Expression) and bool(member.names) and member.text.isalpha()


def _identity(claim: str, wanted: MathObject) -> Matrix | None:
    """Return the identity matrix, or a multiple, in the size of the reference."""
    found = _IDENTITY.fullmatch((notation(claim) or "").strip(" .")) if isinstance(wanted, Matrix) else None
    if found is None or not isinstance(wanted, Matrix):
        return None
    factor, size = f"{found[1]}1" if found[1] in {"", "-"} else found[1], range(len(wanted.rows))
    cells = [[expression(factor if row == column else "0") for column in size] for row in size]
    return Matrix(tuple(tuple(cell for cell in row if cell is not None) for row in cells))


def _uncertain(claim: str, wanted: MathObject) -> MathObject | None:
    """Return both ends of "9.79(3)", which is 9.79 ± 0.03, if the reference has two such ends."""
    found = _CONCISE.search(claim) if isinstance(wanted, Collection) and wanted.opener == "±" else None
    if found is None:
        return None
    whole, places, width = found.groups()
    return read(f"{whole}.{places} ± {Fraction(int(width), 10 ** len(places))}")


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
        amount = _is_degrees(found) or "%" in written
        return not amount and not re.fullmatch(r"\d+(?:-\d+)+|\d+/\d+/\d+", written)
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


def _is_degrees(found: Expression) -> bool:
    """Return True for a number of degrees, perhaps with a sign or a fraction."""
    names = {name for name, _ in found.steps}
    return "°" in names and names <= {"number", "°", "negate", "/", "mix"}


def _is_amount(written: str) -> bool:
    """Return True for a number with a unit: "12 cm", "50 km/h", "5 m^2", "3 * 10^(8) m/s"."""
    number = re.match(r"-?\d[\d.,]*(?: ?\* ?10\^\(?-?\d+\)?)?", written)
    if number is None:
        return False
    rest = re.sub(r"[\^(]+-?\d\)?|[)*]", " ", written[number.end() :])
    names = re.split(r"[ /]+", rest.strip())
    return bool(names[0]) and all(name in UNITS or name in SYMBOLS for name in names if name)


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
    size = size_of(value)
    return 0 < size < _TINY or size >= _HUGE


def _replaces_number(claim: str, wanted: Expression, said: MathObject, *, exclaimed: bool) -> bool:
    """Return True if a claim is a formula that can be compared with a plain number."""
    if isinstance(said, Assignment):
        said = said.value
    if isinstance(said, Based):
        return True
    if not isinstance(said, Expression) or said.names or (said.single and not exclaimed and not _is_extreme(wanted)):
        return False
    written = notation(claim) or ""
    if _is_degrees(said):
        return False
    return exclaimed or said.single or "\\" in claim or _MATHEMATICAL.search(written) is not None or not wanted.single


def _is_sure(answer: str) -> bool:
    """Return True if an answer is a formula as a whole, or has a box."""
    return BOX.search(answer) is not None or read(LEAD.sub("", answer.strip())) is not None
