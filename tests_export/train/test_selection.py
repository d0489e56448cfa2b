"""Labelled rows: read strictly, ranked as scipy would."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests_export.conftest import expected_vectors

from gradewire_train import TrainingError
from gradewire_train.encoder import TrainedEncoder
from gradewire_train.selection import LabelledRow, Selection, ensure_rankable, read_labelled, sample, spearman

ROW = {"question": "the cat", "references": ["w1"], "prediction": "w2", "label": 1, "half": "a"}


def test_spearman_is_the_correlation_of_average_ranks() -> None:
    # Ranks 1, 2.5, 2.5, 4 and 2, 1, 3.5, 3.5: deviations -1.5, 0, 0, 1.5 and -.5, -1.5, 1, 1; 2.25 / sqrt(4.5 * 4.5).
    assert spearman(np.array([0.1, 0.5, 0.5, 0.9]), np.array([2.0, 1.0, 3.0, 3.0])) == pytest.approx(0.5)
    assert math.isnan(spearman(np.array([1.0, 1.0]), np.array([1.0, 2.0])))


def test_the_best_reference_counts_behind_the_question(encoder: TrainedEncoder) -> None:
    rows = [LabelledRow("the cat", ("w5", "w7"), "w7", 1.0, ""), LabelledRow("the cat", ("w5", "no"), "w9", 0.0, "")]
    found = Selection(rows, encoder).scores(encoder)
    ids = encoder.tokenize([f"Question: the cat Answer: {answer}" for answer in ("w5", "w9", "no")])
    first, prediction, second = expected_vectors(encoder.model, ids, "mean")
    assert found == pytest.approx([1.0, max(first @ prediction, second @ prediction)], abs=1e-5)


def test_parts_are_ranked_among_themselves_and_one_without_a_rank_is_left_out(encoder: TrainedEncoder) -> None:
    right, wrong = ("w1", ("w1",), 1.0), ("w2", ("w9 no",), 0.0)
    rows = [LabelledRow("the cat", refs, said, label, "1") for said, refs, label in (right, wrong)]
    rows += [LabelledRow("the cat", refs, said, 1 - label, "2") for said, refs, label in (right, wrong)]
    rows += [LabelledRow("the cat", refs, said, 1.0, "3") for said, refs, _ in (right, wrong)]
    found = Selection(rows, encoder).spearman(encoder)
    assert (found["dev 1"], found["dev 2"], found["dev"]) == pytest.approx((1.0, -1.0, 0.0))
    assert math.isnan(found["dev 3"])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 2: Invalid JSON"),
        ("[" * 100_000, "line 2: Invalid JSON"),
        ("[]", "line 2: must be an object"),
        (json.dumps({**ROW, "question": 3}), "line 2: question must be a valid string"),
        (json.dumps({**ROW, "references": []}), "line 2: references"),
        (json.dumps({**ROW, "references": "w1"}), "line 2: references"),
        (json.dumps({**ROW, "label": "right"}), "line 2: label"),
        (json.dumps({**ROW, "label": math.nan}), "line 2: label"),
        (json.dumps({**ROW, "label": 10**400}), "line 2: label"),
        ('{"label": 1' + "0" * 5_000 + "}", "line 2: Invalid JSON"),
        (json.dumps({**ROW, "question": "\ud800"}), "line 2: Invalid JSON: .* hex escape"),
        (json.dumps({**ROW, "references": ["w1", "\udfff"]}), "line 2: Invalid JSON: .* hex escape"),
        (json.dumps({**ROW, "prediction": "\ud800"}), "line 2: Invalid JSON: .* hex escape"),
        (json.dumps({**ROW, "part": "\ud800"}), "line 2: Invalid JSON: .* hex escape"),
        (json.dumps({name: value for name, value in ROW.items() if name != "half"}), "line 2: the field half is"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(line: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{line}\n", encoding="utf-8")
    with pytest.raises(TrainingError, match=says):
        read_labelled(path, half="a")


def test_one_half_is_taken_and_one_row_is_too_few(labelled_file: Path, tmp_path: Path) -> None:
    assert [len(read_labelled(labelled_file, half=half)) for half in (None, "a", "b")] == [40, 32, 8]
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps(ROW), encoding="utf-8")
    with pytest.raises(TrainingError, match="1 rows, but ranking needs at least two"):
        read_labelled(path)


def test_rows_of_one_label_in_every_part_select_nothing(labelled_file: Path) -> None:
    rows = read_labelled(labelled_file)
    ensure_rankable(rows, labelled_file)
    by_part = [replace(row, label=float(row.part == "1")) for row in rows]
    with pytest.raises(TrainingError, match=r"dev\.jsonl: the 40 rows .* all labels are equal"):
        ensure_rankable(by_part, labelled_file)
    ensure_rankable([*by_part, replace(by_part[0], label=0.5)], labelled_file)


def test_a_sample_keeps_the_order_and_is_drawn_by_seed(labelled_file: Path) -> None:
    rows = read_labelled(labelled_file)
    some = sample(rows, count=10, seed=1)
    assert some == [row for row in rows if row in some]
    assert sample(rows, count=10, seed=1) == some != sample(rows, count=10, seed=2)
    assert sample(rows, count=0, seed=1) == rows
