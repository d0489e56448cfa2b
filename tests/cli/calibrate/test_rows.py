"""Which column of an output file `gradewire calibrate --scores` reads."""

from collections.abc import Mapping

import pytest

from gradewire.metrics.choice import parse_metric_line
from gradewire_cli.calibrate.rows import labelled_scores, source_of
from gradewire_cli.problems import InputError, NothingScoredError
from gradewire_cli.rows.cells import read_labels
from gradewire_cli.rows.row import Row
from gradewire_cli.scoring.labelled_rows import LabelledRows

ONE = "smile:v1/1?model=one@111111111111&sentence_weight=0.3&synthetic=none"
TWO = ONE.replace("one@111111111111", "two@222222222222")
BOTH = {"smile:v1?model=one": ONE, "smile:v1?model=two": TWO}


@pytest.mark.parametrize(
    ("lines", "asked", "label"),
    [
        ({"smile": ONE, "correctness": ""}, "smile", "smile"),
        ({"smile": ONE, "correctness": ""}, "correctness", "correctness"),
        ({"smile:v1": ONE, "smile:paper": ""}, "smile:v1", "smile:v1"),
        ({"smile": ""}, "smile:paper", "smile"),
        ({"a remark": "", "smile": ONE}, "smile", "smile"),
        (BOTH, "smile?model=one", "smile:v1?model=one"),
        (BOTH, "smile?model=two@222222222222", "smile:v1?model=two"),
        (BOTH | {"smile:v1?model=two": ""}, "smile?model=one", "smile:v1?model=one"),
        ({"one": ONE, "other": ONE.replace("@1", "@3")}, "smile?model=one@1111", "one"),
    ],
)
def test_columns_are_told_apart_by_model_and_by_label_where_all_rows_failed(
    lines: dict[str, str], asked: str, label: str
) -> None:
    columns, metric = columns_of(lines), parse_metric_line(asked)
    if lines[label]:
        assert labelled_scores(columns, metric, half=None)[0].line == lines[label]
    else:
        with pytest.raises(NothingScoredError, match=f"no row has a score for {label}: INVALID_PARAMETER 1"):
            labelled_scores(columns, metric, half=None)


_PLAIN = "correctness/3?confidence=0.9&features_only=true{}&model=one@111111111111"
WITH, LEFT_OUT, BEFORE = (_PLAIN.format(grader) for grader in ("&grader=g@333333333333", "&grader=none", ""))


@pytest.mark.parametrize(
    ("lines", "asked", "label"),
    [
        ({"a": WITH}, "correctness", "a"),
        ({"a": WITH, "b": LEFT_OUT}, "correctness?grader=g", "a"),
        ({"a": WITH, "b": LEFT_OUT}, "correctness?grader=none", "b"),
        ({"a": WITH, "b": BEFORE}, "correctness?grader=none", "b"),  # of an encoder whose fit has no grader
    ],
)
def test_columns_are_told_apart_by_their_grader(lines: dict[str, str], asked: str, label: str) -> None:
    assert labelled_scores(columns_of(lines), parse_metric_line(asked), half=None)[0].line == lines[label]


def test_scores_without_a_grader_do_not_serve_for_one() -> None:
    with pytest.raises(InputError, match="matches none of the scored metrics"):
        labelled_scores(columns_of({"b": LEFT_OUT}), parse_metric_line("correctness?grader=g"), half=None)


def test_models_that_nobody_tells_apart_are_asked_for() -> None:
    told = r"--metric smile matches 2 of the scored metrics. Add a preset, parameters or --model NAME@DIGEST"
    with pytest.raises(InputError, match=told) as raised:
        labelled_scores(columns_of(BOTH), parse_metric_line("smile"), half=None)
    assert f"smile:v1?model=one ({ONE}), smile:v1?model=two ({TWO})" in str(raised.value)


def test_a_model_that_no_column_is_of_is_refused_with_what_each_column_is_of() -> None:
    columns = columns_of({"smile": ONE, "sbert": "", "rouge_l/1": "rouge_l/1"})
    with pytest.raises(InputError, match=r"--metric smile of model three matches none of the scored metrics") as raised:
        labelled_scores(columns, parse_metric_line("smile?model=three"), half=None)
    assert str(raised.value).endswith(f"Available scores: smile ({ONE}), sbert, rouge_l/1")


def columns_of(lines: Mapping[str, str]) -> LabelledRows:
    """One labelled row with a score by every line, and a failure where there is none."""
    failure = {"score": None, "status": "INVALID_PARAMETER", "line": ""}
    scores = {label: {"score": 0.5, "status": "OK", "line": line} if line else failure for label, line in lines.items()}
    columns = LabelledRows(keeps_rows=True)
    item = {"references": ["a"], "prediction": "b"}
    row = Row(index=0, position="line 1", id="1", item=item, problem="", digest="0" * 32, human=read_labels(1, None))
    columns.add(row, {"scores": scores})
    return columns


def row(grouping: dict[str, str], file: str) -> Row:
    return Row(
        index=0,
        position="line 1",
        id="1",
        item={},
        problem="",
        digest="",
        dataset="nq",
        file=file,
        grouping=grouping,
    )


@pytest.mark.parametrize(
    ("grouping", "files", "source"),
    [
        ({"source": "tq"}, 2, "tq"),
        ({"source": ""}, 2, "b.jsonl"),
        ({"source": ""}, 1, "nq"),
        ({}, 1, "nq"),
        ({"dataset": "own"}, 2, "own"),
        ({"dataset": ""}, 2, ""),  # asked for by name: what lacks it is of one source
    ],
)
def test_a_column_counts_before_files_and_files_before_data_sets(
    grouping: dict[str, str], files: int, source: str
) -> None:
    assert source_of(row(grouping, "b.jsonl" if files > 1 else "")) == source
