import csv
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from tests.cli.conftest import Command, figures_of, write_rows
from tests.cli.judged import CUT_LETTERS, judging_stub, rows_of

from gradewire.testing import StubTransport
from gradewire_cli.results.manifest import read_manifest
from gradewire_proto.v1 import scoring_pb2, types_pb2


def benched(command: Command, tmp_path: Path, name: str, rows: list[dict[str, Any]], *options: str) -> dict[str, Any]:
    """JSON of `bench NAME` on these rows."""
    return figures_of(partial(command, "bench", name, stub=judging_stub()), tmp_path, rows, *options)


def lines(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(line["evaluator"], line["model"]): line for line in document["evaluators"]}


BERTSCORE = "bertscore?with_question=true"


def test_knvqa_scores_its_evaluators_and_equals_scikit_learn(command: Command, tmp_path: Path) -> None:
    rows = rows_of(120)
    document = benched(command, tmp_path, "knvqa", rows)
    assert list(document["metrics"]) == ["lexical_match", "vqa_accuracy", BERTSCORE]
    assert "with_question=true" in document["metrics"][BERTSCORE]["line"]
    for model in ("big", "small"):
        chosen = [row for row in rows if row["model"] == model]
        human = np.array([row["label"] for row in chosen])
        said = np.array([len(row["prediction"]) >= CUT_LETTERS for row in chosen])
        found = lines(document)[BERTSCORE, model]["estimates"]
        assert found["accuracy"]["value"] == pytest.approx(sklearn_metrics.accuracy_score(human, said))
        assert found["f1"]["value"] == pytest.approx(sklearn_metrics.f1_score(human, said))
        assert found["macro_f1"]["value"] == pytest.approx(sklearn_metrics.f1_score(human, said, average="macro"))
        assert found["precision"]["value"] == pytest.approx(sklearn_metrics.precision_score(human, said))
        assert found["recall"]["value"] == pytest.approx(sklearn_metrics.recall_score(human, said))
        assert found["positive_rate"]["value"] == pytest.approx(said.mean())
    human_rates = {model["model"]: model["human_rate"]["value"] for model in document["models"]}
    assert human_rates["big"] == pytest.approx(np.mean([row["label"] for row in rows if row["model"] == "big"]))
    assert {model["mean_length_words"] for model in document["models"]} == {1.0}


def test_knvqa_leaves_failed_rows_out_and_counts_them(command: Command, tmp_path: Path) -> None:
    rows = rows_of(100)
    mixed = [*rows, *({**row, "prediction": "", "id": f"failed-{row['id']}"} for row in rows_of(42, seed=3))]
    before, after = (benched(command, tmp_path, "knvqa", given) for given in (rows, mixed))
    clean, found = lines(before), lines(after)
    for model, other in zip(after["models"], before["models"], strict=True):
        assert model["rows"] == other["rows"] + 21
        assert model["mean_length_words"] == other["mean_length_words"] == 1.0
        line = found[BERTSCORE, model["model"]]
        # People's figures over all rows are other ones; on those that it judged they are those of the rest.
        assert model["human_rate"]["value"] != line["human_rate"]["value"]
        assert line["human_rate"]["value"] == pytest.approx(other["human_rate"]["value"])
        assert (line["human_rank"], line["mean_length_words"]) == (other["human_rank"], 1.0)
    for key, line in found.items():
        assert (line["rows"], line["failed"]) == (clean[key]["rows"], 21)
        for name, estimate in line["estimates"].items():
            assert estimate["value"] == pytest.approx(clean[key]["estimates"][name]["value"])
    done = command("bench", "knvqa", tmp_path / "rows.jsonl", "--resamples", "100", "--all-tables", stub=judging_stub())
    text = " ".join(done.stdout.split())
    assert "Rows without a verdict" in text
    assert "Models as annotators judge them, over all labelled rows" in text
    assert f"Models as annotators judge them, on the rows that {BERTSCORE} judged" in text
    said = next(text for text in done.stdout.splitlines() if f"human, rows of {BERTSCORE}"[:30] in text)
    assert f"{before['models'][0]['human_rate']['value']:.3f} [" in said


def test_knvqa_ranks_and_cuts(command: Command, tmp_path: Path) -> None:
    rows = rows_of(60, model="only")
    document = benched(command, tmp_path, "knvqa", rows, "--metrics", "rouge_l,sbert,meteor", "--cut", "rouge_l=0.05")
    found = lines(document)
    share = np.mean([len(row["prediction"]) >= 5 for row in rows])
    assert found["rouge_l", "only"]["estimates"]["positive_rate"]["value"] == pytest.approx(share)
    assert (found["rouge_l", "only"]["rank"], found["meteor", "only"]["rank"]) == (1, 2)
    # Nobody gave sbert a cut, and it has no verdict of its own.
    assert found["sbert", "only"]["rank"] is None
    assert found["sbert", "only"]["estimates"]["accuracy"]["value"] is None
    assert document["metrics"]["rouge_l"]["cut"] == 0.05


def evaluators_in(page: Path) -> set[str]:
    with page.open(newline="") as stream:
        return {line["row"] for line in csv.DictReader(stream) if line["table"] == "Accuracy"}


def test_knvqa_leaves_an_evaluator_without_verdicts_out_of_the_tables_and_says_so(
    command: Command, tmp_path: Path
) -> None:
    file, page = write_rows(tmp_path / "rows.jsonl", rows_of(60)), tmp_path / "t.csv"
    options = ("--resamples", "100", "--csv", page)
    silent = judging_stub("sbert", "meteor")
    done = command("bench", "knvqa", file, "--metrics", "rouge_l,sbert,meteor", *options, stub=silent)
    assert done.exit_code == 0, done.output
    assert evaluators_in(page) == {"rouge_l"}
    sentence = "has no verdicts, so it is not in the tables. To set the lowest right score, use --cut"
    (sbert,) = [line for line in done.stderr.splitlines() if line.startswith(f"sbert {sentence} 'sbert=SCORE'")]
    name, *arguments = shlex.split(sbert.partition("run: ")[2])
    assert (name, arguments[:3]) == ("gradewire", ["calibrate", "LABELLED_FILE", "--metric"])
    assert arguments[3].startswith("sbert/")
    # A cut can be set for every metric, and fitted only for those that compare vectors.
    (meteor,) = [line for line in done.stderr.splitlines() if line.startswith(f"meteor {sentence}")]
    assert meteor.endswith("--cut 'meteor=SCORE'")
    cut = command("bench", "knvqa", file, "--metrics", "rouge_l,sbert", "--cut", "sbert=0.1", *options, stub=silent)
    assert "has no verdicts" not in cut.stderr
    assert evaluators_in(page) == {"rouge_l", "sbert"}
    # With nothing else to show, the tables keep the metric.
    alone = command("bench", "knvqa", file, "--metrics", "sbert", *options, stub=silent)
    assert alone.exit_code == 0, alone.output
    assert "sbert has no verdicts. To set" in alone.stderr
    assert evaluators_in(page) == {"sbert"}


def test_knvqa_without_flagged_items(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "flags": "time-dependent" if index % 3 == 0 else ""} for index, row in enumerate(rows_of(60))]
    document = benched(command, tmp_path, "knvqa", rows, "--without-flag", "time-dependent")
    flagged = {"rows": {"time-dependent": 20}, "without": ["time-dependent"], "left_out": 20, "proposed": []}
    assert document["flags"] == flagged
    assert sum(model["rows"] for model in document["models"]) == 40


def test_knvqa_shows_the_flags_that_rules_propose_and_keeps_the_rows(command: Command, tmp_path: Path) -> None:
    questions = ["Who won the cup last year?", "Is it raining?", "What colour is the sky?"]
    rows = [{**row, "question": questions[index % 3]} for index, row in enumerate(rows_of(60))]
    plain = [{**row, "question": f"number {index % 3}"} for index, row in enumerate(rows)]
    document, without = (benched(command, tmp_path, "knvqa", given) for given in (rows, plain))
    assert document["flags"]["left_out"] == 0
    assert sum(model["rows"] for model in document["models"]) == 60
    assert lines(document).keys() == lines(without).keys()
    proposed = document["flags"]["proposed"]
    assert len(proposed) == 40
    assert proposed[0] == {
        "id": "row-0",
        "position": "line 1",
        "flag": "time-dependent",
        "reason": "the question has “last year”",
    }
    assert proposed[1]["reason"] == "the question asks for yes or no, but no reference says either (“a”)"
    file, page = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "t.csv"
    done = command("bench", "knvqa", file, "--resamples", "100", "--csv", page, stub=judging_stub())
    assert "rules propose flags (bad-gold 20, time-dependent 20), and no row is left out for them" in done.stderr
    with page.open(newline="") as stream:
        table = [line for line in csv.DictReader(stream) if line["table"] == "Proposed flags"]
    assert {line["row"] for line in table} == {f"row-{index}" for index in range(60) if index % 3 != 2}
    # A flag that the row has already is not proposed again.
    known = [{**row, "flags": "time-dependent, bad-gold"} for row in rows]
    assert benched(command, tmp_path, "knvqa", known)["flags"]["proposed"] == []


def test_knvqa_counts_wrong_verdicts_by_class(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "references": ["xxxxxxxxxxxxxxxxxxxxx"]} for row in rows_of(60)]
    document = benched(command, tmp_path, "knvqa", rows, "--metrics", "lexical_match,sbert,judge_verdict")
    wrong = document["wrong_verdicts"]
    labels = {row["id"]: row["label"] for row in rows}
    said = {row["id"]: len(row["prediction"]) >= CUT_LETTERS for row in rows}
    disagree = {identifier for identifier, label in labels.items() if said[identifier] != label}
    assert {each["id"] for each in wrong} == disagree
    assert len(wrong) == 2 * len(disagree)  # sbert has no verdicts
    for each in wrong:
        assert each["called_right"] is said[each["id"]]
        if each["metric"] == "judge_verdict":
            assert each["error_class"] == ""
        else:
            assert each["error_class"] == ("overall misleading" if each["called_right"] else "synonym")
    page = tmp_path / "t.csv"
    done = command(
        "bench", "knvqa", tmp_path / "rows.jsonl", "--csv", page, "--metrics", "lexical_match", stub=judging_stub()
    )
    assert done.exit_code == 0, done.output
    with page.open(newline="") as stream:
        table = [line for line in csv.DictReader(stream) if line["table"] == "Wrong verdicts by class"]
    counted = {line["row"]: int(line["value"]) for line in table}
    assert sum(counted.values()) == len(disagree)
    assert counted.keys() == {"overall misleading", "synonym"}
    # Labels outside [0, 1] say nothing of right and wrong.
    graded = [{**row, "label": 5 * row["label"]} for row in rows]
    figures = figures_of(partial(command, "agree", stub=judging_stub()), tmp_path, graded, "--metrics", "lexical_match")
    assert {each["called_right"] for each in figures["wrong_verdicts"]} <= {True}


def test_knvqa_counts_given_classes_beside_the_proposals(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "references": ["xxxxxxxxxxxxxxxxxxxxx"], "error_class": "Synonym Error"} for row in rows_of(60)]
    document = benched(command, tmp_path, "knvqa", rows, "--metrics", "lexical_match")
    wrong = document["wrong_verdicts"]
    assert {each["given"] for each in wrong} == {"synonym"}
    page = tmp_path / "t.csv"
    options = ("--csv", page, "--metrics", "lexical_match", "--map", "error_class=error_class")
    assert command("bench", "knvqa", tmp_path / "rows.jsonl", *options, stub=judging_stub()).exit_code == 0
    with page.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    given = [line for line in lines if line["table"] == "Wrong verdicts by given class"]
    assert [(line["row"], int(line["value"])) for line in given] == [("synonym", len(wrong))]
    both = {line["column"]: line for line in lines if line["table"] == "Given and proposed classes"}
    proposed = [each["error_class"] for each in wrong if each["error_class"]]
    assert int(both["wrong verdicts with both"]["value"]) == len(proposed)
    assert float(both["same class"]["text"]) == pytest.approx(proposed.count("synonym") / len(proposed), abs=1e-3)


def test_accuracy_of_models_and_deviation_from_people(command: Command, tmp_path: Path) -> None:
    rows = rows_of(80)
    failed = [{**row, "prediction": ""} for row in rows_of(34, seed=5)]
    clean, document = (
        benched(command, tmp_path, "accuracy", given, "--metrics", "rouge_l,sbert,cider", "--cut", "0.11")
        for given in (rows, [*rows, *failed])
    )
    assert (document["metrics"]["sbert"]["cut"], document["metrics"]["rouge_l"]["cut"]) == (0.11, None)
    for before, after in zip(clean["evaluators"], document["evaluators"], strict=True):
        assert after["mean_absolute_deviation"]["value"] == before["mean_absolute_deviation"]["value"]
        assert sum(cell["failed"] for cell in after["cells"]) == 34
        for judged, alone in zip(after["cells"], clean["human"], strict=True):
            if judged["accuracy"]["value"] is not None:
                assert judged["human"]["value"] == pytest.approx(alone["human"]["value"])
                assert judged["deviation"]["value"] == pytest.approx(
                    judged["accuracy"]["value"] - judged["human"]["value"]
                )
    sbert = next(found for found in clean["evaluators"] if found["evaluator"] == "sbert")
    sizes = []
    for cell in sbert["cells"]:
        chosen = [row for row in rows if (row["dataset"], row["model"]) == (cell["dataset"], cell["model"])]
        said = np.mean([len(row["prediction"]) >= 11 for row in chosen])
        human = np.mean([row["label"] for row in chosen])
        assert cell["accuracy"]["value"] == pytest.approx(said)
        assert cell["deviation"]["value"] == pytest.approx(said - human)
        sizes.append(abs(said - human))
    assert sbert["mean_absolute_deviation"]["value"] == pytest.approx(np.mean(sizes))


def test_printed_deviations_are_the_differences_of_what_is_printed(command: Command, tmp_path: Path) -> None:
    judged = [{**row, "model": "big", "dataset": row["dataset"].replace("nq", "")} for row in rows_of(80)]
    failed = rows_of(24, seed=5, prediction="", label=1, model="big", dataset="")
    file = write_rows(tmp_path / "rows.jsonl", [*judged, *failed])
    page = tmp_path / "tables.md"
    done = command(
        *("bench", "accuracy", file, "--metrics", "rouge_l", "--resamples", "100", "--markdown", page),
        stub=judging_stub(),
    )
    assert done.exit_code == 0, done.output
    cells = [row.strip("| ").split(" | ") for row in page.read_text().splitlines() if row.startswith("| ")]

    def printed(name: str) -> list[float]:
        return [float(row[1].split()[0]) for row in cells if row[0] == name]

    deviation, accuracy = printed("rouge_l")[:2]
    (human,), everyone = printed("human, rows of rouge_l"), printed("human, all rows")
    assert deviation == pytest.approx(accuracy - human, abs=0.0015)
    assert human != everyone[0]
    # "(none)" are the rows without a data set, no total of the others.
    head = next(row for row in cells if row[0] == "metric")
    assert head[1:] == ["(none) big", "tq big", "mean size"]


def test_the_default_cut_is_the_one_of_smiles_table(command: Command, tmp_path: Path) -> None:
    # Scores .01 to .20, so multiplied: of 60, 66, 67 and 70 letters the last two are right from 2/3 upward.
    rows = [{**row, "prediction": "x" * (60, 66, 67, 70)[index % 4]} for index, row in enumerate(rows_of(40))]
    document = benched(command, tmp_path, "accuracy", rows, "--metrics", "sbert")
    assert document["metrics"]["sbert"]["cut"] == pytest.approx(2 / 3)
    cells = document["evaluators"][0]["cells"]
    assert sum(cell["accuracy"]["value"] * cell["judged"] for cell in cells) == pytest.approx(20)


@pytest.mark.parametrize(("name", "statistic"), [("knvqa", "macro-F1"), ("accuracy", "deviation")])
def test_the_draws_behind_the_intervals_are_told(command: Command, tmp_path: Path, name: str, statistic: str) -> None:
    few = [{**row, "model": "rare"} for row in rows_of(6, seed=2)]
    file, page = write_rows(tmp_path / "rows.jsonl", [*rows_of(120), *few]), tmp_path / "tables.md"
    done = command("bench", name, file, "--resamples", "150", "--markdown", page, stub=judging_stub())
    assert done.exit_code == 0, done.output
    for text in (done.stdout, page.read_text()):
        line = next(line for line in text.splitlines() if line.startswith("intervals: draws of whole questions, "))
        assert "150 for" in line
        assert statistic in line
        assert "rare" in next(line for line in text.splitlines() if line.startswith("no interval and no p value"))


def test_cider_takes_no_cut_that_is_for_similarities(command: Command, tmp_path: Path) -> None:
    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = scoring_pb2.ScoreResponse(provenance=[{"name": "cider", "version": 1, "line": "cider/1"}])
        for index, item in enumerate(request.items):
            score = float(len(item.prediction))
            reply.items.add(index=index, id=item.id, complete=True).results.add(score=score, status=types_pb2.STATUS_OK)
        return reply

    file = write_rows(tmp_path / "rows.jsonl", rows_of(20))
    options = ("--metrics", "cider?corpus=prepared", "--reference-set", "s", "--resamples", "100")
    done = command("bench", "accuracy", file, *options, stub=StubTransport(answer))
    assert "cider?corpus=prepared: cider/1, no verdicts (use --cut)" in done.stdout
    done = command("bench", "accuracy", file, *options, "--cut", "cider?corpus=prepared=5", stub=StubTransport(answer))
    assert "cider?corpus=prepared: cider/1, right from 5" in done.stdout


def test_wrong_cuts_say_the_way_out(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", rows_of(10))
    done = command("bench", "knvqa", file, "--cut", "sbert=high")
    assert (done.exit_code, "Use METRIC=SCORE" in done.stderr) == (2, True)
    done = command("bench", "knvqa", file, "--cut", "fame=0.5", stub=judging_stub())
    assert (done.exit_code, "no such metric. Choose one of lexical_match" in done.stderr) == (2, True)


def test_the_list_of_tables(command: Command) -> None:
    listed = command("bench", "--help").stdout
    assert all(name in listed for name in ("accuracy", "ave", "knvqa", "pairs"))
    assert command("bench", "elo").exit_code == 2


def test_a_table_has_a_manifest_beside_its_figures(command: Command, tmp_path: Path) -> None:
    document = benched(
        command, tmp_path, "accuracy", rows_of(40), "--metrics", "smile,exact_match", "--cut", "smile=0.5"
    )
    found = read_manifest(tmp_path / "figures.json.manifest.json")
    assert found.command == "bench accuracy"
    assert found.metrics == {label: each["line"] for label, each in document["metrics"].items()}
    assert found.counts.statuses == {label: each["statuses"] for label, each in document["metrics"].items()}
    assert found.counts.rows == 40
    assert found.parameters["cuts"] == {"smile": 0.5}
    assert (found.parameters["resamples"], found.parameters["seed"]) == (100, 0)
    assert [each.path for each in found.inputs] == [str(tmp_path / "rows.jsonl")]
    assert found.versions.server == "stub"
