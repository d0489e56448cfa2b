"""Rewards from a real server: values, statuses, policies, and where a scorer can be used."""

import asyncio
import math
import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from tests.client.rewards.holding_transport import HoldingTransport
from tests.client.small_server import Fault, SmallServer

from gradewire import AccessDenied, Client, InvalidRequest, ServerUnreachable, Status
from gradewire._transports.grpc_transport import GrpcTransport
from gradewire.rewards import (
    Answer,
    FailureHandling,
    Gathering,
    RewardFailed,
    RewardFailureRate,
    RewardSample,
    RewardScorer,
    as_references,
    shared_scorer,
)
from gradewire.testing import StubTransport, echo_scores
from gradewire.transport import Endpoint
from gradewire_proto.v1 import scoring_pb2, types_pb2

RIGHT = RewardSample(r"<think>hm</think> \boxed{a cat}", ["a cat"], "What?", "7")
WRONG = RewardSample("a dog", ["a cat"])
UNDECIDED = RewardSample("<think>it could be", ["a cat"])


def late(server: SmallServer, **settings: Any) -> RewardScorer:
    """A scorer whose server is late with dogs."""
    transport = HoldingTransport(GrpcTransport(Endpoint(server.address)), lambda item: "dog" in item.prediction, 30.0)
    return RewardScorer(transport, **settings)


def test_a_client_is_no_server() -> None:
    with Client("127.0.0.1:1") as client, pytest.raises(InvalidRequest, match=r"server is a Client: .*Endpoint\("):
        RewardScorer(client)  # type: ignore[arg-type]


def test_a_reward_is_the_score_with_its_line(small_server: SmallServer) -> None:
    small_server.script.score = lambda item: 0.1 + 0.2 if item.prediction == "a cat" else -0.0
    with RewardScorer(small_server.address, "exact_match") as scorer:
        right, wrong, undecided = scorer.score([RIGHT, WRONG, UNDECIDED])
    assert right.value == 0.1 + 0.2
    assert (wrong.value, wrong.status) == (0.0, Status.OK)
    assert (right.answer, right.line.partition("?")[0]) == ("a cat", "exact_match/1")
    assert (undecided.value, undecided.status) == (None, Status.EMPTY_PREDICTION)
    assert "during the thinking" in undecided.reason


def test_what_is_sent_is_the_answer_with_question_and_id(small_server: SmallServer) -> None:
    transport = HoldingTransport(GrpcTransport(Endpoint(small_server.address)), lambda _: False, 0)
    with RewardScorer(transport) as scorer:
        scorer.score([RIGHT, UNDECIDED])
    (sent,) = transport.items
    assert (sent.prediction, list(sent.references), sent.question, sent.id) == ("a cat", ["a cat"], "What?", "7")


def test_a_completion_that_is_none_is_a_failure_with_a_reason(small_server: SmallServer) -> None:
    samples = [RewardSample(None, ["a cat"]), RIGHT, RewardSample(float("nan"), ["a cat"])]  # type: ignore[arg-type]
    with RewardScorer(small_server.address, "exact_match") as scorer:
        none, right, number = scorer.score(samples)
    assert (none.value, none.status, right.value) == (None, Status.INVALID_INPUT, 1.0)
    assert "the completion is None: the framework passed no output" in none.reason
    assert "the completion is a float: pass a string, or a list of messages" in number.reason
    with (
        RewardScorer(small_server.address, failures=FailureHandling(policy="raise")) as scorer,
        pytest.raises(RewardFailed, match="the completion is None"),
    ):
        scorer.score(samples)


def test_a_call_of_a_tool_is_an_empty_answer_and_a_chat_without_output_a_failure(small_server: SmallServer) -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    chats: list[Any] = [[calls], [{"role": "assistant", "content": None}], []]
    with RewardScorer(small_server.address, "exact_match") as scorer:
        tool, none, nothing = scorer.score([RewardSample(chat, ["a cat"]) for chat in chats])
    assert tool.status is Status.EMPTY_PREDICTION
    assert (none.status, "the last message's content is None" in none.reason) == (Status.INVALID_INPUT, True)
    assert (nothing.status, "a chat without messages" in nothing.reason) == (Status.INVALID_INPUT, True)


@pytest.mark.parametrize(
    ("reference", "sent"),
    [
        ("48/2 = <<48/2=24>>24 clips in May.\n48+24 = 72\n#### 72", "72"),
        (r"We have $x = 5$, so the answer is $\boxed{5}$.", "5"),
        (r"\boxed{Paris}", "Paris"),
        ("Paris", "Paris"),
        ("a C# ### heading", "a C# ### heading"),
    ],
)
def test_of_a_worked_solution_the_final_answer_is_the_reference(
    small_server: SmallServer, reference: str, sent: str
) -> None:
    transport = HoldingTransport(GrpcTransport(Endpoint(small_server.address)), lambda _: False, 0)
    with RewardScorer(transport, "exact_match") as scorer:
        scorer.score_one(RewardSample("x", [reference]))
    assert [list(item.references) for item in transport.items] == [[sent]]


def test_a_reference_that_is_no_text_fails_alone(small_server: SmallServer) -> None:
    with RewardScorer(small_server.address, "exact_match") as scorer:
        bad, right = scorer.score([RewardSample("a", [math.nan]), RIGHT])  # type: ignore[list-item]
    assert (bad.status, right.value) == (Status.INVALID_INPUT, 1.0)


def test_a_long_answer_gets_nothing_and_is_not_sent(small_server: SmallServer) -> None:
    transport = HoldingTransport(GrpcTransport(Endpoint(small_server.address)), lambda _: False, 0)
    small_server.script.score = lambda _: 1.0
    texts = ["x" * 1500, "x" * 1501]
    with RewardScorer(transport, "exact_match", extraction="whole") as scorer:
        short, long = scorer.score([RewardSample(text, ["a cat"]) for text in texts])
        (allowed,) = scorer.score([RewardSample(texts[1], ["y" * 400])])
    assert [len(item.prediction) for item in transport.items] == [1500, 1501]
    assert (short.value, long.value, long.status, allowed.value) == (1.0, 0.0, Status.OK, 1.0)
    assert long.reason == "the answer has 1501 characters, more than 1500 (see max_answer_characters)"
    with RewardScorer(small_server.address, "exact_match", extraction="whole", max_answer_characters=None) as scorer:
        assert scorer.score_one(RewardSample(texts[1] * 9, ["a cat"])).value == 1.0


class _Judged(StubTransport):
    """Scores of .9, UNCERTAIN where the answer says maybe; a judge gives .25."""

    def __init__(self) -> None:
        self.judged: list[str] = []
        super().__init__(self._answer)

    def _answer(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        judges = request.metrics[0].WhichOneof("metric") == "judge_verdict"
        if judges:
            self.judged += [item.prediction for item in request.items]
        reply = echo_scores(request, score=lambda _: 0.25 if judges else 0.9)
        for item, answered in zip(request.items, reply.items, strict=True):
            if "maybe" in item.prediction and not judges:
                answered.results[0].warnings.append(types_pb2.WARNING_UNCERTAIN)
        return reply


@pytest.mark.parametrize(
    ("settings", "values"),
    [({}, [0.9, 0.5]), ({"uncertain": "exclude"}, [0.9, None]), ({"uncertain": "judge"}, [0.9, 0.25])],
)
def test_uncertain_samples_are_limited_left_out_or_judged(settings: Any, values: list[float | None]) -> None:
    transport = _Judged()
    samples = [RewardSample("a cat", ["a cat"]), RewardSample("maybe a cat", ["a cat"])]
    with RewardScorer(transport, "correctness", failures=FailureHandling(**settings), extraction="whole") as scorer:
        rewards = scorer.score(samples)
    assert [reward.value for reward in rewards] == values
    assert transport.judged == (["maybe a cat"] if settings.get("uncertain") == "judge" else [])
    assert rewards[1].to_info()["gradewire_uncertain"] == str(settings.get("uncertain") != "judge").lower()


async def test_answers_that_were_extracted_before_are_scored_as_they_are(small_server: SmallServer) -> None:
    small_server.script.score = lambda item: float(item.prediction == "a cat")
    async with RewardScorer(small_server.address, "exact_match", extraction="boxed") as scorer:
        answers = [Answer("a cat", "whole"), Answer("", "nothing", "it was not read")]
        right, empty = await scorer.ascore([WRONG, RIGHT], answers=answers)
        assert (right.value, right.answer) == (1.0, "a cat")
        assert (empty.status, empty.reason) == (Status.EMPTY_PREDICTION, "it was not read")
        with pytest.raises(InvalidRequest, match="2 answers for 1 samples"):
            await scorer.ascore([RIGHT], answers=answers)


def test_the_extra_info_has_the_same_keys_for_every_reward(small_server: SmallServer) -> None:
    with RewardScorer(small_server.address) as scorer:
        infos = [reward.to_info() for reward in scorer.score([RIGHT, UNDECIDED])]
    assert infos[0].keys() == infos[1].keys()
    assert all(isinstance(value, str) for info in infos for value in info.values())
    assert infos[1]["gradewire_status"] == "EMPTY_PREDICTION"


async def test_a_late_sample_takes_no_neighbour_along(small_server: SmallServer) -> None:
    async with late(small_server, deadline_s=1) as scorer:
        rewards = await scorer.ascore([RIGHT, WRONG] * 3)
    assert [reward.value for reward in rewards] == [1.0, None] * 3
    assert {reward.status for reward in rewards[1::2]} == {Status.TIMEOUT}
    assert "deadline_s=" in rewards[1].reason


async def test_single_calls_are_gathered_and_late_ones_do_not_hold_up_the_next(small_server: SmallServer) -> None:
    async with late(small_server, deadline_s=2) as scorer:
        rewards = await asyncio.gather(*[scorer.ascore_one([RIGHT, WRONG][index % 4 == 3]) for index in range(100)])
        assert scorer._settings.carrier.streams == 1  # type: ignore[union-attr]  # the test's transport
        assert (await scorer.ascore_one(RIGHT)).value == 1.0
    assert sum(reward.value == 1.0 for reward in rewards) == 75


async def test_groups_travel_whole(small_server: SmallServer) -> None:
    transport = HoldingTransport(GrpcTransport(Endpoint(small_server.address)), lambda _: False, 0)
    async with RewardScorer(transport, gathering=Gathering(max_batch=10)) as scorer:
        await asyncio.gather(*[scorer.ascore([RIGHT] * 6) for _ in range(3)])
    assert (transport.streams, len(transport.items)) == (3, 18)


def test_threads_share_one_connection(small_server: SmallServer) -> None:
    with RewardScorer(small_server.address) as scorer, ThreadPoolExecutor(8) as threads:
        rewards = list(threads.map(scorer.score_one, [RIGHT, WRONG] * 20))
    assert [reward.value for reward in rewards] == [1.0, 0.0] * 20


def test_each_event_loop_has_its_own_and_dead_ones_are_let_go(small_server: SmallServer) -> None:
    scorer = RewardScorer(small_server.address)

    async def once() -> float | None:
        value = (await scorer.ascore_one(RIGHT)).value
        await scorer.aclose()
        return value

    assert [asyncio.run(once()) for _ in range(3)] == [1.0] * 3
    assert not scorer._gatherers


def test_failures_are_left_out_when_no_server_answers() -> None:
    with RewardScorer("127.0.0.1:1", deadline_s=0.3) as scorer:
        rewards = scorer.score([RIGHT, UNDECIDED])
    assert [(reward.value, reward.status) for reward in rewards] == [
        (None, Status.UNAVAILABLE),
        (None, Status.EMPTY_PREDICTION),
    ]
    assert "no gradewire server answers at 127.0.0.1:1" in rewards[0].reason


def test_a_wrong_token_is_raised_whatever_the_policy(small_server: SmallServer) -> None:
    small_server.script.faults = [Fault(grpc.StatusCode.UNAUTHENTICATED, "no such token")]
    with RewardScorer(small_server.address) as scorer, pytest.raises(AccessDenied, match="no such token"):
        scorer.score([RIGHT])


def test_an_address_that_cannot_be_right_is_raised() -> None:
    with RewardScorer("no.such.host.invalid:1", deadline_s=5) as scorer, pytest.raises(ServerUnreachable):
        scorer.score([RIGHT])


async def test_raise_raises(small_server: SmallServer) -> None:
    async with late(small_server, deadline_s=0.5, failures=FailureHandling(policy="raise")) as scorer:
        assert (await scorer.ascore_one(RIGHT)).value == 1.0
        with pytest.raises(RewardFailed, match=r"2 TIMEOUT, 1 OK.*deadline_s="):
            await scorer.ascore([RIGHT, WRONG, WRONG])


def test_hold_waits_until_the_server_is_back(small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    threading.Timer(1.0, small_server.script.hold.set).start()
    handling = FailureHandling(policy="hold", hold_s=30)
    small_server.script.faults = [Fault(grpc.StatusCode.UNAVAILABLE, "restarts")] * 3
    with RewardScorer(small_server.address, failures=handling, deadline_s=0.4) as scorer:
        assert scorer.score_one(RIGHT).value == 1.0


def test_hold_ends(small_server: SmallServer) -> None:
    with (
        late(small_server, deadline_s=0.2, failures=FailureHandling(policy="hold", hold_s=1)) as scorer,
        pytest.raises(RewardFailed),
    ):
        scorer.score([WRONG])


def test_a_value_that_was_asked_for_is_given(small_server: SmallServer) -> None:
    handling = FailureHandling(policy="value", value=-1.0, empty_value=-2.0)
    with late(small_server, deadline_s=0.5, failures=handling) as scorer:
        assert [reward.value for reward in scorer.score([RIGHT, WRONG, UNDECIDED])] == [1.0, -1.0, -2.0]


def test_too_many_failures_stop_the_run(small_server: SmallServer) -> None:
    handling = FailureHandling(max_failure_rate=0.25)
    with late(small_server, deadline_s=0.5, failures=handling) as scorer:
        scorer.score([RIGHT, RIGHT, RIGHT, WRONG] * 10)
        with pytest.raises(RewardFailureRate, match="TIMEOUT"):
            scorer.score([WRONG] * 10)


def _child(scorer: RewardScorer, results: "multiprocessing.Queue[float | None]") -> None:
    results.put(scorer.score_one(RIGHT).value)
    scorer.close()


def test_workers_get_it_pickled(small_server: SmallServer) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with RewardScorer(small_server.address) as scorer:
        assert scorer.score_one(RIGHT).value == 1.0
        worker = context.Process(target=_child, args=(scorer, results))
        worker.start()
        assert results.get(timeout=60) == 1.0
        worker.join(10)
        assert scorer.score_one(WRONG).value == 0.0


def test_it_is_pickled_as_its_settings(small_server: SmallServer) -> None:
    with RewardScorer(small_server.address, "exact_match", deadline_s=3) as scorer:
        scorer.score_one(RIGHT)
        with pickle.loads(pickle.dumps(scorer)) as copied:  # noqa: S301 - the test's own
            assert (copied.score_one(RIGHT).value, copied.deadline_s) == (1.0, 3)


def test_a_verdict_can_be_the_reward_where_the_metric_gives_one(small_server: SmallServer) -> None:
    with (
        RewardScorer(small_server.address, reads="correct") as scorer,
        pytest.raises(InvalidRequest, match="gives no verdict"),
    ):
        scorer.score([RIGHT])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"metric": "smile,no_such"}, "no_such"),
        ({"failures": FailureHandling(judge_metric="nobody")}, "nobody"),
        ({"max_answer_characters": 0}, "max_answer_characters=0"),
        ({"metric": "no_such"}, "no_such"),
        ({"metric": "cider"}, "cider"),
        ({"reads": "verdict"}, "reads='verdict'"),
        ({"extraction": "box"}, "extraction='box'"),
        ({"deadline_s": 0}, "deadline_s=0"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        RewardScorer(**arguments)


def test_an_option_that_there_is_not_is_told_as_python_does() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'priority'"):
        RewardScorer(priority="bulk")  # type: ignore[call-arg]  # the test's point


def test_settings_of_a_process_share_a_scorer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_SERVER", "127.0.0.1:2")
    first = shared_scorer({"policy": "value", "value": 0.5}, deadline_s=3.0)
    assert first is shared_scorer({"value": 0.5, "policy": "value"}, deadline_s=3.0)
    assert first.failures.value == 0.5
    assert first._settings.carrier == Endpoint("127.0.0.1:2")
    with pytest.raises(InvalidRequest, match="colour"):
        shared_scorer({"colour": "red"})


def test_settings_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_REWARD_SETTINGS", '{"policy": "value", "value": -1, "deadline_s": 7}')
    scorer = shared_scorer(deadline_s=90.0)
    assert (scorer.failures.value, scorer.deadline_s) == (-1, 7)
    assert shared_scorer({"deadline_s": 8}).deadline_s == 8


@pytest.mark.parametrize(("written", "named"), [("{policy", "is not JSON"), ("[1]", "is a list: give an object")])
def test_settings_that_cannot_be_read_are_told(monkeypatch: pytest.MonkeyPatch, written: str, named: str) -> None:
    monkeypatch.setenv("GRADEWIRE_REWARD_SETTINGS", written)
    with pytest.raises(InvalidRequest, match=f"GRADEWIRE_REWARD_SETTINGS {named}"):
        shared_scorer()


@pytest.mark.parametrize(
    ("value", "references"),
    [
        ("a cat", ("a cat",)),
        (4, ("4",)),
        (["a", 2, None], ("a", "2")),
        ({"target": ["x"], "style": "rule"}, ("x",)),
        ({"style": "rule"}, ()),
        (math.nan, ()),
        (True, ()),
        ([1.5, math.nan, "x"], ("1.5", "x")),
        ([["x", "y"], {"answer": 2}, {"style": "rule"}], ("x", "y", "2")),
        (None, ()),
    ],
)
def test_references_are_read_from_what_data_sets_hold(value: object, references: tuple[str, ...]) -> None:
    assert as_references(value) == references


async def test_calls_wait_where_there_is_no_room_and_all_are_answered(small_server: SmallServer) -> None:
    tight = Gathering(window_s=0, max_batch=2, max_streams=1, max_waiting=1)
    async with RewardScorer(small_server.address, gathering=tight) as scorer:
        rewards = await asyncio.gather(*[scorer.ascore([RIGHT] * 3) for _ in range(20)])
    assert [reward.value for group in rewards for reward in group] == [1.0] * 60


async def test_a_caller_that_goes_away_ends_its_stream_and_no_other(small_server: SmallServer) -> None:
    async with late(small_server, deadline_s=60) as scorer:
        going = asyncio.create_task(scorer.ascore_one(WRONG))
        staying = asyncio.create_task(scorer.ascore([RIGHT, RIGHT]))
        assert [reward.value for reward in await staying] == [1.0, 1.0]
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        ((gatherer,),) = scorer._gatherers.values()
        for _ in range(100):
            if not gatherer._streams:
                break
            await asyncio.sleep(0.01)
        assert not gatherer._streams
        assert (await scorer.ascore_one(RIGHT)).value == 1.0


@pytest.mark.parametrize("wrong", [{"window_s": -1}, {"max_batch": 0}, {"max_streams": 0.5}, {"max_waiting": "many"}])
def test_wrong_bounds_of_gathering_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=next(iter(wrong))):
        Gathering(**wrong)


async def test_streams_take_batches_one_after_the_other_and_no_sample_is_lost(small_server: SmallServer) -> None:
    # One batch is answered while the next is being sent on the same stream.
    samples = iter([RIGHT, WRONG] * 400)
    rewards: list[float | None] = []
    async with RewardScorer(small_server.address, deadline_s=20, gathering=Gathering(window_s=0)) as scorer:

        async def work() -> None:
            rewards.extend([(await scorer.ascore_one(sample)).value for sample in samples])

        await asyncio.gather(*(work() for _ in range(16)))
    assert sorted(rewards, key=str) == [0.0] * 400 + [1.0] * 400
    assert small_server.script.streams < 40, "800 samples, in batches of 16 at the most"
