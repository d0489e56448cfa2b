import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from scipy import stats
from tests.cli.compare.conftest import letters, rows
from tests.cli.conftest import Command, read_rows, write_rows

from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2

Compare = Callable[..., Result]
Figures = Callable[..., dict[str, Any]]


def test_two_files_of_answers_are_scored_and_compared(figures: Figures) -> None:
    found = figures(letters(10, 20, 30, 50), letters(50, 20, 31, 10), options=("--tie-margin", "0.05"))
    assert (found["baseline"], found["chooser"]["name"]) == ("base", "smile")
    side = found["comparisons"]["new"]
    smile = side["metrics"]["smile"]
    assert (side["pairs"], side["matched_by"], smile["scored"]) == (4, "id", 4)
    assert (smile["baseline"]["value"], smile["candidate"]["value"]) == pytest.approx((0.275, 0.2775))
    assert smile["difference"]["value"] == pytest.approx(0.0025)
    outcomes = side["outcomes"]["smile"]
    assert [outcomes[name] for name in ("wins", "ties", "losses", "undecided", "p_value")] == [1, 2, 1, 0, 1.0]


def test_figures_are_those_that_scipy_gives(figures: Figures) -> None:
    before = [int(10 + 40 * abs(math.sin(number))) for number in range(60)]
    after = [int(12 + 40 * abs(math.cos(1.3 * number))) for number in range(60)]
    side = figures(letters(*before), letters(*after), options=("--resamples", "4000"))["comparisons"]["new"]
    apart = [(new - old) / 100 for old, new in zip(before, after, strict=True)]
    found, outcomes = side["metrics"]["smile"]["difference"], side["outcomes"]["smile"]
    assert found["value"] == pytest.approx(sum(apart) / 60)
    normal = stats.ttest_1samp(apart, 0).confidence_interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((normal.low, normal.high), abs=0.004)
    wins, losses = sum(each > 0.2 + 1e-9 for each in apart), sum(each < -0.2 - 1e-9 for each in apart)
    assert (outcomes["wins"], outcomes["losses"]) == (wins, losses)
    assert outcomes["p_value"] == pytest.approx(stats.binomtest(wins, wins + losses).pvalue)


def test_the_same_run_twice_prints_the_same(compare: Compare) -> None:
    files = [letters(*range(1, 40)), letters(*range(40, 1, -1))]
    one, two = (compare(*files, options=("--seed", "7")).stdout for _ in range(2))
    assert one == two
    assert "new minus base: 39 pairs" in one


def test_models_of_one_file_are_compared_with_a_baseline(figures: Figures) -> None:
    file = [
        row | {"id": f"{row['id']}-{model}", "model": model, "dataset": "nq"}
        for model, counts in (("old", (10, 20)), ("mid", (20, 30)), ("new", (50, 80)))
        for row in letters(*counts)
    ]
    found = figures(file)
    assert {name: side["pairs"] for name, side in found["comparisons"].items()} == {"mid": 2, "new": 2}
    assert found["comparisons"]["new"]["matched_by"] == "question"
    other = figures(file, options=("--models", "new,old", "--baseline", "old"))
    assert other["baseline"] == "old"
    assert other["comparisons"]["new"]["metrics"]["smile"]["difference"]["value"] == pytest.approx(0.5)
    assert list(other["comparisons"]) == ["new"]


def test_several_files_have_one_baseline_and_names(figures: Figures) -> None:
    found = figures(letters(10), letters(20), letters(40), options=("--names", "a,b,c", "--baseline", "b"))
    differences = {name: side["metrics"]["smile"]["difference"]["value"] for name, side in found["comparisons"].items()}
    assert differences == {"a": pytest.approx(-0.1), "c": pytest.approx(0.2)}


def test_groups_have_figures_of_their_own(figures: Figures) -> None:
    before = [row | {"kind": kind} for row, kind in zip(letters(10, 20, 30, 40), ("a", "a", "b", ""), strict=True)]
    found = figures(before, letters(20, 30, 10, 50), options=("--group-by", "kind"))["comparisons"]["new"]
    by = found["groups"]["kind"]
    assert by["without_value"] == 1
    assert {tuple(group["values"]): group["pairs"] for group in by["groups"]} == {("a",): 2, ("b",): 1}
    assert by["groups"][1]["metrics"]["smile"]["difference"]["value"] == pytest.approx(-0.2)


def test_a_group_that_only_the_candidate_names_counts(figures: Figures) -> None:
    after = [row | {"kind": "a"} for row in letters(20, 30)]
    found = figures(letters(10, 20), after, options=("--group-by", "kind"))["comparisons"]["new"]["groups"]["kind"]
    assert (found["without_value"], [group["values"] for group in found["groups"]]) == (0, [["a"]])


def test_questions_are_drawn_and_not_rows_within_each_data_set(figures: Figures) -> None:
    before, after = letters(*[10] * 12), letters(*[20] * 12)

    def questions(**each: Callable[[int], str]) -> int:
        files = [
            [row | {name: of(number) for name, of in each.items()} for number, row in enumerate(file)]
            for file in (before, after)
        ]
        count: int = figures(*files)["comparisons"]["new"]["metrics"]["smile"]["difference"]["questions"]
        return count

    assert questions() == 12
    assert questions(question=lambda number: f"one of three: {number % 3}") == 3
    # The first question of every further data set tells nothing.
    assert questions(dataset=lambda number: f"set {number % 2}") == 11


def test_rows_without_a_partner_cost_no_scoring(compare: Compare) -> None:
    asked: list[str] = []

    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        asked.extend(item.id for item in request.items)
        return echo_scores(request, score=lambda _: 0.5)

    assert compare(letters(10, 20, 30), letters(10), stub=StubTransport(answer)).exit_code == 0
    assert len(asked) == 2


def test_rows_that_changed_most_are_shown_in_both_directions(figures: Figures) -> None:
    before, after = letters(10, 20, 30, 40, 50), letters(60, 30, 20, 40, 10)
    changed = figures(before, after, options=("--changed", "1"))["comparisons"]["new"]["changed"]["smile"]
    (gained,), (lost,) = changed["gained"], changed["lost"]
    assert (gained["id"], gained["difference"], gained["baseline_score"]) == ("q0", pytest.approx(0.5), 0.1)
    assert (lost["id"], lost["question"], lost["references"]) == ("q4", "question 4?", ["cat"])
    assert (lost["baseline_answer"], lost["candidate_answer"]) == ("x" * 50, "x" * 10)


def test_rows_without_a_partner_are_counted_and_named(compare: Compare) -> None:
    done = compare(letters(10, 20, 30), [*letters(10, 20)[1:], letters(1)[0] | {"id": "extra"}])
    assert done.exit_code == 0
    assert "2 rows of base have no partner in new and are not compared: q0 (" in done.stdout
    assert "1 rows of new have no partner in base and are not compared: extra (" in done.stdout
    assert "new minus base: 1 pairs" in done.stdout


def test_empty_answers_and_failures_are_counted_and_enter_no_figure(compare: Compare, figures: Figures) -> None:
    broken = [row | {"references": None} if row["id"] == "q2" else row for row in letters(10, 0, 30, 40)]
    side = figures(broken, letters(20, 30, 40, 50))["comparisons"]["new"]
    smile = side["metrics"]["smile"]
    assert (smile["pairs"], smile["scored"], smile["failed"]) == (4, 2, [1, 0])
    assert smile["difference"]["value"] == pytest.approx(0.1)
    assert side["choices"] == {"OK": 2, "EMPTY_PREDICTION": 1, "INVALID_INPUT": 1}
    assert smile["empty"] == [1, 0]
    printed = compare(broken, letters(20, 30, 40, 50)).stdout
    assert "2 pairs of new have no winner: an answer has no score (1 of base are empty, 1 of base failed)" in printed
    assert "new minus base: empty answers as wrong" in printed


ANY_DROP = ("--fail-if", "smile.mean < -0.01")


INCOMPLETE = "new is incomplete for smile: "


@pytest.mark.parametrize(
    ("candidate", "code", "message"),
    [
        pytest.param(letters(*[50] * 20), 0, "", id="the same"),
        pytest.param(letters(*[40] * 20), 4, "is true for new: the value is -0.1", id="worse"),
        pytest.param(
            letters(*[60] * 10, *[0] * 10),
            4,
            f"{INCOMPLETE}10 of 20 rows of base are missing (50 %: 10 have an empty answer). At most 0 % may be",
            id="half empty",
        ),
        pytest.param(
            letters(*[60] * 5),
            4,
            f"{INCOMPLETE}15 of 20 rows of base are missing (75 %: 15 have no partner)",
            id="a quarter of the rows",
        ),
        pytest.param(
            [row | ({"references": None} if row["id"] == "q3" else {}) for row in letters(*[60] * 20)],
            4,
            f"{INCOMPLETE}1 of 20 rows of base are missing (5 %: 1 failed)",
            id="a failure",
        ),
        pytest.param(
            [
                row | ({} if number < 4 else {"id": f"other {number}", "question": f"another {number}?"})
                for number, row in enumerate(letters(*[60] * 20))
            ],
            4,
            f"{INCOMPLETE}16 of 20 rows of base are missing (80 %: 16 have no partner)",
            id="other rows",
        ),
        pytest.param(letters(*[60] * 20) * 2, 2, "Use --duplicates first", id="doubled"),
        pytest.param(
            [row | {"id": f"other {row['id']}", "question": "else?"} for row in letters(*[60] * 20)],
            2,
            "no row of new matches a row of base",
            id="another file",
        ),
    ],
)
def test_a_regression_fails_the_gate_and_says_why(
    compare: Compare, candidate: list[dict[str, Any]], code: int, message: str
) -> None:
    done = compare(letters(*[50] * 20), candidate, options=ANY_DROP)
    assert done.exit_code == code, done.stderr
    assert message in done.stderr


def test_a_share_of_missing_rows_is_allowed_and_empty_answers_count_as_wrong(compare: Compare) -> None:
    before, after = letters(*[50] * 20), letters(*[52] * 19, 0)
    assert compare(before, after, options=(*ANY_DROP, "--allow-missing", "4.9%")).exit_code == 4
    dropped = compare(before, after, options=("--fail-if", "smile.mean < -0.005", "--allow-missing", "5%"))
    # 19 answers rose by .02, and one fell from .5 to 0.
    assert (dropped.exit_code, "the value is -0.006" in dropped.stderr) == (4, True)
    assert compare(before, after, options=(*ANY_DROP, "--allow-missing", "0.05")).exit_code == 0
    rows = [line for line in dropped.stdout.splitlines() if "0 and 1 " in line]
    assert rows
    assert "-0.0060" in rows[0]


def test_the_baselines_empty_answers_are_not_missing(compare: Compare) -> None:
    assert compare(letters(*[50] * 10, *[0] * 10), letters(*[50] * 20), options=ANY_DROP).exit_code == 0


def test_missing_rows_are_named_in_the_document_and_on_the_page(compare: Compare, tmp_path: Path) -> None:
    document, page = tmp_path / "figures.json", tmp_path / "page.html"
    options = (*ANY_DROP, "--json", document, "--html", page)
    assert compare(letters(*[50] * 20), letters(*[60] * 19), options=options).exit_code == 4
    (incomplete,) = json.loads(document.read_text())["incomplete"]
    assert incomplete.startswith("new is incomplete for smile: 1 of 20 rows of base are missing")
    assert incomplete in page.read_text()


def test_a_sign_test_of_nothing_is_no_pass(compare: Compare) -> None:
    options = ("--fail-if", "smile.wins.p < 0.05", "--allow-missing", "100%")
    done = compare(letters(*[0] * 20), letters(*[0] * 20), options=options)
    assert done.exit_code == 2
    assert "wins.p of new is undefined: no pair has smile scores for both answers" in done.stderr
    assert "p = nan" not in done.stdout


def test_out_has_a_line_for_each_pair_and_the_scores_stand_beside_it(compare: Compare, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    assert compare(letters(10, 20), letters(50, 20), options=("--out", out)).exit_code == 0
    first, second = read_rows(out.read_text())
    assert (first["model_a"], first["model_b"], first["winner"], second["winner"]) == ("base", "new", "model_b", "tie")
    assert first["by"].startswith("smile")
    assert first["scores"] == {"smile": {"a": 0.1, "b": 0.5}}
    assert (first["question"], first["length_a_words"]) == ("question 0?", 1)
    scores = read_rows((tmp_path / "pairs.scores.jsonl").read_text())
    assert [row["scores"]["smile"]["score"] for row in scores] == [0.1, 0.2, 0.5, 0.2]
    again = compare(letters(10, 20), letters(50, 20), options=("--out", out))
    assert again.exit_code == 2
    assert "exists. Use --resume to continue it, or --overwrite" in again.stderr


def test_resume_scores_nothing_again_and_gives_the_same(compare: Compare, tmp_path: Path) -> None:
    out, files = tmp_path / "pairs.jsonl", (letters(10, 20), letters(50, 20))
    first = compare(*files, options=("--out", out))
    before = out.read_bytes()
    asked: list[int] = []

    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        asked.append(len(request.items))
        return echo_scores(request, score=lambda _: 0.0)

    again = compare(*files, options=("--out", out, "--resume"), stub=StubTransport(answer))
    assert (again.stdout, out.read_bytes(), sum(asked)) == (first.stdout, before, 0)


def test_another_margin_is_not_mixed_with_earlier_pairs(compare: Compare, tmp_path: Path) -> None:
    out, files = tmp_path / "pairs.jsonl", (letters(10, 20), letters(50, 20))
    compare(*files, options=("--out", out))
    done = compare(*files, options=("--out", out, "--resume", "--tie-margin", "0.5"))
    assert done.exit_code == 2
    assert "was made with other settings: tie_margin was 0.2, now 0.5" in done.stderr
    assert len(read_rows(out.read_text())) == 2


def test_by_names_a_metric_which_is_scored_then(figures: Figures) -> None:
    found = figures(letters(10), letters(50), options=("--by", "exact_match"))
    assert (found["chooser"]["name"], list(found["comparisons"]["new"]["metrics"])) == ("exact_match", ["exact_match"])
    both = figures(letters(10), letters(50), options=("--by", "bleu", "--metrics", "smile"))
    assert (both["chooser"]["name"], list(both["comparisons"]["new"]["metrics"])) == ("bleu", ["smile", "bleu"])


def test_tables_are_written_in_every_form(compare: Compare, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("t.csv", "t.md", "t.tex")]
    options = ("--csv", files[0], "--markdown", files[1], "--latex", files[2])
    assert compare(letters(10, 20), letters(50, 20), options=options).exit_code == 0
    assert "new minus base: 2 pairs,smile,difference,0.2,,," in files[0].read_text()
    assert "| smile | 2 | 0.150 | 0.350 | +0.2000 |" in files[1].read_text()
    assert r"\caption{new minus base: 2 pairs}" in files[2].read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--names", "a"), "--names a: name each of the 2 files exactly once"),
        (("--names", "a,a"), "--names a,a: a is named twice"),
        (("--names", "a,"), "Use NAME,NAME"),
        (("--models", "x"), "--models x: no row has this model. The file has none"),
        (("--models", "x", "--names", "a,b"), "Leave one out"),
        (("--baseline", "x"), "--baseline x: unknown name. Choose one of base, new"),
        (("--by", "nonsense"), "--by nonsense"),
        (("--by", "smile,bleu"), "--by smile,bleu: name one metric only"),
        (("--tie-margin", "-1"), "'-1' is not a margin. Give a number of at least 0, or verdict"),
        (("--tie-margin", "nan"), "'nan' is not a margin"),
        (("--group-by", "kind"), "--group-by kind: no row has a value in this column"),
        (("--resume",), "--resume and --overwrite need --out FILE"),
        (("--match", "question"), "--match question: no row of new has the same question as a row of base"),
        (("--summary", __file__), "--summary needs outputs of gradewire score, but these files contain answers"),
        (("--html", "page.csv"), ".csv means another format"),
        (("--fail-if", "smile.mean"), "use METRIC.VALUE"),
        (("--fail-if", "smile.mean < 0", "--allow-missing", "2 percent"), "'2 percent' is not a share"),
        (
            ("--fail-if", "smile.mean < 0", "--allow-missing", "101%"),
            "Give a percentage such as 2%, or a number from 0 to 1",
        ),
        (("--fail-if", "smile.mean < 0", "--allow-missing", "nan"), "'nan' is not a share"),
        (("--allow-missing", "2%"), "--allow-missing needs --fail-if. Give both"),
        (("--fail-if", "bleu.mean < 0"), "--fail-if bleu: no such metric. Choose one of smile"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_scored(
    compare: Compare, options: tuple[str, ...], message: str
) -> None:
    scored: list[int] = []

    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        scored.append(len(request.items))
        return echo_scores(request, score=lambda _: 0.0)

    other = (
        [row | {"question": f"another {row['id']}"} for row in letters(20)] if "question" in options else letters(20)
    )
    done = compare(letters(10), other, options=options, stub=StubTransport(answer))
    assert done.exit_code == 2
    assert message in done.stderr
    assert not sum(scored)


def test_a_file_that_is_alone_says_what_is_missing(compare: Compare) -> None:
    done = compare(letters(10))
    assert done.exit_code == 2
    assert "has no column model with a value. Name two files, or one with a column model" in done.stderr
    alone = compare(letters(10, model="m"))
    assert "has only rows of m" in alone.stderr


def test_files_of_nothing_and_of_nonsense_are_refused(compare: Compare, command: Command, tmp_path: Path) -> None:
    assert "new.jsonl has no rows" in compare(letters(10), []).stderr
    nonsense = tmp_path / "nonsense.jsonl"
    nonsense.write_text("{]\n" * 3)
    done = command("compare", write_rows(tmp_path / "base.jsonl", letters(1)), nonsense)
    assert done.exit_code == 2
    assert "no row of nonsense matches a row of base" in done.stderr


def test_hostile_names_and_texts_reach_no_terminal_as_controls(compare: Compare) -> None:
    bad = "\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}evil\ud800"
    before = [row | {"id": bad, "question": bad} for row in letters(10)] + rows("y" * 100_000)
    after = [row | {"id": bad, "question": bad} for row in letters(60)] + rows("z" * 10)
    done = compare(before, after)
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.stdout
    assert "\ud800" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 200


def test_json_holds_no_nan(compare: Compare, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    assert compare(letters(0), letters(0), options=("--json", path)).exit_code == 0
    found = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert found["comparisons"]["new"]["metrics"]["smile"]["difference"]["value"] is None


def test_draws_take_questions_with_the_same_text_together(figures: Figures) -> None:
    """Two instructions for each of four texts: with --draws-over texts, the intervals come from four units."""
    sides = [
        [
            row | {"question_id": str(place), "question": f"text {place // 2}?"}
            for place, row in enumerate(letters(*lengths))
        ]
        for lengths in ((10,) * 8, (20, 20, 30, 30, 40, 40, 50, 50))
    ]
    found = {
        unit: figures(*sides, options=("--draws-over", unit, "--metrics", "smile"))
        for unit in ("instructions", "texts")
    }
    told = {unit: document["comparisons"]["new"]["metrics"]["smile"]["difference"] for unit, document in found.items()}
    assert {unit: estimate["questions"] for unit, estimate in told.items()} == {"instructions": 8, "texts": 4}
    assert told["texts"]["value"] == pytest.approx(told["instructions"]["value"])
    assert [document["bootstrap"]["unit"] for document in found.values()] == ["question", "text"]
    assert "questions with the same text are drawn together" not in found["instructions"]["notes"]
