"""`gradewire leaderboard` over pairs that were judged elsewhere."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command, write_rows

STRENGTHS = {"alpha": 0.9, "beta": 0.2, "gamma": -0.9}


def pairs(*, instructions: int = 40, seed: int = 0) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    rows = []
    for instruction in range(instructions):
        for a, b in (("alpha", "beta"), ("gamma", "alpha"), ("beta", "gamma")):
            wins = random.random() < 1 / (1 + np.exp(STRENGTHS[b] - STRENGTHS[a]))
            rows.append(
                {
                    "instruction_id": f"q{instruction}",
                    "group": ("counting", "naming")[instruction % 2],
                    "question": f"What is {instruction}?",
                    "model_a": a,
                    "model_b": b,
                    "winner": "model_a" if wins else "model_b",
                    "status": "OK",
                    "orders": [
                        {"first": side, "winner": "model_a" if wins else "model_b"} for side in ("model_a", "model_b")
                    ],
                    "answer_a": "word " * int(random.integers(1, 9)),
                    "answer_b": "word " * int(random.integers(1, 9)),
                }
            )
    return rows


def board(
    command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str | Path
) -> tuple[str, dict[str, Any]]:
    file, figures = write_rows(tmp_path / "pairs.jsonl", rows), tmp_path / "board.json"
    done = command("leaderboard", file, "--resamples", "100", "--json", figures, *options)
    assert done.exit_code == 0, done.output
    return done.output, json.loads(figures.read_text())


def test_models_are_rated(command: Command, tmp_path: Path) -> None:
    output, found = board(command, tmp_path, pairs(), "--baseline", "beta", "--anchor", "beta")
    models = {line["model"]: line for line in found["models"]}
    assert list(models) == ["alpha", "beta", "gamma"]
    assert models["beta"]["bradley_terry"]["value"] == pytest.approx(1000)
    assert models["alpha"]["bradley_terry"]["value"] > 1000 > models["gamma"]["bradley_terry"]["high"]
    assert models["alpha"]["matches"] == 80
    assert 0.5 < models["alpha"]["against_reference"]["value"] < 1
    assert found["both_orders"] == {"pairs": 120, "same_winner": 120}
    assert set(found["groups"]) == {"counting", "naming"}
    for group in found["groups"].values():
        anchored = next(line for line in group if line["model"] == "beta")
        assert anchored["bradley_terry"]["value"] == pytest.approx(1000), "the anchor is one in groups too"
    assert found["position_bias"]["won"]["value"] == pytest.approx(0.5), "both orders say the same"
    assert found["position_bias"]["matches"] == 120, "a pair counts once, each of its orders half"
    assert "beta rated 1000" in output
    assert "use --all-tables to print more tables" in output
    assert "Win shares by group" not in output


@pytest.mark.parametrize(
    ("column", "options"),
    [("family", ()), ("dataset", ()), ("kind", ("--map", "group=kind")), ("kind", ("--map", "family=kind"))],
)
def test_older_names_of_the_group_are_read(
    command: Command, tmp_path: Path, column: str, options: tuple[str, ...]
) -> None:
    rows = [{column if name == "group" else name: value for name, value in row.items()} for row in pairs()]
    _, found = board(command, tmp_path, rows, *options)
    assert set(found["groups"]) == {"counting", "naming"}


def test_one_rule_counts_inconsistent_pairs_in_ratings_and_biases(command: Command, tmp_path: Path) -> None:
    rows = pairs()
    for row in rows[:30]:
        row |= {"winner": None, "status": "INCONSISTENT", "orders": [{"first": "model_a", "winner": "model_a"}]}
    output, found = board(command, tmp_path, rows)
    assert found["without_winner"] == {"INCONSISTENT": 30}
    assert (found["pairs"], found["position_bias"]["matches"]) == (90, 90)
    assert "left out 30 pairs without a winner" in output


def test_all_tables_and_files_have_the_matrix_and_the_groups(command: Command, tmp_path: Path) -> None:
    files = {
        option: tmp_path / f"board{suffix}"
        for option, suffix in (("--csv", ".csv"), ("--latex", ".tex"), ("--markdown", ".md"))
    }
    output, _ = board(
        command,
        tmp_path,
        pairs(),
        "--all-tables",
        "--baseline",
        "beta",
        *(part for pair in files.items() for part in pair),
    )
    assert "Win shares by group" in output
    with files["--csv"].open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert {line["table"] for line in lines} >= {"Ratings", "Bradley-Terry ratings by group"}
    assert r"\toprule" in files["--latex"].read_text()
    assert "| alpha |" in files["--markdown"].read_text()


def test_pairs_without_a_winner_are_left_out_and_counted(command: Command, tmp_path: Path) -> None:
    rows, page = pairs(), tmp_path / "board.html"
    for row, status in zip(rows, ["INCONSISTENT", "UNPARSABLE", "INCONSISTENT"], strict=False):
        row |= {"winner": None, "status": status}
    rows[3] |= {"id": "third", "winner": "unknown"}
    rows[4] |= {"winner": "tie"}
    output, found = board(command, tmp_path, rows, "--html", page)
    assert (found["pairs"], found["contradictory_orders"]) == (118, 2)
    assert found["without_winner"] == {"NO_VERDICT": 1, "UNPARSABLE": 1}
    assert found["examples_without_winner"]["NO_VERDICT"] == [
        {"id": "third", "at": "line 4", "models": [rows[3]["model_a"], rows[3]["model_b"]]}
    ]
    told = "left out 2 pairs without a winner: NO_VERDICT 1 (for example third at line 4), UNPARSABLE 1 (for example "
    assert told in output
    assert "2 pairs count as ties, because their two orders have different verdicts" in output
    assert sum(line["tied"] for line in found["models"]) == 6, "two contradictions and a real tie"
    assert "third at line 4" in page.read_text()
    _, without = board(command, tmp_path, [row for place, row in enumerate(rows) if place not in {1, 3}])
    assert [line["bradley_terry"] for line in found["models"]] == [line["bradley_terry"] for line in without["models"]]


def test_a_pair_without_a_winner_moves_no_share(command: Command, tmp_path: Path) -> None:
    """A file of two rows as an arena writes it: one winner, and one judgement that failed."""
    one = {"question_id": "1", "model_a": "A1", "model_b": "B1", "winner": "model_a"}
    _, found = board(command, tmp_path, [one, {**one, "question_id": "8", "winner": None}])
    assert (found["pairs"], found["without_winner"]) == (1, {"NO_VERDICT": 1})
    assert found["examples_without_winner"]["NO_VERDICT"][0]["id"] == "8"
    assert [(line["model"], line["win_share"]["value"], line["tied"]) for line in found["models"]] == [
        ("A1", 1.0, 0),
        ("B1", 0.0, 0),
    ]


def test_a_model_whose_pairs_all_failed_is_named_without_a_rating(command: Command, tmp_path: Path) -> None:
    failed = {"model_a": "alpha", "model_b": "omega", "winner": None, "question_id": "z"}
    output, found = board(command, tmp_path, [*pairs(), failed])
    assert found["unrated_models"] == ["omega"]
    assert "omega" not in {line["model"] for line in found["models"]}
    assert "no rating, because no pair has a winner: omega" in output


def test_annotators_rows_without_a_vote_are_counted(command: Command, tmp_path: Path) -> None:
    rows = pairs()
    people = write_rows(tmp_path / "people.jsonl", [*rows[:40], {**rows[41], "winner": None}])
    rows[0] |= {"winner": None, "status": "UNPARSABLE"}
    output, found = board(command, tmp_path, rows, "--human", people)
    assert (found["human"]["pairs"], found["human"]["without_winner"]) == (39, 1)
    assert "left out 1 row of annotators: no vote and no winner (first at line 41)" in output
    assert "1 annotated pairs are skipped, because the judge names no winner" in output


def test_a_file_in_which_every_judgement_failed_is_an_error(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "pairs.jsonl", [row | {"winner": None} for row in pairs()])
    done = command("leaderboard", file)
    assert done.exit_code == 2
    assert "found no judged pairs: left out 120 pairs without a winner: NO_VERDICT 120" in done.output


def test_rows_that_are_no_pairs_are_told_and_the_others_rated(command: Command, tmp_path: Path) -> None:
    rows = [*pairs(), {"model_a": "alpha", "model_b": "alpha", "winner": "tie"}, {"winner": "model_a"}]
    output, found = board(command, tmp_path, rows)
    assert found["pairs"] == 120
    assert "left out 1 row: both answers are from the same model (first at line 121)" in output
    assert "left out 1 row: a model has no name (first at line 122)" in output


def test_controls_are_fitted_and_unknown_ones_refused(command: Command, tmp_path: Path) -> None:
    output, found = board(command, tmp_path, pairs(), "--control", "length")
    assert found["controls"] == ["length"]
    assert [line["control"] for line in found["effects"]] == ["length"]
    assert all(line["controlled"] is not None for line in found["models"])
    assert "models are ordered by ratings with length held fixed" in output
    file = tmp_path / "pairs.jsonl"
    assert "'colour' is unknown. Use one or more of" in command("leaderboard", file, "--control", "colour").output
    one_sided = [row | {"answer_a": "", "answer_b": ""} for row in pairs()]
    done = command("leaderboard", write_rows(file, one_sided), "--control", "length")
    assert (done.exit_code, "--control length is unknown" in done.output) == (2, True)


def test_people_are_reproduced_in_strata(command: Command, tmp_path: Path) -> None:
    rows = pairs()
    people = [
        # The sides turned: what people call A is the judge's B.
        {
            "instruction_id": row["instruction_id"],
            "model_a": row["model_b"],
            "model_b": row["model_a"],
            "votes": ["B" if row["winner"] == "model_a" else "A"] * 4 + ["A" if row["winner"] == "model_a" else "B"],
        }
        for row in rows
    ]
    human = write_rows(tmp_path / "human.jsonl", [*people, {"model_a": "alpha", "model_b": "new", "winner": "A"}])
    output, found = board(command, tmp_path, rows, "--human", human)
    judge, length, random = found["human"]["strata"]["evaluators"]
    assert (judge["evaluator"], length["evaluator"], random["evaluator"]) == ("judge", "length", "random")
    assert [(line["stratum"], line["pairs"], line["reproduced"]["value"]) for line in judge["strata"]] == [
        ("4/5", 120, 1.0),
        ("all", 120, 1.0),
    ]
    assert found["human"]["systems"]["kendall"]["value"] == pytest.approx(1.0)
    assert "1 annotated pairs are skipped, because the judge returned no verdict" in output
    output, found = board(command, tmp_path, [*rows[:-1], rows[-1] | {"answer_a": ""}], "--human", human)
    assert [each["evaluator"] for each in found["human"]["strata"]["evaluators"]] == ["judge", "random"]
    assert "1 pairs have unknown lengths, so the baseline 'longer answer' is missing" in output
    alone = write_rows(tmp_path / "other.jsonl", [{"model_a": "v", "model_b": "w", "winner": "A"}])
    assert "contains none of these pairs" in board(command, tmp_path, rows, "--human", alone)[0]


def test_votes_in_the_pairs_themselves_are_people(command: Command, tmp_path: Path) -> None:
    rows = [row | {"votes": ["A", "A", "A", "A", "A"]} for row in pairs()]
    _, found = board(command, tmp_path, rows)
    share = np.mean([row["winner"] == "model_a" for row in rows])
    assert found["human"]["strata"]["evaluators"][0]["strata"][0]["reproduced"]["value"] == pytest.approx(share)


def test_votes_of_several_rows_are_one_pair_whatever_their_sides(command: Command, tmp_path: Path) -> None:
    rows, people = pairs(), []
    for row in rows:
        turned = {"model_a": row["model_b"], "model_b": row["model_a"], "instruction_id": row["instruction_id"]}
        as_judged = "A" if row["winner"] == "model_a" else "B"
        people += [row | {"winner": as_judged}, turned | {"winner": "B" if as_judged == "A" else "A"}]
    _, found = board(command, tmp_path, rows, "--human", write_rows(tmp_path / "human.jsonl", people))
    all_agree, _ = found["human"]["strata"]["evaluators"][0]["strata"]
    assert (all_agree["stratum"], all_agree["pairs"], all_agree["reproduced"]["value"]) == ("2/2", 120, 1.0)


def test_votes_are_not_held_against_themselves(command: Command, tmp_path: Path) -> None:
    rows = [{name: row[name] for name in row if name != "winner"} | {"votes": ["A", "A", "B"]} for row in pairs()]
    output, found = board(command, tmp_path, rows)
    assert found["human"] is None
    assert "the winners of 120 pairs come from annotators' votes, so there is no judge to compare with them" in output


def test_turns_of_a_conversation_are_pairs_of_their_own_for_people(command: Command, tmp_path: Path) -> None:
    """At the first turn the judge says what people say, at the second the opposite."""
    rows = [row | {"turn": turn} for row in pairs() for turn in (1, 2)]
    other = {"model_a": "model_b", "model_b": "model_a"}
    people = [row | {"winner": row["winner"] if row["turn"] == 1 else other[row["winner"]]} for row in rows]
    human = write_rows(tmp_path / "human.jsonl", people)
    _, found = board(command, tmp_path, rows, "--human", human)
    judge = found["human"]["strata"]["evaluators"][0]["strata"]
    assert [(line["stratum"], line["pairs"], line["reproduced"]["value"]) for line in judge] == [
        ("1/1", 240, 0.5),
        ("all", 240, 0.5),
    ]
    without = [{name: row[name] for name in row if name != "turn"} for row in rows[::2]]
    _, found = board(command, tmp_path, without, "--human", human)
    assert found["human"]["strata"]["evaluators"][0]["strata"][0]["reproduced"]["value"] == 0.5
    _, found = board(command, tmp_path, rows, "--human", write_rows(human, without))
    assert found["human"]["pairs"] == 120


def test_columns_may_be_called_otherwise(command: Command, tmp_path: Path) -> None:
    rows = [
        {"left": row["model_a"], "right": row["model_b"], "verdict": row["winner"], "q": row["question"]}
        for row in pairs()
    ]
    maps = [
        part
        for name in ("model_a=left", "model_b=right", "winner=verdict", "instruction=q")
        for part in ("--map", name)
    ]
    _, found = board(command, tmp_path, rows, *maps)
    assert found["instructions"] == 40
    assert found["models"][0]["model"] == "alpha"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--baseline", "delta"], "no model 'delta'. The models are alpha, beta, gamma"),
        (["--anchor", "delta"], "no model 'delta'"),
        (["--map", "colour=x"], "--map colour=x: write FIELD=COLUMN"),
    ],
)
def test_wrong_options_are_told(command: Command, tmp_path: Path, options: list[str], message: str) -> None:
    done = command("leaderboard", write_rows(tmp_path / "pairs.jsonl", pairs()), *options)
    assert done.exit_code == 2
    assert message in done.output


def test_a_file_without_pairs_is_told(command: Command, tmp_path: Path) -> None:
    rows = [{"model_a": "x", "model_b": "y"}]
    done = command("leaderboard", write_rows(tmp_path / "pairs.jsonl", rows))
    assert done.exit_code == 2
    assert "found no judged pairs: left out 1 row: no winner" in done.output


def test_names_of_the_file_cannot_drive_the_terminal(command: Command, tmp_path: Path) -> None:
    rows = [row | {"model_a": row["model_a"].replace("alpha", "al\x1b[31mpha\ud800")} for row in pairs()]
    output, _ = board(command, tmp_path, rows, "--all-tables")
    assert "\x1b" not in output


def test_a_page_is_written_with_the_questionable_pairs(command: Command, tmp_path: Path) -> None:
    rows = pairs()
    rows[4] |= {"winner": None, "status": "INCONSISTENT", "question": "<b>Which?</b>", "probability_a": 0.5}
    rows[4]["orders"] = [{"first": side, "winner": side} for side in ("model_a", "model_b")]
    rows[7] |= {"probability_a": 0.52}
    rows[10] |= {"probability_a": 0.7, "question": "Is it sure?"}
    html = tmp_path / "board.html"
    output, _ = board(command, tmp_path, rows, "--baseline", "beta", "--html", html)
    page = html.read_text()
    assert "&lt;b&gt;Which?&lt;/b&gt;" in page
    assert "A first: A · B first: B" in page
    assert "Is it sure?" not in page
    assert page.index("The two orders have different winners") < page.index("The judge is uncertain")
    assert "board.html: 0.0 MB" in output
    done = command("leaderboard", tmp_path / "pairs.jsonl", "--html", tmp_path / "board.csv")
    assert (done.exit_code, ".csv means another format" in done.output) == (2, True)


def test_a_judge_that_takes_the_first_answer_is_told(command: Command, tmp_path: Path) -> None:
    rows = pairs()
    for row in rows[:80]:
        row["orders"] = [{"first": side, "winner": side} for side in ("model_a", "model_b")]
        row |= {"winner": None, "status": "INCONSISTENT"}
    output, found = board(command, tmp_path, rows)
    assert "both orders have the same winner in 40 of 120 pairs (33.3%)" in output
    assert "this judge hardly distinguishes these answers" in output
    assert found["position_bias"]["won"]["value"] == pytest.approx((160 + 40) / 240)
    assert "this judge hardly" not in board(command, tmp_path, pairs())[0]
