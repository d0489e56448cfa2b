"""Messages that wait for a quota: one tenant has its share, and all of them theirs."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.requests.admission.slowed import SlowedMessages
from gradewire_server.requests.errors import OverloadedError


def test_one_tenant_has_a_quarter_and_leaves_the_rest_to_others() -> None:
    slowed = SlowedMessages(400)
    with slowed.hold("a", 100):
        with pytest.raises(OverloadedError, match="wait for the quota") as caught, slowed.hold("a", 1):
            pass
        assert caught.value.retry_after_s > 0
        with slowed.hold("b", 100):
            assert slowed.taken == 200
        assert slowed.taken == 100
    with slowed.hold("a", 5000):  # larger than all: alone
        pass
    assert slowed.taken == 0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 300))))
def test_what_is_held_is_bounded_and_all_comes_back(messages: list[tuple[str, int]]) -> None:
    slowed = SlowedMessages(1000)
    with contextlib.ExitStack() as stack:
        for tenant, size in messages:
            with contextlib.suppress(OverloadedError):
                stack.enter_context(slowed.hold(tenant, size))
            assert slowed.taken <= 1000
    assert slowed.taken == 0
    assert not slowed._by_tenant
