import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.metrics.metric_values import METRICS

from gradewire import (
    Bertscore,
    Cider,
    Correctness,
    InvalidRequest,
    Metric,
    RougeL,
    Smile,
    format_metric_line,
    parse_metric_line,
)
from gradewire.metrics.line import parse_line


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
        ("", "no metric"),
        ("cosine", "there is no metric 'cosine', there are smile, sbert"),
        ("smile:quick", "no preset 'quick': take one of v1"),
        ("sbert:v1", "has no presets"),
        ("smile/x", "no metric"),
        ("smile?synthetic=maybe", "no synthetic 'maybe'"),
        ("smile?weight=0.3", "no parameter 'weight=0.3', it has model"),
        ("smile?model", "no parameter 'model'"),
        ("smile?sentence_weight=much", "is no number"),
        ("smile?model=a&model=b", "says model twice"),
        ("exact_match?model=a", "it has none"),
        ("bleu?max_ngram=two", "bleu: max_ngram='two' is not a whole number"),
        ("bleu?max_ngram=-1", "max_ngram='-1' is not a whole number"),
        ("bleu?max_ngram=²", "max_ngram='²' is not a whole number"),
        ("bleu?max_ngram=99999999999999999999", "is not a whole number"),
        ("bleu?max_ngram=4294967296", "bleu: max_ngram is a whole number"),
        ("rouge_l?stem=yes", "rouge_l: stem='yes' is not true or false"),
        ("rouge_l?measure=accuracy", "rouge_l has no measure 'accuracy': take one of f1, precision, recall"),
        ("cider?synthetic=none", "it has corpus=…, reference_set=…"),
    ],
)
def test_refusals_say_what_is_wrong(line: str, part: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_metric_line(line)
    assert part in str(caught.value)
