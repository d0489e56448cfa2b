"""Metric specs become scorer requests: models resolved, failures where they belong."""

import hashlib
import math
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.hash_engine import HashEngine, ListedModels
from tests.support.servers.handlers import planner_over
from tests.support.servers.wire import EXACT, SBERT, SMILE

from gradewire_proto.v1 import references_pb2, types_pb2
from gradewire_proto.wire_rules import MAX_SPEC_BYTES, PARAMETER_BYTES, byte_count
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.metric import ParameterError
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.errors import InvalidRequestError, NothingLoadedError
from gradewire_server.requests.plan import Planner, check_strings
from gradewire_server.scoring import MetricRequest

DIGEST = hashlib.sha256(b"hash").hexdigest()


def smile(**fields: object) -> types_pb2.MetricSpec:
    return types_pb2.MetricSpec(smile=types_pb2.SmileParameters(**fields))  # type: ignore[arg-type]


def planner() -> Planner:
    return planner_over(HashEngine(models=("hash", "other")), REGISTRY)


def failure_of(spec: types_pb2.MetricSpec) -> Failure:
    plan = planner().plan([spec, EXACT], "metrics")[0]
    assert isinstance(plan.request, Failure)
    return plan.request


def test_provenance_names_everything_and_can_be_sent_back() -> None:
    plan = planner().plan([SMILE], "metrics")[0]
    assert isinstance(plan.request, MetricRequest)
    assert plan.request.parameters.model == f"hash@{DIGEST}"
    provenance = plan.provenance
    assert (provenance.name, provenance.version, provenance.model, provenance.model_digest) == (
        "smile",
        1,
        "hash",
        DIGEST,
    )
    assert provenance.line == f"smile:v1/1?model=hash@{DIGEST[:12]}&sentence_weight=0.3&synthetic=none"
    again = planner().plan([provenance.metric], "metrics")[0]
    assert again.provenance == provenance


def test_provenance_names_the_reference_set_that_prepared_answers_come_from() -> None:
    plans = planner().plan([smile(synthetic=types_pb2.SYNTHETIC_MODE_PREPARED), SMILE, EXACT], "metrics")
    prepared, *others = (plan.provenance_in("set/1, é") for plan in plans)
    assert prepared.reference_set == "set/1, é"
    assert prepared.line == (
        f"smile:v1/1?model=hash@{DIGEST[:12]}&reference_set=set%2F1%2C%20%C3%A9&sentence_weight=0.3&synthetic=prepared"
    )
    assert prepared.metric == plans[0].provenance.metric
    assert prepared.model_digest == DIGEST
    assert [other.reference_set for other in others] == ["", ""]
    assert others == [plan.provenance for plan in plans[1:]]
    # The plan itself is remembered for calls with other sets.
    assert plans[0].provenance_in("other").line != prepared.line
    assert "reference_set" not in plans[0].provenance_in("").line


@pytest.mark.parametrize("model", ["", "hash", f"hash@{DIGEST[:8]}", f"hash@{DIGEST.upper()}", f"@{DIGEST[:8]}"])
def test_a_model_is_found_by_name_and_digest(model: str) -> None:
    plan = planner().plan([smile(model=model)], "metrics")[0]
    assert plan.provenance.model == "hash"
    assert plan.provenance.metric.smile.model == "hash"


def test_another_digest_is_no_match_and_both_are_named() -> None:
    failure = failure_of(smile(model="hash@00000000"))
    assert failure.status is Status.MODEL_UNAVAILABLE
    assert DIGEST in failure.message
    assert "00000000" in failure.message


@pytest.mark.parametrize("model", ["hash@1234567", "hash@xyzxyzxy", "hash@", "a@b@c"])
def test_what_is_no_digest_is_a_bad_parameter(model: str) -> None:
    failure = failure_of(smile(model=model))
    assert failure.status is Status.INVALID_PARAMETER
    assert "metrics[0].smile.model" in failure.message


def test_a_bad_value_fails_its_metric_only() -> None:
    bad, good = planner().plan([smile(sentence_weight=math.nan), EXACT], "metrics")
    assert isinstance(bad.request, Failure)
    assert bad.request.status is Status.INVALID_PARAMETER
    assert bad.request.message.startswith("metrics[0].smile.sentence_weight")
    assert isinstance(good.request, MetricRequest)


def test_all_bad_values_are_no_error_of_the_call() -> None:
    (plan,) = planner().plan([smile(sentence_weight=2)], "metrics")
    assert isinstance(plan.request, Failure)


def test_a_missing_model_fails_the_call_only_when_nothing_else_is_asked_for() -> None:
    failure = failure_of(smile(model="absent"))
    assert failure.status is Status.MODEL_UNAVAILABLE
    with pytest.raises(NothingLoadedError, match=r"absent.*Available models: hash, other"):
        planner().plan([smile(model="absent"), smile(sentence_weight=2)], "metrics")


@pytest.mark.parametrize("model", ["", "hash"])
@pytest.mark.parametrize(
    ("state", "words"), [("missing", "is not built"), ("broken", "is broken and must be replaced")]
)
def test_how_to_get_a_model_is_said_without_the_servers_paths(model: str, state: str, words: str) -> None:
    def unusable() -> tuple[ModelStatus, ...]:
        return tuple(
            replace(each, state=state, how_to_get="gradewire models build hash")
            for each in HashEngine().encoder_statuses()
        )

    class Unusable(ListedModels):
        def status(self, name: str) -> Failure:
            return Failure(Status.MODEL_UNAVAILABLE, f"{name} is not in /secret/place")

    with pytest.raises(NothingLoadedError) as caught:
        Planner(replace(HashEngine().ports, encoders=Unusable(unusable, "")), REGISTRY, PACKAGE_PROMPTS).plan(
            [smile(model=model)], "metrics"
        )
    # Nothing follows the command, so that users can copy it.
    assert str(caught.value) == f"metrics[0].smile.model: Model hash {words}. Run: gradewire models build hash"
    assert "secret" not in str(caught.value)


def test_unset_metric_is_named() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        planner().plan([SMILE, types_pb2.MetricSpec()], "metrics")
    assert caught.value.field == "metrics[1]"
    assert f"use one of {', '.join(REGISTRY)}" in str(caught.value)


def test_a_metric_of_a_later_version_is_named() -> None:
    later = types_pb2.MetricSpec.FromString(bytes([0x80 | (19 & 15) << 3 | 2, 19 >> 4, 0]))  # field 19
    with pytest.raises(InvalidRequestError, match="an unknown metric"):
        planner().plan([later], "metrics")


def test_an_unknown_number_is_named_even_when_the_model_is_missing() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        planner().plan([EXACT, smile(preset=77, model="absent")], "metrics")
    assert caught.value.field == "metrics[1].smile.preset"


def test_the_same_metric_twice_keeps_both() -> None:
    plans = planner().plan([smile(sentence_weight=0.1), smile(sentence_weight=0.9), SBERT], "metrics")
    assert ["0.1" in plans[0].provenance.line, "0.9" in plans[1].provenance.line] == [True, True]


def test_what_is_remembered_follows_the_models() -> None:
    engine = HashEngine()
    planning = planner_over(engine, REGISTRY)
    before = planning.plan([SMILE], "metrics")[0]
    assert planning.plan([SMILE], "metrics")[0] is before
    engine._names = ("new",)
    after = planning.plan([SMILE], "metrics")[0]
    assert after.provenance.model == "new"


SPEC = types_pb2.MetricSpec.DESCRIPTOR
UNKNOWN = b"\xfa\x7f\xff\x9f\x06" + b"x" * ((6 << 14) + 0xFFF)
"""A field that no message of ours has, of 100 kB."""


def strings() -> list[tuple[str, str]]:
    """Metric and field of all strings among the parameters of metrics."""
    return [
        (metric.name, field.name)
        for metric in SPEC.oneofs_by_name["metric"].fields
        if metric.message_type is not None and metric.name in REGISTRY
        for field in metric.message_type.fields
        if field.type == FieldDescriptor.TYPE_STRING
    ]


def spec(metric: str, field: str, text: str) -> types_pb2.MetricSpec:
    made = types_pb2.MetricSpec()
    setattr(getattr(made, metric), field, text)
    return made


def test_every_metric_has_its_bounds() -> None:
    for metric in SPEC.oneofs_by_name["metric"].fields:
        assert metric.message_type is not None
        check_strings(getattr(types_pb2.MetricSpec(), metric.name))
    check_strings(references_pb2.SyntheticGeneration())


@pytest.mark.parametrize(("metric", "field"), strings())
def test_a_string_beyond_its_bound_is_refused_before_it_is_looked_up(metric: str, field: str) -> None:
    bound = PARAMETER_BYTES[field]
    check_strings(getattr(spec(metric, field, "é" * (bound // 2)), metric))
    long = spec(metric, field, "é" * (bound // 2) + "x")
    plan, _ = planner_over(HashEngine(), REGISTRY).plan([long, EXACT], "metrics")
    assert plan.request == Failure(
        Status.INVALID_PARAMETER,
        f"metrics[0].{metric}.{field}: has {bound + 1} bytes, but at most {bound} are allowed",
    )
    assert plan.provenance.ByteSize() < 100
    assert plan.provenance.metric.WhichOneof("metric") == plan.provenance.name == metric


@given(st.sampled_from(["model", "prompt"]), st.text(max_size=300))
def test_a_string_is_refused_exactly_when_its_bytes_exceed_the_bound(field: str, text: str) -> None:
    message: Any = types_pb2.LaveParameters(**{field: text})
    if byte_count(text) <= PARAMETER_BYTES[field]:
        check_strings(message)
    else:
        with pytest.raises(ParameterError, match=f"{field}: has {len(text.encode())} bytes"):
            check_strings(message)


def test_fields_that_nobody_knows_do_not_come_back() -> None:
    parameters = types_pb2.SmileParameters.FromString(UNKNOWN[:2] + b"\x03abc")
    parameters.sentence_weight = 2
    (plan,) = planner_over(HashEngine(), REGISTRY).plan([types_pb2.MetricSpec(smile=parameters)], "metrics")
    assert isinstance(plan.request, Failure)
    assert plan.provenance.metric == types_pb2.MetricSpec(smile=types_pb2.SmileParameters(sentence_weight=2))
    assert b"abc" not in plan.provenance.SerializeToString()


@pytest.mark.parametrize("model", ["", "absent"])
def test_a_metric_too_large_as_a_whole_is_an_error_of_the_call(model: str) -> None:
    message = types_pb2.MetricSpec(smile=types_pb2.SmileParameters.FromString(UNKNOWN))
    message.smile.model = model
    with pytest.raises(
        InvalidRequestError, match=rf"has {message.ByteSize()} bytes, but at most {MAX_SPEC_BYTES}"
    ) as caught:
        planner_over(HashEngine(), REGISTRY).plan([EXACT, message], "metrics")
    assert caught.value.field == "metrics[1].smile"
