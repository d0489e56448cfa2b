"""Messages between server processes and the judge host come back as they were, floats bit by bit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.judges.test_verdict_cache import ANSWER, NEED, TEXT
from tests.support.examples import example_count
from tests.support.judges.scripted import judge_status

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply
from gradewire_server.judges.shared import (
    ASK_REPLY,
    ASK_REQUEST,
    OPEN_REPLY,
    STATE,
    HostRequest,
    HostState,
    Stopping,
)

_SECONDS = st.floats(0, 1e9)
_FAILURE = st.builds(Failure, st.sampled_from(Status), TEXT, st.none() | _SECONDS)
_ANSWERED = st.builds(
    JudgeReply,
    ANSWER | _FAILURE,
    st.sampled_from(AnswerSource),
    st.builds(Timing, _SECONDS, _SECONDS, _SECONDS, _SECONDS),
)


@given(NEED, st.none() | _SECONDS, TEXT)
@settings(max_examples=example_count(30))
def test_a_question_comes_back(need: Choose | Generate, deadline_s: float | None, caller: str) -> None:
    request = HostRequest(need, deadline_s, caller)
    again = ASK_REQUEST.validate_json(ASK_REQUEST.dump_json(request))
    assert again == request
    assert type(again.need) is type(need)


@given(_ANSWERED)
@settings(max_examples=example_count(30))
def test_an_answer_comes_back(answered: JudgeReply) -> None:
    assert ASK_REPLY.validate_json(ASK_REPLY.dump_json(answered)) == answered


def test_answers_of_each_kind_stay_apart() -> None:
    for answer in (
        Choice((0.1, 0.9), None, None),
        Generated("", complete=True, prompt_tokens=None, generated_tokens=None),
        Failure(Status.UNAVAILABLE, "later", 0.5),
        Failure(Status.UNPARSABLE, "odd", None, 100, None),
    ):
        again = ASK_REPLY.validate_json(ASK_REPLY.dump_json(JudgeReply(answer, AnswerSource.COMPUTED, Timing())))
        assert isinstance(again, JudgeReply)
        assert type(again.answer) is type(answer)
        assert again.answer == answer


def test_a_host_that_stops_says_so_whatever_it_was_asked() -> None:
    assert ASK_REPLY.validate_json(ASK_REPLY.dump_json(Stopping.STOPPING)) is Stopping.STOPPING
    assert OPEN_REPLY.validate_json(OPEN_REPLY.dump_json(Stopping.STOPPING)) is Stopping.STOPPING


def test_statuses_come_back() -> None:
    status = judge_status("scripted", digest="0" * 64)
    assert OPEN_REPLY.validate_json(OPEN_REPLY.dump_json(status)) == status
    state = HostState({"scripted": status}, {"other": "it is gone"})
    assert STATE.validate_json(STATE.dump_json(state)) == state


def test_what_is_no_message_is_an_error() -> None:
    with pytest.raises(ValueError, match="validation error"):
        ASK_REQUEST.validate_json(b'{"need": {"model": ""}}')
    for data in (b"null", b"{}", b'"away"'):
        with pytest.raises(ValueError, match="validation error"):
            ASK_REPLY.validate_json(data)
        with pytest.raises(ValueError, match="validation error"):
            OPEN_REPLY.validate_json(data)
