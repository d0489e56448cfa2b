"""Wrong arguments: InvalidRequest, at once, with the argument's name."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gradewire import AsyncClient, Client, InvalidRequest, Item, ReferenceEntry, Scorer, SubmitLimits
from gradewire._calls.score import decode_model_list
from gradewire.options import USUAL_METRICS, usual_metrics
from gradewire.testing import StubTransport, echo_scores
from gradewire.transport import LIST_MODELS, Q, R, RpcMethod
from gradewire_proto.v1 import models_pb2

ROW: dict[str, Any] = {"references": ["a"], "prediction": "a"}


_WRONG = [-1, 0, "5", None, float("nan"), float("-inf")]


def stub() -> StubTransport:
    return StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0))


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("value", _WRONG)
def test_constructors_check(kind: type[Client], value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"deadline_s={value!r}"):
        kind(transport=stub(), deadline_s=value)


@pytest.mark.parametrize("name", ["max_pending_items", "max_pending_bytes"])
@pytest.mark.parametrize("value", _WRONG)
def test_limits_of_submit_are_checked(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"{name}={value!r}"):
        SubmitLimits(**{name: value})


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("name", ["address", "token", "tls"])
def test_constructors_check_what_the_connection_is_made_of(kind: type[Client], name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{name} is a bytes: give "):
        kind(**{name: b"x"})  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", [{"workers": -5}, {"deadline_s": -1}])
def test_the_embedded_constructor_checks(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=next(iter(setting))):
        Scorer.embedded(**setting)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda client, rows: client.score(rows, 5), "metrics is a int"),
        (lambda client, rows: client.score(rows, preset=[]), "preset is a list"),
        (lambda client, rows: client.score(rows, model=5), "model is a int"),
        (lambda client, rows: client.score(rows, model="\ud800"), "model="),
        (lambda client, rows: client.score(rows, synthetic={}), "synthetic is a dict"),
        (lambda client, rows: client.score(rows, reference_set=5), "reference_set is a int"),
        (lambda client, rows: client.score(rows, deadline_s="5"), "deadline_s='5'"),
        (lambda client, rows: client.score(rows, progress=5), "progress is a int"),
        (lambda client, rows: client.score_stream(rows, deadline_s="5"), "deadline_s='5'"),
        (lambda client, rows: client.prepare(rows, 5), "metrics is a int"),
        (lambda client, rows: client.prepare(rows, progress=5), "progress is a int"),
        (lambda client, _: client.models(deadline_s="5"), "deadline_s='5'"),
        (lambda client, _: client.flush("5"), "timeout_s='5'"),
    ],
)
def test_calls_name_the_argument(call: Callable[..., object], message: str) -> None:
    with Client(transport=stub()) as client, pytest.raises(InvalidRequest, match=message):
        call(client, [ROW])


@pytest.mark.parametrize("rows", [None, 5, "text", b"text", ROW, Item(**ROW), ReferenceEntry(references=["a"])])
async def test_what_is_no_list_of_rows_is_refused(rows: Any) -> None:
    with Client(transport=stub()) as client:
        for call, name in ((client.score, "items"), (client.score_stream, "items"), (client.prepare, "entries")):
            with pytest.raises(InvalidRequest, match=f"^{name} is (a|one) {type(rows).__name__}"):
                call(rows)
        assert str(client.submit(rows).exception(0)).startswith("items is ")
    async with AsyncClient(transport=stub()) as other:
        for work, name in ((other.score, "items"), (other.prepare, "entries")):
            with pytest.raises(InvalidRequest, match=f"^{name} is "):
                await work(rows)
        with pytest.raises(InvalidRequest, match=r"^items is "):
            other.score_stream(rows)


def test_what_can_be_read_by_position_only_is_a_list_too() -> None:
    class Rows:
        def __getitem__(self, index: int) -> dict[str, Any]:
            return [ROW, ROW][index]

    with Client(transport=stub()) as client:
        assert len(client.score(Rows())) == 2  # type: ignore[arg-type]


def test_a_deadline_far_away_is_one() -> None:
    with Client(transport=stub(), deadline_s=1e300) as client:
        assert len(client.score([ROW])) == 1


WHY = "this encoder has no fit for correctness: fit one with `gradewire calibrate FILE --metric correctness`"
ITEM = {"references": ["a"], "prediction": "a"}


def encoder(name: str, *, is_default: bool = False, without: Mapping[str, str] | None = None) -> models_pb2.Model:
    return models_pb2.Model(name=name, kind="encoder", is_default=is_default, without_metrics=without or {})


def listing(*metrics: str) -> models_pb2.ListModelsResponse:
    return models_pb2.ListModelsResponse(
        metrics=[models_pb2.Metric(name=name) for name in metrics],
        models=[
            encoder("fitted", is_default=True),
            encoder("unfitted", without={"correctness": WHY}),
            encoder("without-layers", without={"bertscore": "no layer"}),
        ],
    )


BOTH = listing("smile", "correctness", "rouge_l")


@pytest.mark.parametrize("model", [None, "fitted", "fitted@12345678", "without-layers", "unknown"])
def test_both_are_scored_where_nothing_stands_in_the_way(model: str | None) -> None:
    assert usual_metrics(decode_model_list(BOTH), model) == ("correctness,smile", "")


@pytest.mark.parametrize("model", ["unfitted", "unfitted@12345678"])
def test_an_encoder_without_a_fit_has_smile_alone_and_a_remark(model: str) -> None:
    metrics, remark = usual_metrics(decode_model_list(BOTH), model)
    assert metrics == "smile"
    assert remark == f"only smile is scored, without correctness: {WHY}"


def test_a_grader_of_the_same_name_is_no_encoder() -> None:
    grader = models_pb2.Model(name="both", kind="grader", is_default=True, without_metrics={"correctness": "other"})
    listed = models_pb2.ListModelsResponse(metrics=BOTH.metrics, models=[grader, *BOTH.models, encoder("both")])
    for model in (None, "both"):
        assert usual_metrics(decode_model_list(listed), model) == ("correctness,smile", "")


def test_an_older_server_has_smile_alone() -> None:
    metrics, remark = usual_metrics(decode_model_list(listing("smile", "sbert")), None)
    assert (metrics, remark.rpartition(": ")[2]) == ("smile", "the server does not have this metric")


def test_a_server_that_does_not_say_what_it_has_is_not_spoken_of() -> None:
    assert usual_metrics(decode_model_list(models_pb2.ListModelsResponse()), None) == ("smile", "")


class Listing(StubTransport):
    """Counts how often it is asked what it has."""

    listed = 0

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        self.listed += method == LIST_MODELS
        return await super().unary(method, request, timeout_s=timeout_s)


def stub_usual(models: models_pb2.ListModelsResponse) -> Listing:
    return Listing(lambda request: echo_scores(request, score=lambda _: 0.5), models=models)


def test_a_client_asks_once_what_there_is() -> None:
    transport = stub_usual(BOTH)
    with Client(transport=transport) as client:
        for _ in range(3):
            assert client.score([ITEM]).labels == ("correctness", "smile")
        assert [list(each.scores) for each in client.score_stream([ITEM])] == [["correctness", "smile"]]
        assert client.submit([ITEM]).result().labels == ("correctness", "smile")
        assert transport.listed == 1
        assert client.score([ITEM], "rouge_l").labels == ("rouge_l",)


def test_what_is_left_out_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gradewire.metrics"), Client(transport=stub_usual(BOTH)) as client:
        for _ in range(2):
            assert client.score([ITEM], model="unfitted").labels == ("smile",)
        assert [list(each.scores) for each in client.score_stream([ITEM], model="unfitted")] == [["smile"]]
        assert client.score([ITEM], model="fitted").labels == ("correctness", "smile")
    assert [record.message for record in caplog.records] == [f"only smile is scored, without correctness: {WHY}"]


def test_who_names_both_gets_both_whatever_the_server_has() -> None:
    transport = stub_usual(BOTH)
    with Client(transport=transport) as client:
        assert client.score([ITEM], USUAL_METRICS, model="unfitted").labels == ("correctness", "smile")
    assert transport.listed == 0


def test_options_of_the_call_hold_for_smile() -> None:
    with Client(transport=stub_usual(BOTH)) as client:
        report = client.score([ITEM], preset="fast", synthetic="none")
    assert report.labels == ("correctness", "smile")
    assert report.provenance["smile"].line.startswith("smile:fast")
