import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_models.judges.cores import wire
from gradewire_models.judges.cores.wire import Question, QuestionError, from_tensors, to_tensors

IDS = st.lists(st.integers(0, 99), max_size=6).map(tuple)


@given(st.builds(Question, IDS, IDS.filter(bool), IDS, IDS))
def test_a_question_survives_the_way(question: Question) -> None:
    assert from_tensors(to_tensors(question), vocabulary=100, max_tokens=100) == question


def altered(**values: object) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    return to_tensors(Question((1,), (2, 3), (4,))) | {name: np.array(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        (altered(tokens=[[1, 2, 3]]), "does not match the 3 tokens"),
        (altered(lengths=[[1, 2, -1, 2]]), "does not match"),
        (altered(lengths=[[4, 0, 0, 0]]), "must have 1 to 8 tokens"),
        (altered(lengths=[[1, 2, 1]]), "one question"),
        (altered(tokens=[[1, 2, 3, 4]] * 2), "one question"),
        (altered(tokens=[[1, 2, 3, 100]]), "vocabulary of 100"),
        (altered(tokens=[[1, -2, 3, 4]]), "vocabulary of 100"),
        (to_tensors(Question((1,) * 8, (2,))), "not 9"),
        (to_tensors(Question((1,), (2,), (3,) * 257)), "256 labels, not 257"),
    ],
)
def test_what_is_no_question_is_refused(tensors: dict[str, np.ndarray], said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(QuestionError, match=said):
        from_tensors(tensors, vocabulary=100, max_tokens=8)


def test_a_digest_has_one_number_that_fits_into_int64() -> None:
    assert wire.fingerprint_of("f" * 64) == -1
    assert wire.fingerprint_of("0" * 15 + "1" + "f" * 48) == 1
    np.array([wire.fingerprint_of("8" + "0" * 63), wire.fingerprint_of("7" + "f" * 63)], np.int64)
