"""A metric's dataclass and its message in types.proto say the same."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from tests.client.metrics.metric_values import METRICS

import gradewire
from gradewire import Bertscore, Bleu, Cider, InvalidRequest, Metric, RougeL, Smile, VqaAccuracy, format_metric_line
from gradewire.metrics import KNOWN_TYPES, PRESETS, SYNTHETIC_MODES, metric_of
from gradewire.metrics.base import ParameterKind, wire_parameters
from gradewire.metrics.choice import parse_metric_line
from gradewire_proto.v1 import types_pb2

PYTHON = {ParameterKind.FLAG: bool, ParameterKind.COUNT: int, ParameterKind.NUMBER: float, ParameterKind.TEXT: str}


def test_every_metric_of_the_wire_has_a_type_and_the_reverse() -> None:
    on_wire = {field.name for field in types_pb2.MetricSpec.DESCRIPTOR.oneofs_by_name["metric"].fields}
    assert set(KNOWN_TYPES) == on_wire
    assert all(getattr(gradewire, kind.__name__) is kind for kind in KNOWN_TYPES.values())


@pytest.mark.parametrize("name", KNOWN_TYPES)
def test_fields_are_those_of_the_message_with_the_same_values(name: str) -> None:
    kind = KNOWN_TYPES[name]
    parameters = wire_parameters(name)
    reads_sets = any("prepared" in parameter.choices for parameter in parameters.values())
    beside = {"version", "reference_set"} if reads_sets else {"version"}
    assert {field.name for field in fields(kind)} - beside == set(parameters)
    assert reads_sets == ("reference_set" in {field.name for field in fields(kind)})
    hints = get_type_hints(kind)
    for parameter in parameters.values():
        taken, nothing = get_args(hints[parameter.name])
        assert nothing is type(None), parameter.name
        if parameter.kind is ParameterKind.CHOICE:
            # A choice between literals and None is one flat union of values.
            assert set(_literals(hints[parameter.name])) == set(parameter.choices), parameter.name
        else:
            assert taken is PYTHON[parameter.kind], parameter.name


def _literals(hint: Any) -> list[str]:
    return [value for part in get_args(hint) if get_origin(part) is Literal for value in get_args(part)]


def test_what_the_command_offers_is_what_the_wire_has() -> None:
    smile = wire_parameters("smile")
    assert (set(PRESETS), set(SYNTHETIC_MODES)) == (set(smile["preset"].choices), set(smile["synthetic"].choices))


@given(METRICS)
def test_what_is_written_on_the_wire_is_read_back(metric: Metric) -> None:
    spec = metric.to_spec()
    assert spec.WhichOneof("metric") == metric.name
    read = metric_of(types_pb2.MetricSpec.FromString(spec.SerializeToString()), version=metric.version)
    assert read.to_spec() == spec
    for name in wire_parameters(metric.name):
        said, found = getattr(metric, name), getattr(read, name)
        # The wire cannot tell false and an empty text from nothing.
        assert found in {said, said or None}, name


@pytest.mark.parametrize("write", [lambda: Cider(corpus="none"), lambda: parse_metric_line("cider?corpus=none")])  # type: ignore[arg-type]
def test_cider_always_has_a_corpus(write: Callable[[], Metric]) -> None:
    with pytest.raises(InvalidRequest, match=r"cider has no corpus 'none': use one of request, prepared$"):
        write()
    assert "none" in wire_parameters("bertscore")["idf"].choices


def test_a_message_by_hand() -> None:
    metric = Bertscore(measure="recall", layer=5, idf="prepared", rescale=True, threshold=0.0, reference_set="s")
    assert metric.to_spec() == types_pb2.MetricSpec(
        bertscore=types_pb2.BertscoreParameters(
            measure=types_pb2.MEASURE_RECALL, layer=5, idf=types_pb2.CORPUS_PREPARED, rescale=True, threshold=0.0
        )
    )
    assert Bleu().to_spec().WhichOneof("metric") == "bleu"
    assert not Bleu().to_spec().bleu.HasField("max_ngram")


def test_a_choice_of_a_later_version_is_refused_where_a_message_is_read() -> None:
    spec = types_pb2.MetricSpec(cider=types_pb2.CiderParameters(corpus=77))  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="cider: corpus is 77"):
        metric_of(spec)
    with pytest.raises(InvalidRequest, match="no known metric: use one of correctness, smile"):
        metric_of(types_pb2.MetricSpec())


def test_numbers_have_one_form() -> None:
    assert format_metric_line(Smile(sentence_weight=1)) == "smile?sentence_weight=1.0"
    assert format_metric_line(Bleu(max_ngram=np.int64(2))) == "bleu?max_ngram=2"  # type: ignore[arg-type]
    assert format_metric_line(VqaAccuracy(verdict_cut=np.float64(0.5))) == "vqa_accuracy?verdict_cut=0.5"


@pytest.mark.parametrize(
    ("kind", "name", "value", "part"),
    [
        (Smile, "preset", "quick", "smile has no preset 'quick': use one of v1, fast"),
        (Smile, "preset", ["v1"], "smile has no preset ['v1']"),
        (RougeL, "measure", "F1", "rouge_l has no measure 'F1': use one of f1, precision, recall"),
        (RougeL, "stem", 1, "rouge_l: stem must be true or false, not 1"),
        (RougeL, "stem", "true", "rouge_l: stem must be true or false, not 'true'"),
        (Bleu, "max_ngram", 2.5, "bleu: max_ngram must be a whole number, 0 or more, not 2.5"),
        (Bleu, "max_ngram", -1, "bleu: max_ngram must be a whole number, 0 or more, not -1"),
        (Bleu, "max_ngram", True, "not True"),
        (Bleu, "max_ngram", 2**32, "bleu: max_ngram"),
        (Smile, "sentence_weight", "0.3", "smile: sentence_weight must be a number, not '0.3'"),
        (Smile, "sentence_weight", True, "smile: sentence_weight must be a number, not True"),
        (Smile, "model", 7, "smile: model must be a string, not 7"),
        (Cider, "corpus", "file", "cider has no corpus 'file': use one of request, prepared"),
    ],
)
def test_values_of_another_type_name_metric_parameter_and_what_is_allowed(
    kind: type[Metric], name: str, value: object, part: str
) -> None:
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(InvalidRequest) as caught:
        kind(**arguments)
    assert part in str(caught.value)


def test_a_metric_can_be_a_key() -> None:
    assert len({Bleu(), Bleu(max_ngram=4), Bleu(max_ngram=4), Cider()}) == 3
