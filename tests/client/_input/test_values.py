"""Numbers of any library as texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire._input.values import text_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.1), "0.1"),
        (float(np.float32(3.3)), "3.3"),
        (float(np.float32(16777.217)), "16777.217"),
        (3.30078125, "3.30078125"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e22, "10000000000000000000000"),
        (1e18, "1000000000000000000"),
        (0.00001, "0.00001"),
        (-2.5e-05, "-0.000025"),
        (1e300, "1e+300"),
    ],
)
def test_numbers_are_written_as_people_write_them(value: float, text: str) -> None:
    assert text_of(value) == text


@given(number=st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_number_of_single_precision_is_its_shortest_text(number: float) -> None:
    said = str(text_of(np.float32(number)))
    assert np.float32(said) == np.float32(number)
    assert float(said) in {number, float(str(np.float32(number)))}


@given(
    number=st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) > 1e38 or float(np.float32(x)) != x)
)
def test_the_text_of_any_other_number_is_that_number(number: float) -> None:
    assert float(str(text_of(number))) == number
