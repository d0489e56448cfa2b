"""Read a mathematical object from a text in plain notation that contains nothing else."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from gradewire_server.metrics.mathematics.expressions import Expression
from gradewire_server.metrics.mathematics.objects import (
    Assignment,
    Collection,
    Interval,
    MathObject,
    Matrix,
    Opaque,
    RealSet,
    Relation,
    real,
)
from gradewire_server.metrics.mathematics.parsing import UNLIKELY_NAMES, expression, infinity
from gradewire_server.metrics.mathematics.phrases import (
    as_family,
    as_real_set,
    based,
    flat,
    in_row,
    inequality,
    infinite,
    phrase,
)
from gradewire_server.metrics.values.tokens import VOCABULARY

_WORDS: Final = VOCABULARY["mathematics"]["words"]
_MAX_CHARACTERS: Final = 600
_MAX_MEMBERS: Final = 64
_MAX_DEPTH: Final = 6

_INTERVALS: Final = re.compile(
    r"(?:^|(?<=[∪∩∖∈=({, U])) ?([\[\]])[^\[\]()]{1,60}[;,][^\[\]()]{1,60}([\[\]])(?= ?(?:\Z|[∪∩∖)},.U]| [^\W\d_]))"
)
"""Intervals such as "]-∞; 2]" and "[2; 5[", whose brackets do not pair."""
_OPENERS: Final = frozenset("([{⟨⌊⌈")
_CLOSERS: Final = frozenset(")]}⟩⌋⌉")
_SIGNS: Final = re.compile(r"<=|>=|!=|==|=|<|>|≤|≥|≠|≈")
_SIGN_NAMES: Final = {"<=": "≤", ">=": "≥", "!=": "≠", "==": "=", "≈": "="}
_FUNCTION: Final = re.compile(r"\A[fgh] ?\([a-z]\)\Z")
_RAYS: Final = frozenset("<>≤≥≠")
_AND: Final = re.compile(
    rf" ?(?:[,;]) ?(?:{_WORDS['and']})(?![^\W\d_]) ?| (?:{_WORDS['and']}) |&|(?<=[\d)]) ?[和及与、] ?"
)
_OR: Final = re.compile(rf" ?[,;]? ?(?<![^\W\d_])(?:{_WORDS['or']})(?![^\W\d_]) ?| ?[或] ?")
_UNION: Final = re.compile(r"∪| U (?=[(\[\]{])|(?<=[)\]\[}])U(?=[(\[\]{])")
_BUILDER: Final = re.compile(r"\{(.{1,200}?)(?:[|:]| such that )(.{1,200})\}\Z")
_WITHOUT: Final = re.compile(
    rf"(?:ℝ ?(?:∖|-|\\|without|except(?: for)?) ?|{_WORDS['all_but']} ?)\{{?(.{{1,80}}?)\}}?\Z", re.IGNORECASE
)
_WHOLE: Final = re.compile(_WORDS["integer"], re.IGNORECASE)
_QUALIFIER: Final = re.compile(_WORDS["qualifier"], re.IGNORECASE)
_DOMAIN: Final = re.compile(
    r"\A[A-Za-z] ?∈ ?ℝ ?(?:[,:|]|and|with|mit|und|et|avec|con) ?(?=[A-Za-z] ?[<>≤≥≠])"
    r"|\A([A-Za-zα-ω](?:_\(?\w\)?)?) ?∈ ?(?=[\[\](ℝ{∅])"
)
_LEADING: Final = re.compile(_WORDS["leading"], re.IGNORECASE)
_TRANSPOSED: Final = re.compile(r"(?<=[\d\w][)\]])\^\(?(?:T|⊤|t)\)?\Z")
_BARRED: Final = re.compile(r"\(([^|(),;]{1,40})\|([^|(),;]{1,40})\)\Z")
_FROM_TO: Final = re.compile(
    r"(?:from|between|von) (.{1,40}?) (?:to|and|bis) (.{1,40}?),? (?:(?:both |with )?(?:ends? |endpoints? )?"
    r"(inclusive|included)|(?:both )?(?:ends? |endpoints? )?(?:exclusive|excluded))\Z",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(_WORDS["between"], re.IGNORECASE)
_FORM: Final = re.compile(_WORDS["form"], re.IGNORECASE)
_MODULO: Final = re.compile(r"(?:\w ?)?= ?([^=]{1,20}?) ?\(? ?mod(?:ulo)? ?[({]?([^=(){}]{1,20})[)}]?\)?\Z")
_DIFFERENCE: Final = re.compile(r" ?∖ ?| except(?: at| for)? ")
_POINT: Final = re.compile(rf"\A(?:[A-Z]'?|{_WORDS['points']}) ?(?=\()")
_OPERATORS: Final = frozenset("∑∏∫")
_SCALED: Final = re.compile(r"([^=\[\]]{1,80}?) ?\*? ?(matrix\[[^\[\]]*\]|\(matrix\[[^\[\]]*\]\))")
_PROGRAM: Final = re.compile(r"(?:(?:np|numpy|sp|sympy|torch)\.)?(?:array|[mM]atrix|tensor|Vector)\((.*)\)\Z")
_DIAGONAL: Final = re.compile(r"diag ?\(([^()]{1,80}(?:,[^()]{1,80}){1,7})\)")
_SPACED: Final = re.compile(r"-?[\w.()/π√^*]+(?: +-?[\w.()/π√^*]+)+")
_DECIMAL_COMMA: Final = re.compile(r"(?<=\d),(?=\d)")
_SPOKEN_SIGNS: Final = {
    words.strip(): sign for sign, phrases in _WORDS["relations"].items() for words in phrases.split(";")
}
_RELATIVE: Final = re.compile(r" ?,? (?:die|der|das|qui|que|that|which) +(?=[<>≤≥≠])")
_BEHIND_RELATION: Final = re.compile(r" (?:sein|sind|ist|are)\.?\Z")
_SPOKEN_ELSEWHERE: Final = "|".join(words for words in _SPOKEN_SIGNS if not words[0].isascii())
_SPOKEN: Final = re.compile(
    rf"(?<![^\W\d_])(?:(?:{_WORDS['modal']}) )*"
    f"({'|'.join(sorted(_SPOKEN_SIGNS, key=len, reverse=True))})(?![^\\W\\d_])"
    f"|(?<=[a-z]) ?({_SPOKEN_ELSEWHERE})"
)


def top_level(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split a text at a pattern, except inside brackets. "[0,1)" and "]0,1[" are brackets too."""
    separators = list(separator.finditer(text))
    if not separators:  # most texts
        return [text]
    depths = []
    depth = 0
    ends = {found.start(side): side for found in _INTERVALS.finditer(text) for side in (1, 2)} if "]" in text else {}
    for at, sign in enumerate(text):
        side = ends.get(at, 0)
        if side == 1 or (sign in _OPENERS and not side):
            depth += 1
            depths.append(depth)
        else:
            depths.append(depth)
            depth -= side == 2 or sign in _CLOSERS
    pieces: list[str] = []
    start = 0
    for found in separators:
        if depths[found.start()] == 0 and depths[found.end() - 1] == 0:
            pieces.append(text[start : found.start()])
            start = found.end()
    pieces.append(text[start:])
    return pieces


_COMMA: Final = re.compile(r",(?!\d{3}(?!\d))|,(?= )|(?<=[^\d]),")
_ANY_COMMA: Final = re.compile(r",")
_SEMICOLON: Final = re.compile(r";")


@lru_cache(maxsize=512)
def read_object(text: str) -> MathObject | None:
    """Return the object that a text in plain notation is, or None. The text may begin with "x ∈" or "all x with"."""
    return _Reader().read(text)


class _Reader:
    """A reader whose recursion is limited to _MAX_DEPTH."""

    def __init__(self) -> None:
        self._depth = 0

    def read(self, text: str) -> MathObject | None:
        text = text.strip(" .;,:")
        if not text or len(text) > _MAX_CHARACTERS or self._depth >= _MAX_DEPTH:
            return None
        self._depth += 1
        for way in self._ways():
            if (found := way(text)) is not None:
                break
        else:
            found = None
        self._depth -= 1
        return found

    def _ways(self) -> Iterator[Callable[[str], MathObject | None]]:
        yield phrase
        yield based
        yield self._exception
        yield self._spoken
        yield self._sentence
        yield self._qualified
        yield self._builder
        yield self._matrix
        yield self._union
        yield self._list
        yield self._relation
        yield self._bracketed
        yield _with_two_signs
        yield infinity
        yield expression
        yield _opaque

    def _sentence(self, text: str) -> MathObject | None:
        """Read "all x with x > 3", "x ∈ (0, 1)", "x is greater than 3", and "M(1; 8)"."""
        spoken = _SPOKEN.sub(lambda found: f" {_SPOKEN_SIGNS[found[1] or found[2]]} ", text)
        if spoken != text:
            spoken = _BEHIND_RELATION.sub("", _RELATIVE.sub(" ", spoken))
        if (leading := _LEADING.match(spoken)) is not None and leading.end() < len(spoken):
            spoken = spoken[leading.end() :]
        spoken = _DOMAIN.sub("", spoken)
        if spoken[:1] in _RAYS and text[:1] != spoken[:1]:
            spoken = f"x {spoken}"
        spoken = _TRANSPOSED.sub("", _BARRED.sub(r"(\1;\2)", spoken))
        if "," in spoken or ";" in spoken:
            spoken = _POINT.sub("", spoken)
        return self.read(spoken) if spoken != text else None

    def _spoken(self, text: str) -> MathObject | None:
        """Read "from 1 to 2, both included", "integers of the form 4m + 1" and "n ≡ 1 mod 4"."""
        if (ends := _FROM_TO.match(text)) is not None:
            brackets = "[]" if ends[3] else "()"
            found = self.read(f"{brackets[0]}{ends[1]}; {ends[2]}{brackets[1]}")
            return found.as_interval if isinstance(found, Collection) else None
        if (between := _BETWEEN.match(text)) is not None:
            brackets = "[]" if between[4] else "()"
            found = self.read(f"{brackets[0]}{between[2]}; {between[3]}{brackets[1]}")
            interval = found.as_interval if isinstance(found, Collection) else None
            return None if interval is None else replace(interval, name=between[1])
        if (form := _FORM.match(text)) is not None:
            return as_family(self.read(form[1]), "")
        if (modulo := _MODULO.match(text)) is not None:
            return as_family(expression(f"({modulo[2]})*k + {modulo[1]}"), "k")
        return None

    def _qualified(self, text: str) -> MathObject | None:
        """Read a family of values for all whole numbers, or drop "for all x"."""
        if (found := _WHOLE.search(text)) is not None:
            parameter = next((group for group in found.groups() if group), "")
            rest = (text[: found.start()] + " " + text[found.end() :]).strip(" ,;")
            family = as_family(self.read(rest), parameter, natural="ℕ" in found[0])
            if family is not None:
                return family
        if (found := _QUALIFIER.search(text)) is not None and found.start():
            return self.read(text[: found.start()] + text[found.end() :])
        return None

    def _builder(self, text: str) -> MathObject | None:
        found = _BUILDER.match(text)
        if found is None:
            return None
        member, condition = found[1].strip(), found[2].strip()
        if (whole := _WHOLE.search(condition)) is not None:
            parameter = next((group for group in whole.groups() if group), "")
            return as_family(self.read(member), parameter, natural="ℕ" in whole[0])
        return self.read(condition) if re.fullmatch(r"[a-zA-Z](?: ?∈ ?ℝ)?", member) else None

    def _matrix(self, text: str) -> MathObject | None:
        inner = text
        if (program := _PROGRAM.match(text)) is not None:
            return self.read(program[1])
        if (scaled := _SCALED.fullmatch(text)) is not None:
            return self._scaled(scaled[1], scaled[2])
        if (begin := _last_bracket(text)) > 0 and (found := self._scaled(text[:begin], text[begin:])) is not None:
            return found
        while inner.startswith(("(matrix[", "[matrix[")) and inner.endswith(("])", "]]")):
            inner = inner[1:-1].strip()
        rows: list[list[str]]
        if inner.startswith("matrix[") and inner.endswith("]") and "matrix[" not in inner[1:]:
            rows = [top_level(row, _ANY_COMMA) for row in top_level(inner[len("matrix[") : -1], _SEMICOLON)]
        elif re.fullmatch(r"[\[(] ?[\[(].*[\])] ?[\])]", inner) and inner[0] == inner[1:].lstrip()[0] == "[":
            rows = [
                top_level(row.strip().strip("[]"), _ANY_COMMA) for row in top_level(inner[1:-1], re.compile(r",|;"))
            ]
        elif inner.startswith("[") and inner.endswith("]") and _is_spaced(inner[1:-1]):
            rows = [re.split(r" *, *| +", row.strip()) for row in inner[1:-1].split(";")]
        elif (diagonal := _DIAGONAL.fullmatch(inner)) is not None:
            entries = diagonal[1].split(",")
            rows = [["0" if at != row else entry for at, entry in enumerate(entries)] for row in range(len(entries))]
        else:
            return None
        cells = [tuple(expression(cell.strip()) for cell in row) for row in rows]
        if not cells or any(cell is None for row in cells for cell in row):
            return None
        return Matrix(tuple(tuple(cell for cell in row if cell is not None) for row in cells))

    def _scaled(self, factor: str, text: str) -> MathObject | None:
        """Return a matrix or a vector, multiplied by a number; before a vector, the factor has no names."""
        factor = factor.strip(" *")
        number = expression("-1" if factor == "-" else factor)
        if number is None:
            return None
        found = self._matrix(text)
        if isinstance(found, Collection) or (found is None and not number.names):
            found = self._bracketed(text)
        if isinstance(found, Collection) and found.opener in "([⟨":
            entries = [each for each in found.members if isinstance(each, Expression) and not each.infinite]
            scaled = tuple(number.times(each) for each in entries)
            return replace(found, members=scaled) if len(scaled) == len(found.members) else None
        if not isinstance(found, Matrix):
            return None
        return Matrix(tuple(tuple(number.times(cell) for cell in row) for row in found.rows))

    def _union(self, text: str) -> MathObject | None:
        parts = top_level(text, _UNION)
        if len(parts) > 1:
            return self._joined([self.read(part) for part in parts])
        sides = top_level(text, _DIFFERENCE)
        if len(sides) == 2 and sides[0].strip() and (rest := self._exception(f"ℝ ∖ {sides[1].strip()}")) is not None:
            first = as_real_set(self.read(sides[0]), brackets=True)
            return None if first is None else first.intersection(rest)
        meets = top_level(text, re.compile("∩"))
        if len(meets) == 2:
            first, second = (as_real_set(self.read(part), brackets=True) for part in meets)
            return first.intersection(second) if first is not None and second is not None else None
        return None

    def _exception(self, text: str) -> RealSet | None:
        """Read "all real numbers except 1 and 2", or the same with a sign for the difference of sets."""
        without = _WITHOUT.match(text)
        found = self.read(without[1]) if without is not None else None
        found = found.value if isinstance(found, Assignment) else found
        members = found.members if isinstance(found, Collection) else (found,)
        points = [member.value if isinstance(member, Assignment) else member for member in members]
        ends: list[Expression] = [point for point in points if isinstance(point, Expression) and not point.infinite]
        if len(ends) != len(points) or any(real(end) is None for end in ends):
            return None
        ends.sort(key=lambda end: real(end) or 0.0)
        bounds = [infinite("-∞"), *ends, infinite("∞")]
        return RealSet(tuple(Interval(low, False, high, False) for low, high in pairwise(bounds)))  # noqa: FBT003

    @staticmethod
    def _joined(parts: Sequence[MathObject | None]) -> MathObject | None:
        sets = [as_real_set(part, brackets=True) for part in parts]
        if all(isinstance(part, Collection) and part.opener == "{" for part in parts):
            return Collection(
                "{", tuple(each for part in parts if isinstance(part, Collection) for each in part.members), "}"
            )
        if any(each is None for each in sets):
            return None
        return RealSet(tuple(part for each in sets if each is not None for part in each.parts))

    def _list(self, text: str) -> MathObject | None:
        """Read objects in a row: "1, 2 and 3", "x = 5 or x = -5", "x < -1 or x > 2", "x > 0 and x < 5"."""
        alternatives = top_level(text, _OR)
        pieces = [piece for part in alternatives for piece in _row(part)]
        if not 1 < len(pieces) <= _MAX_MEMBERS:
            return None
        members = [self.read(piece) if piece.strip() else None for piece in pieces]
        known = [member for member in members if member is not None]
        if len(known) != len(members):
            return None
        sets = [member for member in known if isinstance(member, RealSet)]
        if len(sets) < len(known) or len({each.name for each in sets}) > 1:
            return in_row(known)
        if len(alternatives) == len(pieces):
            return self._joined(known)
        return _intersection(sets) if len(alternatives) == 1 else None

    def _relation(self, text: str) -> MathObject | None:
        """Read an assignment, an equation, an inequality or a chain of them; leave out what is about equal."""
        whole = text
        text = _without_rounded(text)
        found = list(_SIGNS.finditer(text))
        if not found and "≈" in whole:
            return expression(text)
        sides = top_level(text, _SIGNS)
        if not 0 < len(found) <= _MAX_MEMBERS or len(sides) != len(found) + 1:
            return None
        if found[0][0] in {"≠", "!="} and "±" in sides[-1] and len(sides) == 2:
            return self.read(" and ".join(text.replace("±", sign) for sign in ("", "-")))
        signs = [_SIGN_NAMES.get(each[0], each[0]) for each in found]
        if not {"=", "≠"} & set(signs):
            sides = [_FUNCTION.sub("y", side.strip()) for side in sides]
        if set(signs) == {"="}:
            return self._equation([side.strip() for side in sides])
        parts = [infinity(side) or expression(side.strip()) for side in sides]
        known = [part for part in parts if part is not None]
        return inequality(known, signs) if len(known) == len(sides) else None

    def _equation(self, sides: Sequence[str]) -> MathObject | None:
        left, right = sides[0], sides[-1]
        if not left or not right:
            return None
        first, last = expression(left), expression(right)
        if len(sides) == 2 and first is not None and last is not None:
            relation = Relation(first, "=", last)
            if _is_name(left):
                return Assignment(left.replace(" ", ""), last, relation)
            if _is_name(right):
                return Assignment(right.replace(" ", ""), first, relation)
            if (first.names or last.names) and not _is_defined(left):
                return relation
        value = self.read(right)
        if value is None or isinstance(value, Assignment | Relation) or not all(map(_is_left_side, sides[:-1])):
            return None
        return Assignment(left.replace(" ", ""), value)

    def _bracketed(self, text: str) -> MathObject | None:
        opener, closer = text[0], text[-1]
        if len(text) < 2 or opener not in "([]{⟨<" or closer not in ")][}⟩>" or not _encloses(text):
            return None
        inside = text[1:-1].strip()
        if not inside:
            return RealSet(()) if opener == "{" else None
        if (opener, closer) == ("(", ")") and (one := self._single(inside)) is not None:
            return one
        pieces = _row(inside, in_brackets=True)
        if len(pieces) > _MAX_MEMBERS or (len(pieces) == 1 and opener != "{"):
            return None
        known = [member for member in (_member(self, piece) for piece in pieces) if member is not None]
        found = Collection({"<": "⟨"}.get(opener, opener), tuple(flat(known)), {">": "⟩"}.get(closer, closer))
        if len(known) < len(pieces):
            return None
        infinite = any(isinstance(each, Expression) and each.infinite for each in known)
        is_interval = opener in "([" and infinite and len(known) == 2
        return found if _is_usual(found.opener, found.closer) and not is_interval else found.as_interval

    def _single(self, inside: str) -> MathObject | None:
        """Read an object in superfluous parentheses, unless it is a part of an expression."""
        found = self.read(inside) if _SIGNS.search(inside) and "," not in inside else None
        return found if isinstance(found, Relation | RealSet | Assignment) else None


def _intersection(sets: Sequence[RealSet]) -> RealSet | None:
    both: RealSet | None = sets[0]
    for each in sets[1:]:
        both = None if both is None else both.intersection(each)
    return both


def _without_rounded(text: str) -> str:
    """Return a text without the rounded value behind "≈"; in "C ≈ 3.14", "≈" is "="."""
    before, about, _ = text.partition("≈")
    exact = before.strip()
    if not about or (exact and not _is_name(exact)):
        return exact
    return text.replace("≈", "=").lstrip("=")


def _is_usual(opener: str, closer: str) -> bool:
    return (opener, closer) in {("(", ")"), ("[", "]"), ("{", "}"), ("⟨", "⟩")}


def _member(reader: _Reader, text: str) -> MathObject | None:
    if text.strip() in {"…", "..."}:
        return Opaque("…")
    return reader.read(text)


def _last_bracket(text: str) -> int:
    """Return the position of the bracket that closes at a text's end and has a comma or semicolon, or -1."""
    depth = 0
    for at in range(len(text) - 1, -1, -1) if text[-1] in ")]" else ():
        depth += (text[at] in _CLOSERS) - (text[at] in _OPENERS)
        if not depth:
            return at if {",", ";"} & set(text[at:]) else -1
    return -1


def _is_spaced(inside: str) -> bool:
    rows = inside.split(";")
    return all(_SPACED.fullmatch(row.strip()) for row in rows) or (
        len(rows) > 1 and inside.count(",") >= len(rows) and len({row.count(",") for row in rows}) == 1
    )


def _encloses(text: str) -> bool:
    """Return True if the first bracket closes only at the end; reversed brackets enclose too."""
    depth = 0
    for sign in text[1:-1]:
        depth += (sign in _OPENERS) - (sign in _CLOSERS)
        if depth < 0:
            return False
    return depth == 0


def _row(text: str, *, in_brackets: bool = False) -> list[str]:
    """Split a list at ";" or ",", and at "and". A comma between digits is a decimal comma beside semicolons."""
    if len(parts := top_level(text, _SEMICOLON)) > 1:
        return [_DECIMAL_COMMA.sub(".", part) for part in parts]
    parts = top_level(text, _AND)
    commas = _ANY_COMMA if in_brackets else _COMMA
    return [piece for part in parts for piece in top_level(part, commas)]


_NAME: Final = re.compile(r"[A-Za-z\u0391-\u03c9]'{0,3}(?:_\(?[\w, ]{1,12}\)?)?")
_DEFINED: Final = re.compile(
    r"[A-Za-z] ?\([A-Za-z] ?\([^()=]{1,10}\)\)|\(?[A-Za-z] ?° ?[A-Za-z]\)? ?\([^()=]{1,10}\)|"
    r"[A-Za-z\u0391-\u03c9]'{0,3}(?:\^\(-?\w{1,3}\))?(?:_\(?\w{1,6}\)?)?(?:\^\(-?\w{1,3}\))? ?\([^()=]{1,40}\)"
    r"|\(?\(?d\w?\)?/\(?d\w\)?\)?(?: ?\w)?|\(\(d\w?\)/\(d\w\)\)|[A-Za-z]'{1,3}"
)
_TITLE: Final = re.compile(r"(?!.*\b(?:except|without|than|unless)\b)[^\W\d_]+(?: [^\W\d_]+){0,2}")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_PROSE: Final = re.compile(r"[^\W\d_]{4,}")


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and text not in {"e", "i", "π"}


def _is_defined(text: str) -> bool:
    """Return True for the left side of a definition: "f(x)", "f^(-1)(x)", "f'(x)", "dy/dx"."""
    return _DEFINED.fullmatch(text) is not None


def _is_left_side(text: str) -> bool:
    if len(text) > 200:
        return False
    if expression(text) is not None or _is_defined(text):
        return True
    if not UNLIKELY_NAMES.isdisjoint(_WORD.findall(text.lower())):
        return False
    return _PROSE.search(text) is None or _TITLE.fullmatch(text) is not None


def _with_two_signs(text: str) -> MathObject | None:
    if text.count("±") != 1:
        return None
    values = [expression(text.replace("±", sign).removeprefix("+").strip()) for sign in "+-"]
    known = tuple(value for value in values if value is not None)
    return Collection("±", known) if len(known) == 2 else None


def _opaque(text: str) -> Opaque | None:
    if _OPERATORS.isdisjoint(text) or _PROSE.search(text):
        return None
    return Opaque(re.sub(r"[ (){}]", "", text))
