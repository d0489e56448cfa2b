"""Formulas: what is one, its value, and when two are equal; against Python's own arithmetic, written here by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.values.formulas import MAX_TOKENS, Formula, parse, runs_of


def formula(text: str) -> Formula | None:
    runs = list(runs_of(text))
    return parse(runs[0]) if len(runs) == 1 else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2*3", 7.0),
        ("(1 + 2)*3", 9.0),
        ("2^3^2", 512.0),  # powers bind to the right
        ("-2^2", -4.0),
        ("2^-1", 0.5),
        ("8/4/2", 1.0),
        ("10 - 4 - 3", 3.0),
        ("5!", 120.0),
        ("2(3 + 4)", 14.0),
        ("sqrt(16) + sqrt 9", 7.0),
        ("2 sqrt(2)", 2 * math.sqrt(2)),
        ("1/sqrt 2", 1 / math.sqrt(2)),
        ("4 pi", 4 * math.pi),
        ("e^2", math.e**2),
        ("ln(e)", 1.0),
        ("log10(1000)", 3.0),
        ("cos(0) + sin(0)", 1.0),
        ("2**10", 1024.0),
        ("1,024 + 1", 1025.0),
    ],
)
def test_the_value_of_a_constant(text: str, value: float) -> None:
    found = formula(text)
    assert found is not None
    assert found.constant == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["1/0", "sqrt(-1)", "(-8)^(1/3)", "10**10**10", "171!", "2.5!", "ln(0)", "0^-1", "exp(1000)", "(1e300)^2"]
)
def test_what_has_no_value_has_none(text: str) -> None:
    found = formula(text)
    assert found is not None
    assert found.constant is None


@pytest.mark.parametrize("text", ["(1 + 2", "1 + 2)", "()", "(*2) + 1", "1 + * 2", "sqrt * 1"])
def test_what_is_no_formula_is_none(text: str) -> None:
    assert formula(text) is None


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("(x + 1)^2", "x^2 + 2x + 1", True),
        ("(a + b)(a - b)", "a^2 - b^2", True),
        ("ab + ac", "a(b + c)", True),
        ("sin(x)^2 + cos(x)^2 + x", "x + 1", True),
        ("x^2", "x^3", False),
        ("x + 1", "y + 1", False),
        ("2x + 3", "2x - 3", False),
        ("x + 1", "x + 1.000001", False),
        ("1/(x - x)", "1/(x - x)", False),  # no value anywhere
    ],
)
def test_formulas_are_equal_where_their_values_are(one: str, other: str, *, equal: bool) -> None:
    first, second = formula(one), formula(other)
    assert first is not None
    assert second is not None
    assert first.equals(second) is second.equals(first) is equal


NUMBERS = st.integers(1, 99).map(str)
SUMS = st.recursive(
    NUMBERS,
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(
        lambda parts: f"({''.join(parts)})"
    ),
    max_leaves=8,
)


def python_value(text: str) -> float | None:
    """Of a fully bracketed sum, by splitting it at its outermost operator."""
    if text.isdecimal():
        return float(text)
    depth = 0
    inner = text[1:-1]
    for place, sign in enumerate(inner):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and sign in "+-*/":
            left, right = python_value(inner[:place]), python_value(inner[place + 1 :])
            if left is None or right is None or (sign == "/" and right == 0):
                return None
            return {"+": left + right, "-": left - right, "*": left * right}.get(sign, left / right if right else None)
    raise AssertionError(text)


@given(SUMS.filter(lambda text: not text.isdecimal()))
def test_sums_have_the_value_of_arithmetic(text: str) -> None:
    found = formula(text)
    assert found is not None
    expected = python_value(text)
    assert found.constant == (None if expected is None else pytest.approx(expected))


def test_long_formulas_are_left_alone() -> None:
    assert list(runs_of("1 + " * MAX_TOKENS + "1")) == []
    assert [sign.text for sign in next(iter(runs_of("so 1 + 2 is")))] == ["1", "+", "2"]
