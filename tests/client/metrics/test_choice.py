"""Metrics as callers write them: lines, labels, prompts."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.metrics.metric_values import METRICS

from gradewire import (
    Bertscore,
    Cider,
    Correctness,
    ExactMatch,
    InvalidRequest,
    Metric,
    RougeL,
    Sbert,
    Smile,
    format_metric_line,
    parse_metric_line,
)
from gradewire.metrics.choice import MetricDefaults, choose_metrics, parse_line
from gradewire_proto.v1 import types_pb2


@given(METRICS)
def test_line_round_trip(metric: Metric) -> None:
    line = format_metric_line(metric)
    assert parse_line(line) == metric
    assert "," not in line
    assert format_metric_line(parse_line(line)) == line


@given(st.text(max_size=60))
def test_any_text_is_a_metric_or_a_clear_refusal(text: str) -> None:
    try:
        metric = parse_metric_line(text)
    except InvalidRequest:
        pass  # any other exception fails the test
    else:
        assert parse_metric_line(format_metric_line(metric)) == metric or "nan" in text.lower()


def test_line_as_the_server_writes_it() -> None:
    metric = parse_metric_line("smile:v1/1?model=all-MiniLM-L6-v2@53aa51172d14&sentence_weight=0.3&synthetic=none")
    assert metric == Smile(
        preset="v1", synthetic="none", sentence_weight=0.3, model="all-MiniLM-L6-v2@53aa51172d14", version=1
    )


def test_line_with_a_reference_set() -> None:
    metric = parse_metric_line("smile:v1/1?reference_set=set%2F1%2C%20%C3%A9&sentence_weight=0.3&synthetic=prepared")
    assert metric == Smile(preset="v1", synthetic="prepared", reference_set="set/1, é", sentence_weight=0.3, version=1)


def test_lines_of_metrics_with_choices_flags_and_counts() -> None:
    line = (
        "bertscore/1?idf=prepared&layer=5&measure=f1&model=m@0a1b2c3d4e5f&reference_set=a%20b&rescale=true"
        "&threshold=0.5&with_question=false"
    )
    metric = parse_metric_line(line)
    assert metric == Bertscore(
        version=1,
        idf="prepared",
        layer=5,
        measure="f1",
        model="m@0a1b2c3d4e5f",
        reference_set="a b",
        rescale=True,
        threshold=0.5,
        with_question=False,
    )
    assert format_metric_line(metric) == line
    assert parse_metric_line("rouge_l?stem=true") == RougeL(stem=True)
    assert format_metric_line(Cider(corpus="request")) == "cider?corpus=request"


def test_a_line_with_a_former_name_is_that_metric_and_is_written_with_the_name_of_now() -> None:
    metric = parse_metric_line("calibrated/2?confidence=0.95")
    assert metric == Correctness(version=2, confidence=0.95)
    assert format_metric_line(metric) == "correctness/2?confidence=0.95"


def test_nan_is_left_to_the_server() -> None:
    metric = parse_metric_line("smile?sentence_weight=nan")
    assert isinstance(metric, Smile)
    assert metric.sentence_weight is not None
    assert math.isnan(metric.sentence_weight)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("", "is not a metric"),
        ("lavee", "judge_verdict, auto. Did you mean lave?"),
        ("cosine?model=a", "'cosine?model=a': unknown metric 'cosine': use one of correctness, smile, sbert"),
        ("smile:quick", "no preset 'quick': use one of v1"),
        ("sbert:v1", "has no presets"),
        ("smile/x", "is not a metric"),
        ("smile?synthetic=maybe", "no synthetic 'maybe'"),
        ("smile?weight=0.3", "no parameter 'weight'; its parameters: model"),
        ("smile?model", "model has no value: write model=VALUE"),
        ("smile?sentence_weight=much", "is not a number"),
        ("smile?model=a&model=b", "has model twice"),
        ("exact_match?model=a", "its parameters: abstention=…, answer=…"),
        ("bleu?max_ngram=two", "bleu: max_ngram='two' is not a whole number"),
        ("bleu?max_ngram=-1", "max_ngram='-1' is not a whole number"),
        ("bleu?max_ngram=²", "max_ngram='²' is not a whole number"),
        ("bleu?max_ngram=99999999999999999999", "is not a whole number"),
        ("bleu?max_ngram=4294967296", "bleu: max_ngram must be a whole number"),
        ("rouge_l?stem=yes", "rouge_l: stem='yes' is not true or false"),
        ("exact_match?answer=last", "exact_match has no answer 'last': use one of whole, final"),
        ("correctness?answer=final", "correctness has no parameter 'answer'; its parameters: confidence=…"),
        ("rouge_l?measure=accuracy", "rouge_l has no measure 'accuracy': use one of f1, precision, recall"),
        ("cider?synthetic=none", "its parameters: answer=…, corpus=…, reference_set=…"),
    ],
)
def test_refusals_say_what_is_wrong(line: str, part: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_metric_line(line)
    assert part in str(caught.value)


def test_an_unknown_name_stands_once_in_the_message() -> None:
    with pytest.raises(InvalidRequest, match=r"^unknown metric 'cosine': use one of correctness, smile, sbert"):
        parse_metric_line("cosine")


def labels(metrics: Any, **defaults: Any) -> tuple[str, ...]:
    return choose_metrics(metrics, MetricDefaults(**defaults)).labels


def test_labels_are_what_a_metric_says_whatever_else_is_asked() -> None:
    assert labels("smile,sbert, exact_match") == ("smile", "sbert", "exact_match")
    assert labels("smile:fast") == ("smile:fast",)
    assert labels("smile:v1") == labels("smile") == ("smile",)
    assert labels("bleu?max_ngram=2") == ("bleu?max_ngram=2",)
    # What the call says of all is no part, nor what a whole line, as summaries print it, has to say.
    assert labels("smile,sbert", model="a", preset="fast") == ("smile", "sbert")
    assert labels("bleu/1?max_ngram=2,smile:fast/1?model=a@0123456789ab&synthetic=none") == ("bleu", "smile:fast")
    assert labels("smile,smile:fast,sbert") == ("smile", "smile:fast", "sbert")
    assert labels(["smile?sentence_weight=0.3", Smile(sentence_weight=0.5)]) == (
        "smile?sentence_weight=0.3",
        "smile?sentence_weight=0.5",
    )
    assert labels([Sbert(model="a"), Sbert(model="b")]) == ("sbert?model=a", "sbert?model=b")


def test_labels_of_a_metric_asked_for_several_times_say_what_differs() -> None:
    assert labels("bleu,bleu?max_ngram=2") == ("bleu", "bleu?max_ngram=2")
    lines = [f"bertscore/1?layer={layer}&measure=f1&model=m@0a1b2c3d4e5f" for layer in (4, 5)]
    assert labels(lines) == ("bertscore?layer=4", "bertscore?layer=5")
    assert labels("smile:v1/1,smile:fast/1,smile:fast/2") == ("smile:v1/1", "smile:fast/1", "smile:fast/2")
    assert labels("smile:v1/1,smile:fast/1") == ("smile", "smile:fast")
    # Read again, each label is the same: of metrics without versions, and beside a metric of another name.
    assert labels("smile:v1/1?model=a,smile:v1/1?model=b") == ("smile?model=a", "smile?model=b")
    assert labels("bleu/1?max_ngram=2,bleu/1?max_ngram=3,lave:v1,lave:paper") == (
        *("bleu?max_ngram=2", "bleu?max_ngram=3"),
        *("lave", "lave:paper"),
    )
    assert labels("rouge_l,rouge_l?stem=true,rouge_l?measure=recall,meteor?alpha=0.5") == (
        "rouge_l",
        "rouge_l?stem=true",
        "rouge_l?measure=recall",
        "meteor?alpha=0.5",
    )
    # What a call says for all of them tells nothing apart.
    assert labels("sbert,sbert?model=b", model="a") == ("sbert", "sbert?model=b")
    assert labels("bertscore?layer=4,bertscore", model="a") == ("bertscore?layer=4", "bertscore")


@given(st.lists(METRICS, min_size=1, max_size=6))
def test_labels_are_distinct_and_choose_the_same_metrics_again(metrics: list[Metric]) -> None:
    try:
        found = choose_metrics(metrics, MetricDefaults())
    except InvalidRequest:
        return  # one twice, or sets that do not fit: the cases below
    assert len(set(found.labels)) == len(metrics)
    again = [parse_metric_line(label) for label in found.labels]
    assert [metric.name for metric in again] == [metric.name for metric in metrics]
    assert labels(again) == found.labels


def test_labels_may_be_given() -> None:
    choice = choose_metrics({"mine": "smile:fast", "other": Smile(preset="fast")}, MetricDefaults())
    assert choice.labels == ("mine", "other")
    assert choice.named == {"mine": Smile(preset="fast"), "other": Smile(preset="fast")}
    for wrong, message in (
        ({"": "smile"}, "is not a label"),
        ({1: "smile"}, "is not a label"),
        ({"a": "smile,sbert"}, "contains several metrics"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            choose_metrics(wrong, MetricDefaults())  # type: ignore[arg-type]


def test_defaults_fill_what_a_metric_does_not_say() -> None:
    choice = choose_metrics(
        ["smile", "smile:paper?model=b&synthetic=none", ExactMatch()], MetricDefaults("fast", "inline", "a")
    )
    assert choice.metrics == (
        Smile(preset="fast", synthetic="inline", model="a"),
        Smile(preset="paper", synthetic="none", model="b"),
        ExactMatch(),
    )


def test_a_reference_set_comes_from_the_metric_or_from_the_call() -> None:
    line = "smile?reference_set=a&synthetic=prepared"
    assert choose_metrics([line, "sbert"], MetricDefaults()).reference_set == "a"
    assert choose_metrics(line, MetricDefaults(reference_set="a")).reference_set == "a"
    assert choose_metrics([line, "smile:fast"], MetricDefaults(synthetic="prepared")).reference_set == "a"
    assert choose_metrics("smile", MetricDefaults(reference_set="b")).reference_set == "b"
    assert choose_metrics("smile", MetricDefaults()).reference_set == ""
    # Who names a set wants what is in it, whatever the call says of other metrics.
    choice = choose_metrics("smile?reference_set=a", MetricDefaults(synthetic="inline"))
    assert choice.specs[0].smile.synthetic == types_pb2.SYNTHETIC_MODE_PREPARED


def test_a_reference_set_means_the_prepared_corpus_too() -> None:
    choice = choose_metrics(["cider?reference_set=a", "bertscore?idf=prepared&reference_set=a"], MetricDefaults())
    assert choice.reference_set == "a"
    assert choice.specs[0].cider.corpus == choice.specs[1].bertscore.idf == types_pb2.CORPUS_PREPARED
    # The call's set alone changes no metric that does not ask for it.
    assert not choose_metrics("cider", MetricDefaults(reference_set="a")).specs[0].cider.corpus


def test_specs_carry_every_parameter() -> None:
    metric = Smile(preset="reference_code", synthetic="prepared", sentence_weight=0.25, model="m@0123456789")
    (spec,) = choose_metrics(metric, MetricDefaults()).specs
    assert spec == types_pb2.MetricSpec(
        smile=types_pb2.SmileParameters(
            preset=types_pb2.SMILE_PRESET_REFERENCE_CODE,
            synthetic=types_pb2.SYNTHETIC_MODE_PREPARED,
            sentence_weight=0.25,
            model="m@0123456789",
        )
    )
    (plain,) = choose_metrics("smile", MetricDefaults()).specs
    assert not plain.smile.HasField("sentence_weight")
    assert plain.WhichOneof("metric") == "smile"


@pytest.mark.parametrize(
    ("metrics", "defaults", "part"),
    [
        ("", {}, "is not a metric"),
        ([], {}, "metrics is empty"),
        (["smile", 3], {}, "metrics[1] is a int"),
        ("smile,smile", {}, "has smile twice"),
        ("smile,smile:v1", {}, "twice"),
        ("sbert", {"preset": "fast"}, "preset is for smile"),
        ("exact_match", {"model": "m"}, "model: none of the metrics has an encoder"),
        ("smile", {"preset": "quick"}, "no preset 'quick'"),
        ("smile?reference_set=a", {"reference_set": "b"}, "a metric names 'a' and the call names 'b'"),
        ("smile?reference_set=a,smile:fast?reference_set=b", {}, "a call has one set"),
        ("smile?reference_set=a&synthetic=none", {}, "a reference set needs synthetic='prepared'"),
        (
            "cider?reference_set=a&corpus=request",
            {},
            "a reference set needs corpus='prepared': leave out one of the two",
        ),
        ("cider?reference_set=a,smile?reference_set=b", {}, "a call has one set"),
        ("bleu,bleu", {}, "has bleu twice"),
        ("bleu,cider", {"model": "m"}, "model: none of the metrics has an encoder"),
    ],
)
def test_refusals_name_the_argument(metrics: Any, defaults: dict[str, Any], part: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        labels(metrics, **defaults)
    assert part in str(caught.value)
