"""Long texts are translated in parts, with the outcome of one call."""

from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.text.long_text import translated

TABLE = str.maketrans({"a": "b", "b": None, "é": "ee", "語": " "})


@given(st.text(alphabet="abcé語 ", max_size=40), st.sampled_from([1, 819, 2_000, 5_000]))
def test_the_outcome_is_that_of_one_call(text: str, times: int) -> None:
    long = text * times
    assert translated(long, TABLE) == long.translate(TABLE)
