"""Whatever is posted is read, or refused by an error that says why."""

import contextlib
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from gradewire.errors import InvalidRequest
from gradewire.rewards import posts

_VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["user", "message"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "target", "reward"]) | st.text(), inner)
    ),
    max_leaves=8,
)


def _posts(*names: str) -> Any:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, _VALUES | st.lists(_VALUES, max_size=2)))


_GYM = st.fixed_dictionaries(
    {"response": st.fixed_dictionaries({"output": st.lists(_VALUES)}), "responses_create_params": _posts("input")},
    optional=dict.fromkeys(("expected_answer", "verifier_metadata"), _VALUES),
)


@pytest.mark.parametrize(
    ("read", "bodies"),
    [
        (posts.openrlhf_samples, _posts("query", "prompts", "labels")),
        (posts.slime_sample, _posts("prompt", "response", "label")),
        (posts.nemo_gym_sample, _posts("response", "responses_create_params", "answer") | _GYM),
        (posts.seed_session, _posts("resources_session_id")),
        (posts.aggregate_metrics, _posts("verify_responses")),
    ],
    ids=["openrlhf", "slime", "verify", "seed_session", "aggregate_metrics"],
)
@hypothesis.given(data=st.data())
def test_any_post_is_read_or_refused(read: Any, bodies: Any, data: st.DataObject) -> None:
    body = data.draw(bodies | _VALUES)
    with contextlib.suppress(InvalidRequest):
        found = read(body)
        for sample in found if isinstance(found, list) else [found]:
            assert all(isinstance(reference, str) for reference in getattr(sample, "references", ()))
            assert isinstance(getattr(sample, "question", ""), str)
