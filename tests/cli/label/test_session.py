"""The order of the rows to label, and the agreement that the page shows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradewire_cli.label.label_file import LabelFile
from gradewire_cli.label.session import Doubt, Session, called_right, doubt_of, ordered, usable
from gradewire_cli.problems import InputError
from gradewire_cli.rows.row import Row
from gradewire_stats.annotators import annotator_agreement


def row(number: int, text: str = "a cat", **attributes: Any) -> Row:
    item = {"question": f"question {number}?", "references": ["cat"], "prediction": text}
    given = {"has_id": True, **attributes}
    return Row(number, f"line {number + 1}", given.pop("id", f"r{number}"), item, "", f"{number:032x}", **given)


def output(score: float | None, line: str, *warnings: str, label: str = "") -> dict[str, Any]:
    return {"scores": {label or line.partition("/")[0]: {"score": score, "line": line, "warnings": list(warnings)}}}


def test_uncertain_rows_come_first_and_the_nearest_to_the_threshold_first_of_all() -> None:
    scores = [(0.9, ()), (0.55, ("UNCERTAIN",)), (0.45, ()), (0.5, ("UNCERTAIN",)), (None, ()), (0.3, ("UNCERTAIN",))]
    doubts = [doubt_of(output(score, "correctness/2?model=m@0123", *warnings)) for score, warnings in scores]
    rows = [row(number) for number in range(6)]
    found, uncertain = ordered(rows, doubts, "uncertain", 0)
    assert ([each.index for each in found], uncertain) == ([3, 1, 5, 2, 0, 4], 3)
    assert ordered(rows, doubts, "file", 0) == (rows, 0)
    mixed, _ = ordered(rows, doubts, "random", 0)
    assert mixed != rows
    assert sorted(each.index for each in mixed) == list(range(6))
    assert mixed == ordered(rows, doubts, "random", 0)[0] != ordered(rows, doubts, "random", 1)[0]


def test_smile_is_uncertain_near_its_own_threshold_and_correctness_decides_before_it() -> None:
    assert doubt_of(output(0.5, "smile:v1/1?model=m@0123&threshold=0.61")) == Doubt(
        is_uncertain=False, distance=pytest.approx(0.11)
    )
    assert doubt_of(output(0.5, "smile:v1/1?model=m@0123")).distance == pytest.approx(1 / 6)
    both = output(0.4, "smile:v1/1?model=m@0123")
    both["scores"] |= output(0.9, "correctness/2?model=m@0123")["scores"]
    assert doubt_of(both).distance == pytest.approx(0.4)
    with pytest.raises(InputError, match="neither correctness nor smile"):
        doubt_of(output(0.4, "rouge_l/1"))


def test_rows_without_an_answer_are_counted_and_ids_must_be_clear() -> None:
    unread = Row(2, "line 3", "r2", None, "has no references", "0" * 32)
    assert usable([row(0), row(1, "  "), unread]) == ([row(0)], 2)
    with pytest.raises(InputError, match="line 2 has no id"):
        usable([row(0), row(1, has_id=False)])
    with pytest.raises(InputError, match="line 2 has the id of line 1, 4"):
        usable([row(0, id="4"), row(1, id="4.0")])
    with pytest.raises(InputError, match="is not Unicode"):
        usable([row(0, id="\ud800")])


def session(path: Path, count: int = 6) -> Session:
    return Session([row(number) for number in range(count)], 2, LabelFile.open(path, ["ann", "ben"]), path.parent)


def test_the_next_row_is_the_next_one_without_a_label_of_this_annotator(tmp_path: Path) -> None:
    found = session(tmp_path / "labels.csv", 3)
    found.set(0, "ann", 1.0)
    found.set(1, "ben", 0.0)
    state = found.state("ann")
    assert (state["position"], state["label"], state["next"], state["labelled"]) == (1, None, 2, 1)
    assert (state["uncertain"], state["uncertainLabelled"]) == (2, 1)
    assert found.state("ann", 2)["next"] == 1
    found.set(1, "ann", 0.0)
    found.set(2, "ann", 0.25)
    done = found.state("ann")
    assert (done["position"], done["next"], done["labelled"]) == (2, None, 3)
    assert found.state("ben")["position"] == 0
    found.set(2, "ann", None)
    assert found.state("ann")["labelled"] == 2
    assert found.counts() == {"ann": 2, "ben": 1}
    for position in (-1, 3):
        with pytest.raises(IndexError):
            found.set(position, "ann", 1.0)
        with pytest.raises(IndexError):
            found.state("ann", position)


def test_flags_are_proposed_until_some_are_stored_and_flagged_rows_are_done(tmp_path: Path) -> None:
    rows = [row(0), row(1, flags=("bad-gold", "own"))]
    assert rows[0].item is not None
    rows[0].item["question"] = "Who won last year?"  # type: ignore[index]
    found = Session(rows, 0, LabelFile.open(tmp_path / "labels.csv", ["ann", "ben"]), tmp_path)
    state = found.state("ann")
    assert [(each["name"], each["isSet"], bool(each["reason"])) for each in state["flags"]] == [
        ("time-dependent", True, True),
        ("bad-gold", False, False),
    ]
    assert [each["isSet"] for each in found.state("ann", 1)["flags"]] == [False, True]
    found.set_flags(0, "ann", [])
    assert [each["isSet"] for each in found.state("ann", 0)["flags"]] == [False, False]
    assert found.state("ann")["position"] == 0
    found.set_flags(0, "ann", ["bad-gold"])
    state = found.state("ann")
    assert (state["position"], state["flagged"], state["labelled"], state["next"]) == (1, 1, 0, None)
    assert [each["isSet"] for each in found.state("ben", 0)["flags"]] == [True, False]
    found.set(0, "ann", 1.0)
    assert (found.state("ann")["flagged"], found.state("ann")["labelled"]) == (0, 1)
    with pytest.raises(ValueError, match="own is no flag"):
        found.set_flags(0, "ann", ["own"])


def test_an_error_has_a_class_as_long_as_label_and_verdict_differ(tmp_path: Path) -> None:
    file = LabelFile.open(tmp_path / "labels.csv", ["ann"])
    found = Session([row(0), row(1)], 0, file, tmp_path, {0: False})
    assert found.state("ann", 0)["error"] is None
    with pytest.raises(ValueError, match="no such error"):
        found.set_class(0, "ann", "synonym")
    found.set(0, "ann", 1.0)
    error = found.state("ann", 0)["error"]
    assert (error["calledRight"], error["given"]) == (False, None)
    assert {each["name"] for each in error["classes"]} == {
        *("paraphrasing", "synonym", "partial match", "structure variation", "threshold sensitivity"),
        *("extended answer", "literal interpretation", "unknowable reasons"),
    }
    with pytest.raises(ValueError, match="no such error"):
        found.set_class(0, "ann", "misleading emphasis")
    found.set_class(0, "ann", "synonym")
    assert LabelFile.open(file.path, []).classes == {"r0": {"ann": "synonym"}}
    found.set(0, "ann", 0.25)  # an unclear answer counts as wrong, as the metric says
    assert (found.state("ann", 0)["error"], file.classes) == (None, {})
    found.set(1, "ann", 1.0)
    assert found.state("ann", 1)["error"] is None  # without a verdict


def test_the_verdict_is_that_of_the_metric_that_orders() -> None:
    scored = output(0.4, "smile:v1/1?model=m@0123")
    assert called_right(scored) is None
    scored["scores"]["smile:v1"]["correct"] = True
    assert called_right(scored) is True
    scored["scores"] |= {"correctness": {"score": 0.4, "line": "correctness/2?model=m", "correct": False}}
    assert called_right(scored) is False
    with pytest.raises(InputError, match="neither correctness nor smile"):
        called_right(output(0.4, "rouge_l/1"))


def test_the_agreement_is_that_of_all_rows_with_two_labels(tmp_path: Path) -> None:
    found = session(tmp_path / "labels.csv")
    given = {"ann": (1, 1, 0, 0, 0.25, 1), "ben": (1, 0, 0, 0, 0.25, 1)}
    for name, labels in given.items():
        assert found.state(name)["agreement"] == {"items": 0, "alpha": "", "pairs": []}
        for position, label in enumerate(labels):
            found.set(position, name, float(label))
    expected = annotator_agreement(np.array([given["ann"], given["ben"]], float).T)
    shown = found.state("ann")["agreement"]
    assert shown["items"] == 6
    assert shown["alpha"].startswith(f"{expected.alpha['nominal'].value:.2f}")
    assert shown["pairs"][0]["names"] == ["ann", "ben"]
    assert shown["pairs"][0]["kappa"].startswith(f"{expected.pairs[0].kappa.value:.2f}")
    found.set(0, "ben", None)
    assert found.state("ann")["agreement"]["items"] == 5


def test_long_and_invalid_texts_and_missing_fields_are_shown_shortened(tmp_path: Path) -> None:
    found = session(tmp_path / "labels.csv", 1)
    odd = Row(0, "line 1", "r0", {"references": "cat\ud800", "prediction": "x" * 30_000}, "", "0" * 32)
    shown = Session([odd], 0, found.file, tmp_path).state("ann")["row"]
    assert (shown["question"], shown["caption"], shown["references"], shown["pictures"]) == ("", "", ["cat?"], [])
    assert len(shown["prediction"]) == 20_001
