import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.compare.conftest import letters
from tests.cli.conftest import read_rows

Compare = Callable[..., Result]


def test_a_condition_that_holds_has_an_exit_code_of_its_own_and_says_the_figure(compare: Compare) -> None:
    done = compare(letters(50, 60), letters(10, 20), options=("--fail-if", "smile.mean < -0.01"))
    assert done.exit_code == 4
    assert "--fail-if 'smile.mean < -0.01' is true for new: the value is -0.4" in done.stderr
    assert "new minus base: 2 pairs" in done.stdout


def test_conditions_that_do_not_hold_change_nothing(compare: Compare) -> None:
    options = ("--fail-if", "smile.mean < -0.01", "--fail-if", "smile.losses > 0.5")
    done = compare(letters(10, 20), letters(50, 60), options=options)
    assert (done.exit_code, "holds" in done.stderr) == (0, False)


def test_every_condition_that_holds_is_told_of_every_candidate(compare: Compare) -> None:
    options = ("--fail-if", "smile.losses > 0.4", "--fail-if", "smile.wins <= 0")
    done = compare(letters(50, 60), letters(10, 60), letters(90, 99), options=options)
    assert done.exit_code == 4
    assert "--fail-if 'smile.losses > 0.4' is true for new: the value is 0.5" in done.stderr
    assert "--fail-if 'smile.wins <= 0' is true for new: the value is 0" in done.stderr
    assert "of third" not in done.stderr


def test_a_metric_may_be_written_as_metrics_takes_it(compare: Compare) -> None:
    done = compare(letters(50), letters(10), options=("--fail-if", "smile:v1.mean < 0"))
    assert done.exit_code == 4


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("smile.mean.low < -0.5", "too few questions for an interval"),
        ("smile.share_right < -0.5", "smile returns no verdicts"),
        ("smile.p < 0.05", "too few questions for an interval"),
    ],
)
def test_a_figure_that_is_not_defined_is_an_error_and_no_pass(
    compare: Compare, tmp_path: Path, condition: str, why: str
) -> None:
    options = ("--fail-if", condition, "--out", tmp_path / "pairs.jsonl", "--json", tmp_path / "f.json")
    done = compare(letters(50), letters(10), options=options)
    assert done.exit_code == 2
    assert f"{condition.split(maxsplit=1)[0].partition('.')[2]} of new is undefined: {why}" in done.stderr
    # What was computed is not lost for it.
    assert len(read_rows((tmp_path / "pairs.jsonl").read_text())) == 1
    assert (tmp_path / "f.json").exists()


def test_all_conditions_are_told_where_one_has_no_figure(compare: Compare, tmp_path: Path) -> None:
    options = ("--fail-if", "smile.mean.low < 0", "--fail-if", "smile.mean < 0", "--fail-if", "smile.share_right < 0")
    done = compare(letters(50), letters(10), options=(*options, "--json", tmp_path / "f.json"))
    assert done.exit_code == 2
    assert "--fail-if 'smile.mean < 0' is true for new: the value is -0.4" in done.stderr
    assert "mean.low of new is undefined" in done.stderr
    assert "share_right of new is undefined" in done.stderr
    told = json.loads((tmp_path / "f.json").read_text())["conditions"]
    assert [(each["value"], each["holds"], bool(each["problem"])) for each in told] == [
        (None, False, True),
        (pytest.approx(-0.4), True, False),
        (None, False, True),
    ]


def test_without_any_score_no_condition_passes(compare: Compare) -> None:
    failed = [row | {"references": None} for row in letters(50)]
    done = compare(failed, letters(10), options=("--fail-if", "smile.mean > 5", "--allow-missing", "100%"))
    assert done.exit_code == 2
    assert "mean of new is undefined: no pair has smile scores for both answers" in done.stderr
    wins = compare(letters(0), letters(10), options=("--fail-if", "smile.wins > 0.9"))
    assert wins.exit_code == 2
    assert "no pair has smile scores for both answers" in wins.stderr
