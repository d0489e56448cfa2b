"""Outputs of earlier runs of `gradewire score` as input."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.compare.conftest import Rows, letters
from tests.cli.conftest import Command, read_rows, write_rows

from gradewire.testing import StubTransport, echo_scores
from gradewire_cli.compare import earlier_outputs
from gradewire_cli.results.manifest import InputDigest, read_manifest, write_manifest
from gradewire_cli.results.manifest_entries import file_digest, manifest_path
from gradewire_cli.results.resumable_output import lines_of, with_lines
from gradewire_proto.v1 import scoring_pb2

Score = Callable[..., Path]


@pytest.fixture
def score(command: Command, tmp_path: Path) -> Score:
    """Scores rows as the command does, and gives the output."""

    def run(name: str, rows: Rows, *options: str | Path, **how: Any) -> Path:
        file, out = write_rows(tmp_path / f"{name}-answers.jsonl", rows), tmp_path / f"{name}.jsonl"
        done = command("score", file, "--out", out, "--quiet", "--fail-on", "never", *options, **how)
        assert done.exit_code == 0, done.output
        return out

    return run


def never(_: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    raise AssertionError("stored scores are not scored again")


def compared(command: Command, *arguments: str | Path) -> dict[str, Any]:
    figures = Path(arguments[0]).with_name("figures.json")
    done = command("compare", *arguments, "--quiet", "--json", figures, stub=StubTransport(never))
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(figures.read_text())
    return document


def test_stored_scores_give_the_figures_of_a_run_that_scores(command: Command, score: Score, tmp_path: Path) -> None:
    before, after = letters(*range(1, 31)), letters(*range(50, 20, -1))
    stored = compared(command, score("base", before), score("new", after))
    answers = [tmp_path / "base-answers.jsonl", tmp_path / "new-answers.jsonl"]
    done = command("compare", *answers, "--names", "base,new", "--quiet", "--json", tmp_path / "scored.json")
    assert done.exit_code == 0, done.output
    scored = json.loads((tmp_path / "scored.json").read_text())
    assert stored["comparisons"]["new"]["metrics"] == scored["comparisons"]["new"]["metrics"]
    assert stored["comparisons"]["new"]["outcomes"] == scored["comparisons"]["new"]["outcomes"]
    assert stored["chooser"] == scored["chooser"]


def test_a_gate_over_outputs_without_questions_trusts_no_ids(command: Command, score: Score) -> None:
    files = [score("base", letters(*[50] * 12)), score("new", letters(*[90] * 12))]
    gate = ("--quiet", "--fail-if", "smile.mean < -0.01")
    done = command("compare", *files, *gate, stub=StubTransport(never))
    assert done.exit_code == 4, done.output
    assert "12 of 12 pairs of base and new have nothing but the id in common, which does not prove" in done.stderr
    assert "--keep-columns all, or use --match id" in done.stderr
    assert command("compare", *files, *gate, "--match", "id", stub=StubTransport(never)).exit_code == 0
    kept = [score(name, letters(*[50] * 12), "--keep-columns", "all") for name in ("first", "second")]
    assert command("compare", *kept, *gate, stub=StubTransport(never)).exit_code == 0


def test_a_gate_compares_no_answers_to_different_references(command: Command, score: Score) -> None:
    rows = letters(*[50] * 12)
    changed = [{**row, "references": [row["prediction"]]} if number < 3 else row for number, row in enumerate(rows)]
    files = [score("base", rows, "--keep-columns", "all"), score("new", changed, "--keep-columns", "all")]
    gate = ("--quiet", "--fail-if", "smile.mean < -0.01")
    done = command("compare", *files, *gate, stub=StubTransport(never))
    assert done.exit_code == 4, done.output
    assert "3 of 12 rows of base are missing (25 %: 3 have different references)" in done.stderr
    assert command("compare", *files, *gate, "--allow-missing", "25%", stub=StubTransport(never)).exit_code == 0


@pytest.mark.parametrize("kept", ["all", ""])
def test_a_table_of_scores_is_not_scored_again(command: Command, tmp_path: Path, kept: str) -> None:
    rows, files = write_rows(tmp_path / "answers.jsonl", letters(*[50] * 4)), [tmp_path / "a.csv", tmp_path / "b.csv"]
    for out in files:
        options = ("--keep-columns", kept) if kept else ()
        assert command("score", rows, "--out", out, "--quiet", *options).exit_code == 0
    done = command("compare", *files, "--quiet", stub=StubTransport(never))
    said = "is a table of gradewire score" if kept else "is an output of gradewire score that did not keep this column"
    assert (done.exit_code, said in done.stderr, "--keep-columns all" in done.stderr) == (2, True, True), done.output


def test_resume_takes_no_winner_by_scores_that_have_changed(command: Command, score: Score, tmp_path: Path) -> None:
    files, out = [score("base", letters(*[50] * 12)), score("new", letters(*[90] * 12))], tmp_path / "pairs.jsonl"
    compared(command, *files, "--out", out)
    files[1].write_text(files[1].read_text().replace('"score": 0.9', '"score": 0.1'))
    side = compared(command, *files, "--out", out, "--resume")["comparisons"]["new"]
    assert side["metrics"]["smile"]["difference"]["value"] == pytest.approx(-0.4)
    assert (side["outcomes"]["smile"]["wins"], side["outcomes"]["smile"]["losses"]) == (0, 12)
    assert {row["winner"] for row in read_rows(out.read_text())} == {"model_a"}


def test_an_output_with_a_former_name_of_a_metric_is_compared_with_one_of_now(command: Command, score: Score) -> None:
    files = [score("base", letters(*[50] * 12)), score("new", letters(*[90] * 12))]
    for file, name in zip(files, ("calibrated", "correctness"), strict=True):
        file.write_text(file.read_text().replace('"smile', f'"{name}'))
    side = compared(command, *files, "--by", "calibrated", "--match", "id", "--fail-if", "calibrated.wins < 0")[
        "comparisons"
    ]["new"]
    assert side["metrics"]["correctness"]["difference"]["value"] == pytest.approx(0.4)


def test_rows_of_two_definitions_in_one_file_are_refused(command: Command, score: Score) -> None:
    base, new = score("base", letters(*[50] * 4)), score("new", letters(*[90] * 4))
    other = new.read_text().replace("smile/1?", "smile/2?").replace('"id": "q', '"id": "r')
    new.write_text(new.read_text() + other)
    done = command("compare", base, new, "--quiet", stub=StubTransport(never))
    assert done.exit_code == 2
    assert f"{new} line 5 was scored by smile/2?" in done.stderr
    assert "Split the file, or score all rows again" in done.stderr


def test_a_file_without_its_first_row_says_that_its_definitions_are_not_known(command: Command, score: Score) -> None:
    base, new = score("base", letters(*[50] * 4)), score("new", letters(*[90] * 4))
    new.write_text("".join(new.read_text().splitlines(keepends=True)[1:]))
    found = compared(command, base, new)
    assert any(
        note.startswith(f"{new}: the first row, which defines the metrics, is missing") for note in found["notes"]
    )


def test_kept_columns_are_the_texts_that_are_shown(command: Command, score: Score) -> None:
    files = [score(name, letters(count), "--keep-columns", "all") for name, count in (("base", 10), ("new", 60))]
    (gained,) = compared(command, *files)["comparisons"]["new"]["changed"]["smile"]["gained"]
    assert (gained["question"], gained["candidate_answer"], gained["references"]) == ("question 0?", "x" * 60, ["cat"])


def test_without_kept_columns_ids_match_and_a_note_says_what_is_missing(command: Command, score: Score) -> None:
    found = compared(command, score("base", letters(10, 20)), score("new", letters(20, 10)[::-1]))
    assert found["comparisons"]["new"]["metrics"]["smile"]["difference"]["value"] == pytest.approx(0.0)
    assert found["comparisons"]["new"]["matched_by"] == "id"
    assert "Keep them with gradewire score --keep-columns all" in found["notes"][0]


def test_outputs_of_nameless_rows_are_matched_by_their_numbers_and_that_is_told(command: Command, score: Score) -> None:
    nameless = [
        [{"references": ["cat"], "prediction": row["prediction"]} for row in letters(*n)] for n in ((1, 2), (9, 9))
    ]
    files = [score(name, rows) for name, rows in zip(("base", "new"), nameless, strict=True)]
    done = command("compare", *files, "--quiet", stub=StubTransport(never))
    assert "rows of base and new are matched by row number, because they have neither ids nor questions" in done.stdout


def test_a_folder_of_parts_is_one_output(command: Command, score: Score, tmp_path: Path) -> None:
    base, new = score("base", letters(10, 20, 30)), score("new", letters(20, 20, 50))
    lines = new.read_bytes().splitlines(keepends=True)
    folder = tmp_path / "parts"
    folder.mkdir()
    # As bulk leaves it: the first row of each part has the lines of the metrics.
    first = json.loads(lines[0])
    parts = [b"".join(lines[:2]), json.dumps(with_lines(json.loads(lines[2]), lines_of(first))).encode() + b"\n"]
    for number, part in enumerate(parts):
        (folder / f"part-00000-000000{number}.done.jsonl").write_bytes(part)
    (folder / "part-00000-0000001.unanswered.jsonl").write_bytes(b"an earlier try")
    manifest_path(new).rename(folder / "manifest.json")
    found, expected = compared(command, base, folder), compared(command, base, new)
    assert found["comparisons"]["parts"]["metrics"] == expected["comparisons"]["new"]["metrics"]
    told = [each["fact"] for each in found["comparisons"]["parts"]["manifest_differences"]]
    assert told[0] == "file"
    assert "gradewire version" not in told
    assert not [note for note in found["notes"] if "manifest" in note]
    for part in folder.glob("part-*"):
        part.unlink()
    refused = command("compare", base, folder, "--quiet", stub=StubTransport(never))
    assert (refused.exit_code, "is a folder, but contains no parts of gradewire bulk" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (None, "has no manifest (new.jsonl.manifest.json)"),
        ("{", "is not JSON; the comparison"),
        ("[]", "its format is not gradewire-manifest/1; the comparison"),
        ('{"format": "gradewire-manifest/7"}', "has format gradewire-manifest/7"),
        ('{"format": "gradewire-manifest/1", "command": 3}', "command must be a string, not a whole number"),
    ],
)
def test_a_manifest_that_says_nothing_is_told_and_the_outputs_are_compared(
    command: Command, score: Score, content: str | None, note: str
) -> None:
    base, new = score("base", letters(10, 20)), score("new", letters(20, 20))
    manifest_path(new).unlink()
    if content is not None:
        manifest_path(new).write_text(content)
    found = compared(command, base, new)
    assert [told for told in found["notes"] if note in told and told.endswith("omits this run's properties")]
    manifest_path(base).unlink()
    manifest_path(new).unlink(missing_ok=True)
    assert not [told for told in compared(command, base, new)["notes"] if "manifest" in told]


def test_a_manifest_of_another_number_of_rows_is_not_that_of_the_output(command: Command, score: Score) -> None:
    base, new = (score(name, letters(10, 20), "--keep-columns", "question") for name in ("base", "new"))
    other = score("other", letters(20, 20, 30))
    manifest_path(other).replace(manifest_path(new))
    (note,) = [told for told in compared(command, base, new)["notes"] if "manifest" in told]
    assert note.endswith(f"is for 3 rows, but {new} has 2; the comparison omits this run's properties")
    # How many rows there are is not known then; the content still is.
    some = compared(command, base, new, "--where", "question=question 0?")
    (note,) = [told for told in some["notes"] if "manifest" in told]
    assert "is a different output or has changed" in note


def test_one_output_with_models_is_compared_by_model(command: Command, score: Score) -> None:
    rows = [row | {"model": model} for model, n in (("a", (10, 20)), ("b", (20, 50))) for row in letters(*n)]
    found = compared(command, score("runs", rows, "--keep-columns", "model"))
    assert found["comparisons"]["b"]["metrics"]["smile"]["difference"]["value"] == pytest.approx(0.2)


def test_what_differs_in_lines_counts_and_summaries_is_told(command: Command, score: Score, tmp_path: Path) -> None:
    def other(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = echo_scores(request, score=lambda _: 0.5)
        for provenance in reply.provenance:
            provenance.line += "&model=other@abc"
        return reply

    summaries = [tmp_path / "base-summary.json", tmp_path / "new-summary.json"]
    base = score("base", letters(0, 20), "--summary-json", summaries[0])
    new = score("new", letters(10, 20), "--summary-json", summaries[1], stub=StubTransport(other))
    document = json.loads(summaries[1].read_text())
    document["gradewire_version"], document["run"]["server_version"] = "9.9", "8.8"
    summaries[1].write_text(json.dumps(document))
    found = compared(command, base, new, "--summary", summaries[0], "--summary", summaries[1])["comparisons"]["new"]
    told = {each["fact"]: (each["baseline"], each["candidate"]) for each in found["manifest_differences"]}
    assert told["smile: model"] == ("", "other@abc")
    assert told["smile: EMPTY_PREDICTION"] == ("1", "")
    assert told["smile: OK"] == ("1", "2")
    assert told["gradewire version"][1] == "9.9"
    assert told["server version"] == ("stub", "8.8")
    assert found["metrics_of_different_definitions"] == ["smile"]
    done = command(
        "compare", base, new, "--quiet", "--match", "id", "--fail-if", "smile.mean < 0", stub=StubTransport(never)
    )
    assert (
        "smile: base and new were scored by different definitions (below), so their scores are not comparable"
        in done.stdout
    )
    assert (done.exit_code, "were scored by different definitions of smile" in done.stderr) == (2, True)
    swapped = command("compare", base, new, "--summary", summaries[1], "--summary", summaries[0])
    assert (swapped.exit_code, "does not belong to" in swapped.stderr) == (2, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": float("nan")}, "has score nan"),
        ({"score": None}, "has score None with status 'OK'"),
        ({"score": "0.5"}, "has score '0.5'"),
        ({"score": True}, "has score True"),
        ({"status": 7}, "with status 7"),
    ],
)
def test_scores_that_are_none_are_refused_with_their_place(
    command: Command, score: Score, change: dict[str, Any], message: str
) -> None:
    base, new = score("base", letters(10, 20)), score("new", letters(10, 20))
    lines = [json.loads(line) for line in new.read_text().splitlines()]
    lines[1]["scores"]["smile"] |= change
    new.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = command("compare", base, new)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "line 2" in done.stderr


def test_answers_and_outputs_are_not_mixed(command: Command, score: Score, tmp_path: Path) -> None:
    done = command("compare", score("base", letters(10)), write_rows(tmp_path / "a.jsonl", letters(10)))
    assert done.exit_code == 2
    assert "is an output of gradewire score, but" in done.stderr


def test_outputs_of_other_metrics_share_none(command: Command, score: Score) -> None:
    done = command("compare", score("base", letters(1)), score("new", letters(1), "--metrics", "bleu"))
    assert (done.exit_code, "the outputs share no metric (smile; bleu)" in done.stderr) == (2, True)


def test_of_outputs_only_the_named_metrics_are_compared(command: Command, score: Score) -> None:
    base, new = (score(name, letters(10), "--metrics", "smile,bleu") for name in ("base", "new"))
    found = compared(command, base, new, "--metrics", "bleu")
    assert list(found["comparisons"]["new"]["metrics"]) == ["bleu"]
    done = command("compare", base, new, "--metrics", "bleu,rouge_l")
    assert done.exit_code == 2
    assert "--metrics: the outputs have no rouge_l, but smile, bleu. Score the answers with these" in done.stderr


def test_manifests_beside_the_outputs_say_how_the_runs_differ(command: Command, score: Score, tmp_path: Path) -> None:
    base, new = (score(name, letters(10, 20)) for name in ("base", "new"))
    own = read_manifest(manifest_path(new))
    changed = replace(own, versions=replace(own.versions, server="8.8"), notes=("a column of numbers",))
    write_manifest(manifest_path(new), changed)
    found = compared(command, base, new)["comparisons"]["new"]
    told = {each["fact"]: (each["baseline"], each["candidate"]) for each in found["manifest_differences"]}
    assert told["server version"] == ("stub", "8.8")
    assert told["notes"] == ("", "a column of numbers")
    # The same from elsewhere, by option.
    elsewhere = [manifest_path(path).rename(tmp_path / f"{path.stem}-run.json") for path in (base, new)]
    given = compared(command, base, new, "--summary", elsewhere[0], "--summary", elsewhere[1])["comparisons"]["new"]
    assert given["manifest_differences"] == found["manifest_differences"]
    none = compared(command, base, new)["comparisons"]["new"]
    assert "server version" not in {each["fact"] for each in none["manifest_differences"]}


def test_a_manifest_that_cannot_be_used_is_a_note(command: Command, score: Score) -> None:
    base, new = (score(name, letters(10, 20)) for name in ("base", "new"))
    write_manifest(manifest_path(base), replace(read_manifest(manifest_path(base)), metrics={"smile": "smile/2"}))
    manifest_path(new).write_text('{"format": "gradewire-manifest/2"}')
    done = command("compare", base, new, "--quiet")
    assert done.exit_code == 0
    told = " ".join(done.output.split())
    assert f"{manifest_path(base)} does not belong to {base}, because the metrics differ" in told
    assert "has format gradewire-manifest/2, but this gradewire reads gradewire-manifest/1" in told


def test_manifests_that_were_swapped_are_named(command: Command, score: Score, tmp_path: Path) -> None:
    base, new = (score(name, letters(*n)) for name, n in (("base", (10, 20)), ("new", (20, 40))))
    first, second = (manifest_path(path) for path in (base, new))
    aside = first.rename(tmp_path / "aside.json")
    second.rename(first)
    aside.rename(second)
    digests = [file_digest(path).sha256[:12] for path in (base, new)]
    notes = [told for told in compared(command, base, new)["notes"] if "manifest" in told]
    assert notes == [
        f"{manifest_path(own)} does not belong to {own}: the manifest was written for {other} (SHA-256 {theirs}), but "
        f"{own} has SHA-256 {mine}, so {own} is a different output or has changed; the comparison omits this run's "
        "properties"
        for own, other, mine, theirs in ((base, new, *digests), (new, base, *digests[::-1]))
    ]
    by_option = command("compare", base, new, "--summary", first, "--summary", second, stub=StubTransport(never))
    assert by_option.exit_code == 2
    assert f"--summary {first} does not belong to {base}: the manifest was written for {new}" in by_option.stderr
    right = compared(command, base, new, "--summary", second, "--summary", first)
    assert right["sides"]["base"]["run"]["server_version"] == "stub"


def test_a_manifest_without_the_digest_of_its_output_is_compared_by_metrics_and_rows(
    command: Command, score: Score
) -> None:
    base, new = (score(name, letters(*n)) for name, n in (("base", (10, 20)), ("new", (20, 40))))
    document = json.loads(manifest_path(base).read_text())
    assert document.pop("output")["sha256"] == file_digest(base).sha256
    manifest_path(new).write_text(json.dumps(document))
    found = compared(command, base, new)
    assert not [told for told in found["notes"] if "manifest" in told]
    assert found["sides"]["new"]["run"]["server_version"] == "stub"


def test_inputs_and_parameters_that_differ_are_told(command: Command, score: Score) -> None:
    base, new = (score(name, letters(10, 20)) for name in ("base", "new"))
    shared, long = InputDigest(path="shared.jsonl", bytes=1, sha256="a" * 64), ["x" * 300]
    own = read_manifest(manifest_path(base))
    parameters = {"part_rows": 64, "where": {"kind": ["a"]}, "delimiter": "", "map": {"id": "n"}, "missing": long}
    write_manifest(manifest_path(base), replace(own, inputs=(shared, *own.inputs), parameters=parameters))
    many = [InputDigest(path=f"{number}.jsonl", sha256="b" * 64) for number in range(6)]
    changed = {"part_rows": 64, "where": {"kind": ["b"]}, "map": {}, "missing": [*long, "y"]}
    own = read_manifest(manifest_path(new))
    write_manifest(manifest_path(new), replace(own, inputs=(*many, shared), parameters=changed))
    found = compared(command, base, new)["comparisons"]["new"]
    told = {each["fact"]: (each["baseline"], each["candidate"]) for each in found["manifest_differences"]}
    answers = base.with_name("base-answers.jsonl")
    assert told["inputs"] == (
        f"{answers} (SHA-256 {file_digest(answers).sha256[:12]})",
        ", ".join(f"{number}.jsonl (SHA-256 {'b' * 12})" for number in range(4)) + " and 2 more",
    )
    assert told["parameter where"] == ('{"kind": ["a"]}', '{"kind": ["b"]}')
    assert told["parameter map"] == ('{"id": "n"}', "")
    assert {name for name in told if name.startswith("parameter")} == {
        "parameter where", "parameter map", "parameter missing",
    }  # fmt: skip
    # Of one beginning, and as long as a cell may be.
    before, after = told["parameter missing"]
    assert before != after
    assert max(len(before), len(after)) < 220


def test_options_of_a_run_that_scores_are_told_where_they_differ(command: Command, score: Score) -> None:
    base = score("base", letters(10, 20))
    new = score("new", letters(10, 20, other="y"), "--map", "prediction=other")
    found = compared(command, base, new)["comparisons"]["new"]
    told = {each["fact"]: (each["baseline"], each["candidate"]) for each in found["manifest_differences"]}
    assert told["parameter map"] == ("", '{"prediction": "other"}')


@pytest.mark.parametrize(
    "changes",
    [
        {"output": {"path": "\x1b[31m\a\ud800", "bytes": 1, "sha256": "0" * 64}},
        {"counts": {"rows": 2, "statuses": {"\x1b[31m\a\ud800": 1}}},
        {
            "place": "\x1b[31m\a\ud800",
            "notes": ["\x1b[31m\a\ud800"],
            "parameters": {"\x1b[31m\a\ud800": "\x1b[31m\a\ud800", "long": "\x1b[31m\a\ud800" * 100},
            "inputs": [{"path": "\x1b[31m\a\ud800"}],
        },
    ],
)
def test_texts_of_a_hostile_manifest_reach_no_terminal_as_controls(
    command: Command, score: Score, tmp_path: Path, changes: dict[str, Any]
) -> None:
    base, new = (score(name, letters(10, 20)) for name in ("base", "new"))
    path = manifest_path(new)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    files = ("--json", tmp_path / "figures.json", "--html", tmp_path / "page.html")
    done = command("compare", base, new, "--quiet", *files, stub=StubTransport(never))
    assert (done.exit_code, done.exception) == (0, None), done.output
    by_option = command("compare", base, new, "--quiet", "--summary", path, "--summary", path)
    assert isinstance(by_option.exception, SystemExit | None)
    for told in (done.output, by_option.output):
        # The first of them click takes away itself, where no terminal is.
        assert not {"\x1b", "\a", "\ud800"} & set(told)
    assert "[31m" in done.output


@pytest.mark.parametrize("deep", [200, 400, 925, 1100])
def test_a_hostile_manifest_is_a_note_and_no_traceback(command: Command, score: Score, deep: int) -> None:
    base, new = (score(name, letters(10, 20)) for name in ("base", "new"))
    document = json.loads(manifest_path(base).read_text())
    manifest_path(base).write_text(json.dumps(document | {"times": document["times"] | {"cpu_s": 10**deep}}))
    nested = "[" * deep + "]" * deep
    manifest_path(new).write_text(json.dumps(document)[:-1] + f', "parameters": {{"deep": {nested}}}}}')
    done = command("compare", base, new, "--quiet", stub=StubTransport(never))
    assert (done.exit_code, done.exception) == (0, None), done.output
    assert ("times.cpu_s is too large" in done.output) is (deep > 308)


def test_a_parameter_that_is_nested_too_deeply_has_words() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert earlier_outputs._short({"where": deep}) == "nested too deeply to show"


@pytest.mark.parametrize("summary", ["{}", "[]", "nonsense", '{"run": 1, "metrics": {}}'])
def test_a_summary_that_is_none_is_refused(command: Command, score: Score, tmp_path: Path, summary: str) -> None:
    (tmp_path / "s.json").write_text(summary)
    files = [score(name, letters(1)) for name in ("base", "new")]
    done = command("compare", *files, "--summary", tmp_path / "s.json", "--summary", tmp_path / "s.json")
    assert (done.exit_code, "is neither a summary (gradewire score" in done.stderr) == (2, True)
    few = command("compare", *files, "--summary", tmp_path / "s.json")
    assert (few.exit_code, "name 2 summaries, one for each FILE" in few.stderr) == (2, True)


def test_columns_that_were_not_kept_say_how_to_keep_them(command: Command, score: Score) -> None:
    files = [score(name, letters(1)) for name in ("base", "new")]
    done = command("compare", *files, "--group-by", "kind")
    assert (
        "--group-by kind: no row has a value in this column. Keep columns with gradewire score --keep-columns"
        in done.stderr
    )
    done = command("compare", *files, "--where", "kind=a")
    assert "--where kind: " in done.stderr
    assert "Score the rows again with --keep-columns kind to keep it" in done.stderr
