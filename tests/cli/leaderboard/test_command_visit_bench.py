"""`gradewire leaderboard`, `compare` and `bench pairs` over own files in VisIT-Bench's public forms."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, read_rows, write_rows

from gradewire.testing import StubTransport, echo_comparisons
from gradewire_proto.v1 import judging_pb2

MODELS = {"llava-13b": 40, "otter-9b": 25, "pandagpt-13b": 10}
OPTIONS = ("--from", "visit-bench", "--resamples", "100")


def entries(count: int = 12) -> list[dict[str, Any]]:
    """Every two instructions have the same text. Scores are lengths."""
    return [
        {
            "id": f"vb-{number}",
            "instruction": f"What is number {number // 2}?",
            "family": ("counting", "naming")[number % 2],
            "caption": "A number.",
            "reference": "It is a number.",
            "answers": {model: "a" * letters for model, letters in MODELS.items()},
        }
        for number in range(count)
    ]


def preferences() -> list[dict[str, Any]]:
    """Five people on each pair: four for the model that comes first in MODELS."""
    models = list(MODELS)
    return [
        {
            "image_url": f"https://images.example/{number}.png",
            "instruction": f"What is number {number}?",
            "instruction_category": "naming",
            "A": "a" * MODELS[a],
            "B": "b" * MODELS[b],
            "A_model": a,
            "B_model": b,
            "model_selection.A": vote != 3,
            "model_selection.B": vote == 3,
            "reference": "It is a number.",
        }
        for number in range(6)
        for place, a in enumerate(models)
        for b in models[place + 1 :]
        for vote in range(5)
    ]


def board(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str | Path) -> tuple[str, Any]:
    file, out = write_rows(tmp_path / "visit.jsonl", rows), tmp_path / "board.json"
    done = command("leaderboard", file, *OPTIONS, "--json", out, *options)
    assert done.exit_code == 0, done.output
    return done.output, json.loads(out.read_text())


def test_answers_are_rated_by_a_metric_over_texts_and_families(command: Command, tmp_path: Path) -> None:
    kept = tmp_path / "pairs.jsonl"
    options = ("--by", "rouge_l", "--tie-margin", "0", "--baseline", "otter-9b", "--out", kept)
    output, found = board(command, tmp_path, entries(), *options, "--published", "visit-bench-gpt4")
    assert [line["model"] for line in found["models"]] == list(MODELS)
    assert (found["pairs"], found["instructions"]) == (36, 6)
    assert set(found["groups"]) == {"counting", "naming"}
    assert "36 pairs on 6 distinct instruction texts" in output
    assert found["published"]["visit-bench-gpt4"]["right"]["value"] == 1
    assert "3 of 3" in output
    against = {line["model"]: line["decided_against_reference"] for line in found["models"]}
    assert against == {"llava-13b": 12, "otter-9b": 0, "pandagpt-13b": 12}
    assert "(n=12)" in output
    _, again = board(command, tmp_path, entries(), "--draws-over", "instructions", "--by", "rouge_l")
    assert again["instructions"] == 12
    assert {row["instruction_id"] for row in read_rows(kept.read_text())} == {f"vb-{number}" for number in range(12)}


def test_scores_of_an_earlier_run_rate_as_the_metric_itself_does(command: Command, tmp_path: Path) -> None:
    options = ("--by", "rouge_l", "--tie-margin", "0")
    before = board(command, tmp_path, entries(), *options)[1]
    file, scores = tmp_path / "visit.jsonl", tmp_path / "scores.jsonl"
    scored = ("score", file, "--from", "visit-bench", "--metrics", "rouge_l,bleu", "--out", scores, "--quiet")
    assert command(*scored).exit_code == 0
    silent = StubTransport()  # cannot score
    done = command(
        "leaderboard", file, *OPTIONS, *options, "--scores", scores, "--json", tmp_path / "f.json", stub=silent
    )
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "f.json").read_text())
    assert found["models"] == before["models"]
    assert found["by"] == before["by"]
    missing = command("leaderboard", file, *OPTIONS, "--by", "meteor", "--scores", scores, stub=silent)
    assert (missing.exit_code, "Choose one of rouge_l, bleu" in missing.stderr) == (2, True)
    part = write_rows(tmp_path / "part.jsonl", read_rows(scores.read_text())[:10])
    short = command("leaderboard", file, *OPTIONS, *options, "--scores", part, stub=silent)
    assert (short.exit_code, "Complete it with gradewire score --resume" in " ".join(short.stderr.split())) == (2, True)


@pytest.mark.parametrize(
    "options",
    [("--by", "compare"), ("--judge", "small"), ("--reference-as", "reference"), ("--target-width", "50")],
)
def test_scores_do_not_go_with_a_judge_or_further_answers(
    command: Command, tmp_path: Path, options: tuple[str, ...]
) -> None:
    file = write_rows(tmp_path / "visit.jsonl", entries())
    done = command("leaderboard", file, *OPTIONS, *options, "--scores", file)
    assert (done.exit_code, "--scores has a score for each answer" in " ".join(done.stderr.split())) == (2, True)


def test_ties_are_left_out_of_wins_against_the_baseline(command: Command, tmp_path: Path) -> None:
    rows = entries()
    for row in rows[:5]:
        row["answers"]["llava-13b"] = row["answers"]["otter-9b"]
    output, found = board(command, tmp_path, rows, "--by", "rouge_l", "--tie-margin", "0", "--baseline", "otter-9b")
    llava = next(line for line in found["models"] if line["model"] == "llava-13b")
    assert (llava["decided_against_reference"], llava["against_reference"]["value"]) == (7, 1.0)
    assert "(n=7)" in output


def test_scale_of_elo(command: Command, tmp_path: Path) -> None:
    usual = board(command, tmp_path, entries(), "--by", "rouge_l")[1]
    options = ("--elo-k", "32", "--elo-scale", "200", "--elo-start", "1500", "--by", "rouge_l")
    output, found = board(command, tmp_path, entries(), *options)
    assert found["scale"] == {"k": 32, "scale": 200, "start": 1500}
    for line, before in zip(found["models"], usual["models"], strict=True):
        expected = 1500 + (before["bradley_terry"]["value"] - 1000) / 2
        assert line["bradley_terry"]["value"] == pytest.approx(expected)
    assert found["models"][0]["elo"]["value"] - 1500 > usual["models"][0]["elo"]["value"] - 1000
    assert sum(line["elo_once"] for line in found["models"]) == pytest.approx(4500)
    assert "Elo's K is 32, and a lead of 200 points means odds of 10 to 1" in output


def test_votes_are_read_as_pairs_and_each_counts_if_it_should(command: Command, tmp_path: Path) -> None:
    output, found = board(command, tmp_path, preferences())
    assert (found["pairs"], [line["won"] for line in found["models"]]) == (18, [12, 6, 0])
    output, found = board(command, tmp_path, preferences(), "--each-vote", "--published", "visit-bench-annotators")
    assert [line["model"] for line in found["models"]] == list(MODELS)
    assert [(line["matches"], line["won"]) for line in found["models"]] == [(60, 48), (60, 30), (60, 12)]
    assert "each of 90 votes is a match" in output
    assert found["instructions"] == 6


def test_people_are_read_in_their_public_form_too(command: Command, tmp_path: Path) -> None:
    people = write_rows(tmp_path / "people.jsonl", preferences())
    pairs = [{name: value for name, value in row.items() if "selection" not in name} for row in preferences()[::5]]
    output, found = board(command, tmp_path, pairs, "--by", "rouge_l", "--tie-margin", "0", "--human", people)
    assert found["human"]["pairs"] == 18
    assert found["human"]["strata"]["evaluators"][0]["strata"][0]["stratum"] == "4/5"
    assert found["human"]["systems"]["kendall"]["value"] == pytest.approx(1.0)
    assert "judged 18 pairs by rouge_l" in output
    plain = [
        {"instruction_id": f"vb-{number}", "model_a": "llava-13b", "model_b": "otter-9b", "votes": ["A", "A", "B"]}
        for number in range(12)
    ]
    votes = write_rows(tmp_path / "votes.jsonl", plain)
    _, found = board(command, tmp_path, entries(), "--by", "rouge_l", "--tie-margin", "0", "--human", votes)
    assert found["human"]["pairs"] == 12, "plain votes are read beside official files"


def test_two_judges_show_a_preference_for_the_own_family(command: Command, tmp_path: Path) -> None:
    def rows(judge: str) -> list[dict[str, Any]]:
        """The first judge prefers its own model twice of three; the second, once of three; others are equal."""
        found = []
        for number in range(30):
            for a, b in (("gpt-x", "llama"), ("llama", "other"), ("other", "gpt-x")):
                wins = number % 3 != 0 if "gpt-x" in {a, b} and judge == "gpt-4" else number % 3 == 0
                own_side = (a == "gpt-x") == wins if "gpt-x" in {a, b} else number % 2 == 0
                winner = "model_a" if own_side else "model_b"
                found.append({"instruction_id": number, "model_a": a, "model_b": b, "winner": winner, "by": judge})
        return found

    file, out = write_rows(tmp_path / "pairs.jsonl", [*rows("gpt-4"), *rows("claude")]), tmp_path / "board.json"
    options = ("--control", "own-family", "--model-family", "openai=gpt*", "--resamples", "100", "--json", out)
    done = command("leaderboard", file, *options)
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    # Two of three against one of three: the odds differ by a factor of 4.
    assert found["effects"][0]["odds"]["value"] == pytest.approx(4.0, rel=0.01)
    assert found["family_bias"]["matches"] == 60
    assert found["family_bias"]["won"]["value"] == pytest.approx(2 / 3)
    assert "of the judge's family" in done.stdout
    assert found["model_families"] == {"openai": ["gpt*"]}
    alone = command("leaderboard", write_rows(tmp_path / "alone.jsonl", rows("gpt-4")), *options)
    assert alone.exit_code == 2
    assert "--control own-family depends on the models" in alone.stderr
    without = command("leaderboard", file, "--control", "own-family")
    assert "--control own-family needs --model-family" in without.stderr


def test_references_are_rated_like_a_model(command: Command, tmp_path: Path) -> None:
    """The metric prefers longer answers, and the reference has 15 letters."""
    options = ("--by", "rouge_l", "--tie-margin", "0", "--reference-as", "reference", "--baseline", "reference")
    _, found = board(command, tmp_path, entries(), *options, "--published", "visit-bench-gpt4")
    assert [line["model"] for line in found["models"]] == ["llava-13b", "otter-9b", "reference", "pandagpt-13b"]
    assert [line["against_reference"]["value"] for line in found["models"]] == [1, 1, None, 0]
    assert found["pairs"] == 6 * 12
    file = write_rows(tmp_path / "visit.jsonl", entries())
    taken = command("leaderboard", file, *OPTIONS, *options[:4], "--reference-as", "otter-9b")
    assert "--reference-as otter-9b: there are answers of a model with this name" in taken.stderr
    without = write_rows(tmp_path / "without.jsonl", [{**row, "reference": None} for row in entries()])
    lacking = command("leaderboard", without, *OPTIONS, *options[:4], "--reference-as", "reference")
    assert "no row has references" in lacking.stderr
    votes = write_rows(tmp_path / "votes.jsonl", preferences())
    judged = command("leaderboard", votes, *OPTIONS, "--reference-as", "reference")
    assert judged.exit_code == 2
    assert "need answers, but FILE contains only judged pairs" in judged.stderr


def test_compare_reads_models_of_one_file(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "visit.jsonl", entries()), tmp_path / "found.json"
    options = ("--from", "visit-bench", "--metrics", "rouge_l", "--models", "otter-9b,llava-13b")
    done = command("compare", file, *options, "--resamples", "100", "--json", out)
    assert done.exit_code == 0, done.output
    assert "llava-13b" in done.stdout
    assert "pandagpt-13b" not in done.stdout
    assert "questions with the same text are drawn together" in done.output
    found = json.loads(out.read_text())
    assert found["bootstrap"]["unit"] == "text"
    assert found["comparisons"]["llava-13b"]["metrics"]["rouge_l"]["difference"]["questions"] == 6


def test_bench_pairs_reads_votes_and_weighs_words_by_the_references(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "votes.jsonl", preferences()), tmp_path / "found.json"
    options = ("--from", "visit-bench", "--metrics", "rouge_l,cider", "--resamples", "100", "--json", out)
    done = command("bench", "pairs", file, *options)
    assert done.exit_code == 0, done.output
    assert "counted 6 reference lists" in done.stderr
    found = {each["evaluator"]: each["strata"][-1] for each in json.loads(out.read_text())["report"]["evaluators"]}
    assert found["cider"]["reproduced"]["value"] == 1.0
    assert found["cider"]["pairs"] == 18


def test_a_judge_sees_captions_and_rounds_end_over_texts(command: Command, tmp_path: Path) -> None:
    """The judge prefers the longer answer in both orders, so every model wins or loses all: each text is needed."""
    asked: list[judging_pb2.Pair] = []

    def judge(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        asked.extend(request.pairs)
        return echo_comparisons(request, winner=lambda pair: "a" if len(pair.answer_a) > len(pair.answer_b) else "b")

    file, out = write_rows(tmp_path / "visit.jsonl", entries()), tmp_path / "board.json"
    options = ("--by", "compare", "--target-width", "60", "--all-tables", "--json", out)
    done = command("leaderboard", file, *OPTIONS, *options, stub=StubTransport(compare=judge))
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    assert [line["model"] for line in found["models"]] == list(MODELS)
    assert found["by"].startswith("compare")
    assert set(found["groups"]) == {"counting", "naming"}
    judged = asked[1:]
    assert {tuple(pair.captions) for pair in judged} == {("A number.",)}
    assert {pair.question for pair in judged} == {f"What is number {number}?" for number in range(6)}
    assert found["pairs"] < 36, "the second instruction with a text is not needed"
