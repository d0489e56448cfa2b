"""Expressions in plain notation: what they become, their values, and when two are equal."""

from fractions import Fraction

import pytest

from gradewire_server.metrics.mathematics.notation import notation
from gradewire_server.metrics.mathematics.parsing import expression


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"\dfrac{3}{4}", "((3)/(4))"),
        (r"\frac34", "((3)/(4))"),
        (r"2\frac{1}{2}", "mix(2,1,2)"),
        (r"5 \frac{9}{2}", "5 ((9)/(2))"),
        (r"\left[0,\,2\right)", "[0, 2)"),
        ("x²-5x₁", "x^(2)-5x_(1)"),
        (r"\sqrt[3]5", "root(3,5)"),
        (r"\sqrt2+\sqrt{8}", "sqrt(2)+sqrt(8)"),
        (r"\begin{pmatrix}1&5\\7&2\end{pmatrix}", "matrix[1,5;7,2]"),
        (r"\{2\} \cup \{2,5\}", "{2} ∪ {2,5}"),
        ("9{,}500", "9,500"),
        (r"0{,}15 \cdot 80", "0.15 * 80"),
        (r"45^{\circ}", "45°"),
        (r"\mathbb{R} \setminus \{4\}", "ℝ ∖ {4}"),
        (r"\text{no solution}", "no solution"),
        ("**7**", "7"),
        (r"0.\dot{1}4285\dot{7}", "0.overline(142857)"),
        (r"\boxed{x = 1}", "x = 1"),
        ("(" * 50, "(" * 50),
    ],
)
def test_plain_notation(text: str, plain: str) -> None:
    assert notation(text) == plain


@pytest.mark.parametrize("text", [r"\frac{1", r"\frac{1}2}", r"\frac{1}{" * 40 + "}" * 40, "x" * 2_001, r"\sqrt[3"])
def test_unbalanced_and_deep_texts_have_no_notation(text: str) -> None:
    assert notation(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\frac34", Fraction(3, 4)),
        ("1 3/4", Fraction(7, 4)),
        (r"-1\frac12", Fraction(-3, 2)),
        ("2^{10}", 1024),
        ("2^3^2", 512),
        ("-2^2", -4),
        ("8/4/2", 1),
        ("1,024", 1024),
        ("5!", 120),
        (r"\binom{6}{2}", 15),
        ("6C2", 15),
        ("P(5,2)", 20),
        ("0.(3)", Fraction(1, 3)),
        (r"0.1\overline{6}", Fraction(1, 6)),
        ("0.272727...", Fraction(3, 11)),
        (r"\lfloor 7/2 \rfloor", 3),
        (r"\sqrt[4]{16}", 2),
        (r"\sqrt{\frac{9}{4}}", Fraction(3, 2)),
        ("(-8)^(1/3)", -2.0),
        ("|2 - 5|", 3),
        ("gcd(12, 18)", 6),
        ("1/2004! * 2003!", Fraction(1, 2004)),
    ],
)
def test_the_exact_value_of_a_constant(text: str, value: Fraction | float) -> None:
    found = expression(notation(text) or "")
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("text", ["1/0", "9^9^9", "3001!", "ln(0)", "0^(-1)", "binom(2,5)", "exp(1000)"])
def test_what_has_no_value_has_none(text: str) -> None:
    found = expression(text)
    assert found is not None
    assert found.value is None


@pytest.mark.parametrize(
    "text", ["", "(", "1 +", "2 3", "hello", "so x", "12 cm", "lim x", "5%", "(" * 90 + "1" + ")" * 90]
)
def test_what_is_no_expression_is_none(text: str) -> None:
    assert expression(text) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\sqrt{8}", "2√2"),
        ("1/2 x", r"\frac{x}{2}"),
        (r"\log_2 5", r"\frac{\ln 5}{\ln 2}"),
        (r"1+\cot^2(t)", r"\csc^2(t)"),
        (r"\sqrt{x^2}", "|x|"),
        (r"\frac{1}{\sqrt{m}}", r"\sqrt{1/m}"),
        ("4*pi*R**3/3", r"\frac{4}{3}\pi R^3"),
        ("4+5i", "5i + 4"),
        (r"e^{i\pi}", "-1"),
        ("n!/(n-1)!", "n"),
        ("(-1)^n", r"\cos n\pi"),
        (r"\sin 2x", "2 sin x cos x"),
        (r"\tan^{-1} x", r"\arctan x"),
        (r"\log x^2", "2 log x"),
        ("9^9^9", "9^9^9"),
        (r"\cos 60^\circ", r"\frac12"),
        (r"2\pi", "6.283"),
        ("π", "3.14159…"),
        ("66.7", r"\frac{200}{3}"),
    ],
)
def test_equal_expressions(one: str, other: str) -> None:
    first, second = (expression(notation(text) or "") for text in (one, other))
    assert first is not None
    assert second is not None
    assert second.equals(first)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\frac{1}{52!}", r"\frac{1}{54!}"),
        (r"\frac{2^{1999}+1}{3 \cdot 2^{2000}}", r"\frac{1}{3 \cdot 2^{2000}}"),
        ("2^{64}", "2^{64}-1"),
        (r"\sqrt{x^2}", "x"),
        (r"\log_2 5", r"\log_5 2"),
        ("r", "R"),
        ("9^9^9", "9^9^8"),
        (r"0.1\overline{6}", r"0.\overline{16}"),
        ("0.3", "1/3"),
        ("2+3i", "2-3i"),
    ],
)
def test_different_expressions_both_ways(one: str, other: str) -> None:
    first, second = (expression(notation(text) or "") for text in (one, other))
    assert first is not None
    assert second is not None
    assert not second.equals(first)
    assert not first.equals(second)


@pytest.mark.parametrize(("reference", "answer"), [(r"2\pi", "6.28"), (r"\frac{3}{8}", "0.38"), ("3.14", "3.1")])
def test_a_decimal_with_too_few_digits_differs(reference: str, answer: str) -> None:
    first, second = (expression(notation(text) or "") for text in (reference, answer))
    assert first is not None
    assert second is not None
    assert not second.equals(first)


def test_exact_forbids_a_decimal() -> None:
    reference, answer = expression("sqrt(20)"), expression("4.4721")
    assert reference is not None
    assert answer is not None
    assert answer.equals(reference)
    assert not answer.equals(reference, exact=True)
