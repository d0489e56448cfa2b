import json
import subprocess
import sys

import pandas as pd
import pytest

from gradewire import (
    BleuParts,
    ItemScores,
    JudgeParts,
    MetricScore,
    MissingExtra,
    Provenance,
    ScoreReport,
    ScoreWarning,
    SmileParts,
    Status,
    VqaParts,
)

PARTS = SmileParts(sentence=0.9, keyword=0.8, exact=0.5, lexical=0.65, best_window="a cat", bin=4, correct=True)
LINE = Provenance(name="smile", version=1, model="m", model_digest="d" * 64, line="smile:v1/1?model=m@dd")


def report(*results: MetricScore) -> ScoreReport:
    items = tuple(ItemScores(index, f"id{index}", {"smile": result}) for index, result in enumerate(results))
    return ScoreReport(items, ("smile",), {"smile": LINE})


OK = MetricScore(
    score=0.7,
    status=Status.OK,
    warnings=(ScoreWarning.UNCALIBRATED,),
    matched_reference=1,
    parts=PARTS,
    correct=True,
    provenance=LINE,
)
LOW = MetricScore(score=0.1, status=Status.OK)
EMPTY = MetricScore(score=None, status=Status.EMPTY_PREDICTION, message="prediction: is blank")
LATE = MetricScore(score=None, status=Status.TIMEOUT)


def test_failures_never_enter_a_mean_and_are_counted() -> None:
    summary = report(OK, LOW, EMPTY, LATE).summary()["smile"]
    assert summary.mean == pytest.approx(0.4)
    assert summary.mean_empty_as_wrong == pytest.approx(0.8 / 3)
    assert summary.scored == 2
    assert summary.share_right == 1.0
    assert summary.counts == {Status.OK: 2, Status.EMPTY_PREDICTION: 1, Status.TIMEOUT: 1}


def test_without_scores_there_is_no_mean() -> None:
    summary = report(LATE).summary()["smile"]
    assert (summary.mean, summary.mean_empty_as_wrong, summary.share_right) == (None, None, None)
    assert report(EMPTY).summary()["smile"].mean_empty_as_wrong == 0
    assert report().summary()["smile"].counts == {}


def test_results_made_by_hand_enter_a_mean_only_when_they_are_sound() -> None:
    nan = MetricScore(score=float("nan"), status=Status.OK)
    late = MetricScore(score=1.0, status=Status.TIMEOUT, parts=PARTS)
    summary = report(LOW, nan, late).summary()["smile"]
    assert (summary.mean, summary.scored, summary.share_right) == (0.1, 1, None)


def test_it_is_a_sequence() -> None:
    both = report(OK, LOW)
    assert len(both) == 2
    assert both[-1].id == "id1"
    assert [item.index for item in both[:1]] == [0]
    assert "smile 0.4000 (2 scored)" in repr(both)


def test_rows_for_json_hold_what_there_is() -> None:
    row = json.loads(json.dumps(report(OK)[0].to_dict()))
    assert row == {
        "id": "id0",
        "index": 0,
        "scores": {
            "smile": {
                "score": 0.7,
                "status": "OK",
                "warnings": ["UNCALIBRATED"],
                "matched_reference": 1,
                "sentence": 0.9,
                "keyword": 0.8,
                "exact": 0.5,
                "lexical": 0.65,
                "best_window": "a cat",
                "bin": 4,
                "correct": True,
                "line": "smile:v1/1?model=m@dd",
            }
        },
    }
    assert EMPTY.to_dict() == {"score": None, "status": "EMPTY_PREDICTION", "message": "prediction: is blank"}


def test_records_have_the_same_keys_and_arrow_has_one_schema() -> None:
    records = report(OK, EMPTY).to_records()
    assert records[0].keys() == records[1].keys()
    assert records[0]["best_window"] == "a cat"
    assert records[1]["score"] is None
    table = report(OK, EMPTY).to_arrow()
    assert table.column_names == list(records[0])
    assert table.to_pylist() == records
    assert report(LATE).to_arrow().schema == table.schema
    assert report().to_arrow().schema == table.schema


def test_a_data_frame_has_the_columns_that_are_used() -> None:
    frame = report(OK, EMPTY).to_pandas()
    assert list(frame.columns[:5]) == ["index", "id", "metric", "score", "status"]
    assert {"best_window", "correct", "line"} <= set(frame.columns)
    assert "precision" not in frame.columns
    assert "hits_redis" not in frame.columns
    assert frame["score"].tolist()[0] == OK.score
    assert pd.isna(frame["score"].tolist()[1])
    assert frame["best_window"].tolist()[0] == "a cat"
    assert list(report().to_pandas().columns) == ["index", "id", "metric", "score", "status"]
    assert report(LATE).to_pandas()["score"].isna().all()


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pip install 'pandas'"):
        report(OK).to_pandas()


BLEU = MetricScore(
    score=0.4,
    status=Status.OK,
    parts=BleuParts(precisions=(0.5, 0.25), brevity_penalty=1, prediction_words=3, reference_words=2),
)
VQA = MetricScore(
    score=0.6, status=Status.OK, parts=VqaParts(agreeing=2, annotators=10, compared_prediction="two"), correct=False
)


def test_parts_of_all_kinds_have_their_columns() -> None:
    mixed = report(OK, BLEU, VQA, LATE)
    smile, bleu, vqa, late = mixed.to_records()
    assert (smile["best_window"], bleu["best_window"]) == ("a cat", None)
    assert (bleu["precisions"], bleu["prediction_words"], smile["precisions"]) == ([0.5, 0.25], 3, None)
    assert (vqa["agreeing"], vqa["compared_prediction"], vqa["correct"], late["correct"]) == (2, "two", False, None)
    table = mixed.to_arrow()
    assert table.to_pylist() == mixed.to_records()
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["precisions"], types["agreeing"], types["correct"]) == ("list<item: double>", "int64", "bool")
    assert all(f'"{name}": ' in json.dumps(bleu) for name in BLEU.to_dict())


def test_the_share_right_is_over_verdicts_of_scored_items_only() -> None:
    right = MetricScore(score=0.9, status=Status.OK, correct=True)
    late = MetricScore(score=None, status=Status.TIMEOUT, correct=True)
    thirty_percent_failed = [late] * 30 + [right] * 20 + [VQA] * 20 + [BLEU] * 30
    summary = report(*thirty_percent_failed).summary()["smile"]
    assert (summary.share_right, summary.scored) == (0.5, 70)
    assert summary.mean == pytest.approx((20 * 0.9 + 20 * 0.6 + 30 * 0.4) / 70)
    assert summary.counts == {Status.TIMEOUT: 30, Status.OK: 70}


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'gradewire\[parquet\]'"):
        report(OK).to_arrow()
    with pytest.raises(ImportError):
        report(OK).to_arrow()


def test_only_passing_failures_may_be_tried_again() -> None:
    assert {status for status in Status if status.may_pass} == {Status.UNAVAILABLE, Status.TIMEOUT}


def test_import_is_light() -> None:
    program = (
        "import sys, gradewire\n"
        "heavy = {'gradewire_server', 'gradewire_models', 'rich', 'pyarrow', 'scipy', 'numpy', 'onnxruntime', 'grpc'}\n"
        "print(sorted(heavy & set(sys.modules)), bool(gradewire.__version__))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.strip() == "[] True"


RULED = MetricScore(1.0, Status.OK, parts=JudgeParts(decided_by="rule"), correct=True)
JUDGED = MetricScore(0.5, Status.OK, parts=JudgeParts(decided_by="judge"), correct=False)
AWAY = MetricScore(None, Status.UNAVAILABLE)


def test_rows_that_a_rule_graded_alone_give_no_mean_while_the_judge_is_away() -> None:
    found = report(RULED, EMPTY, AWAY).summary()["smile"]
    assert (found.mean, found.mean_empty_as_wrong, found.share_right, found.scored) == (None, None, None, 1)
    found = report(RULED, EMPTY).summary()["smile"]
    assert (found.mean, found.mean_empty_as_wrong, found.share_right) == (1.0, 0.5, 1.0)
    assert report(RULED, JUDGED, AWAY).summary()["smile"].mean == 0.75
    assert report(EMPTY, AWAY).summary()["smile"].mean_empty_as_wrong is None


def test_few_scores_stand_in_front_of_their_mean() -> None:
    assert repr(report(LOW, AWAY, AWAY)) == "<ScoreReport of 3 items: smile 1 of 3 items: 0.1000>"
    assert repr(report(LOW, AWAY)) == "<ScoreReport of 2 items: smile 0.1000 (1 scored)>"
