"""An output file and a run are compared by their metric lines; what these do not tell is not taken for the same."""

from pathlib import Path

import pytest

from gradewire_cli.problems import InputError
from gradewire_cli.results.resumable_output import check_lines, with_current_names

DIGEST = "0123456789abcdef" * 2


def test_a_row_with_a_former_name_of_a_metric_is_read_with_the_name_of_now() -> None:
    written = {
        "index": 0,
        "scores": {
            "calibrated": {"score": 0.5, "line": "calibrated/2?confidence=0.9"},
            "calibrated?confidence=0.95": {"score": 0.5},
            "auto": {"score": 0.5, "decided_by": "calibrated"},
            "calibrated_by_hand": {"score": None},
        },
    }
    assert with_current_names(written) == {
        "index": 0,
        "scores": {
            "correctness": {"score": 0.5, "line": "correctness/2?confidence=0.9"},
            "correctness?confidence=0.95": {"score": 0.5},
            "auto": {"score": 0.5, "decided_by": "correctness"},
            "calibrated_by_hand": {"score": None},
        },
    }


def check(there: str, here: str) -> None:
    check_lines(Path("out.jsonl"), {"scores": {"it": {"line": there}}}, {"it": here})


@pytest.mark.parametrize(
    "line",
    [
        f"cider/1?corpus=prepared&reference_set=prod@{DIGEST}",
        f"bertscore/1?idf=prepared&model=m@0123&reference_set=a%20b@{DIGEST}",
        "cider/1?corpus=request",
        "smile:v1/1?reference_set=prod&synthetic=prepared",
        "sbert/1",
        "",
    ],
)
def test_one_line_is_one_definition(line: str) -> None:
    check(line, line)


@pytest.mark.parametrize(
    "line", ["cider/1?corpus=prepared&reference_set=prod", "bertscore/1?idf=prepared&model=m@0123&reference_set=prod"]
)
def test_over_a_set_whose_content_is_not_named_scores_are_not_mixed(line: str) -> None:
    with pytest.raises(InputError, match=r"does not contain the set's digest \(NAME@DIGEST\).*--overwrite"):
        check(line, line)
    with pytest.raises(InputError, match="differs in reference_set"):
        check(line, f"{line}@{DIGEST}")


def test_another_corpus_is_another_definition() -> None:
    line = "cider/1?corpus=prepared&reference_set=prod@"
    with pytest.raises(InputError, match="it differs in reference_set"):
        check(line + DIGEST, line + DIGEST[::-1])


def test_who_names_no_metric_is_told_how_to_go_on_with_a_file_of_the_default_before() -> None:
    row = {"scores": {"smile": {"line": "smile:v1/1"}}}
    told = r"the metrics smile, but .* smile, correctness\. Use .*--metrics smile.*or "
    with pytest.raises(InputError, match=told):
        check_lines(Path("out.jsonl"), row, {"smile": "smile:v1/1", "correctness": "correctness/2"})


@pytest.mark.parametrize(
    ("there", "here", "way_out"),
    [
        ("correctness/1?model=m", "correctness/2?model=m", "Use another --out"),
        ("smile:v1/1", "smile:fast/1", "Use the same options, another --out"),
        ("", "smile:v1/1", "Use the same options, another --out"),
    ],
)
def test_nobody_is_asked_for_options_that_cannot_help(there: str, here: str, way_out: str) -> None:
    with pytest.raises(InputError, match=rf"this run computes {here.partition('?')[0]}.*\. {way_out}"):
        check(there, here)
