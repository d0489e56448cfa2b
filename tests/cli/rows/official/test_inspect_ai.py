"""Members of .eval archives: both ways to compress, and archives that are bombs, damaged or closed."""

import itertools
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.damaged_documents import check_rows, mangled

from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.official import inspect_ai
from gradewire_cli.rows.official.inspect_ai import UnreadableMemberError, inspect_records, load_member, open_archive

LOG = Path(__file__).parents[3] / "support/harness_logs/inspect/eval/sums.eval"
NAME = "samples/1_epoch_1.json"


def test_members_that_inspect_compressed_by_zstandard_are_read() -> None:
    with open_archive(str(LOG)) as archive:
        assert archive.getinfo(NAME).compress_type == 93
        assert load_member(archive, NAME)["input"] == "2 + 2 ="


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_of_older_versions_are_read(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "old.eval"
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("a.json", json.dumps({"b": "c" * 999}))
    with open_archive(str(path)) as archive:
        assert load_member(archive, "a.json") == {"b": "c" * 999}


def test_without_pyarrow_the_ways_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with (
        open_archive(str(LOG)) as archive,
        pytest.raises(InputError, match=r"pip install 'gradewire\[parquet\]'; or .*inspect log convert LOG --to json"),
    ):
        load_member(archive, NAME)


def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", b" " * 5_000_000)
        archive.writestr("b.json", b"[]")
    monkeypatch.setattr(inspect_ai, "MAX_MEMBER_BYTES", 1 << 20)
    with open_archive(str(path)) as archive:
        with pytest.raises(UnreadableMemberError, match="would unpack to 4 MiB, more than the limit of 1 MiB"):
            load_member(archive, "a.json")
        assert load_member(archive, "b.json") == []
    monkeypatch.setattr(inspect_ai, "MAX_UNPACKED_BYTES", 1 << 20)
    with pytest.raises(
        InputError, match=r"would unpack to 4 MiB, more than the limit of 1 MiB\. Score the log in parts"
    ):
        open_archive(str(path))


def test_a_member_that_claims_too_little_is_damaged(tmp_path: Path) -> None:
    """What a bomb would do to pass the check of its claims: nothing is unpacked beyond them."""
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", b" " * 5_000_000)
    content = path.read_bytes().replace((5_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    path.write_bytes(content)
    with (
        open_archive(str(path)) as archive,
        pytest.raises(UnreadableMemberError, match=r"damaged|cannot be unpacked"),
    ):
        load_member(archive, "a.json")


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_member_is_told_however_it_is_compressed(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("a.json", json.dumps(list(range(999))))
    content = bytearray(path.read_bytes())
    begin = content.index(b"a.json") + len(b"a.json")
    content[begin + 4 : begin + 60] = bytes(byte ^ 0xFF for byte in content[begin + 4 : begin + 60])
    path.write_bytes(content)
    with (
        open_archive(str(path)) as archive,
        pytest.raises(UnreadableMemberError, match=r"damaged|cannot be unpacked"),
    ):
        load_member(archive, "a.json")


def test_a_member_that_claims_to_be_packed_in_any_size_takes_no_memory_for_it() -> None:
    with open_archive(str(LOG)) as archive:
        archive.getinfo(NAME).compress_size = 1 << 62
        with pytest.raises(UnreadableMemberError, match="cannot be unpacked"):
            load_member(archive, NAME)


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "not a complete"), (b"PK\x03\x04 and no more", "not a complete")]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message), open_archive(str(path)):
        pass
    with pytest.raises(InputError, match="No such file"), open_archive(str(tmp_path / "none.eval")):
        pass


def test_text_that_is_no_json_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", b"{")
        archive.writestr("b.json", b"[" * 100_000)
    with open_archive(str(path)) as archive:
        for name in ("a.json", "b.json"):
            with pytest.raises(UnreadableMemberError, match="is not JSON"):
                load_member(archive, name)


def test_a_member_that_is_not_what_its_checksum_says_is_damaged() -> None:
    """Zstandard's stream has none of its own as inspect writes it."""
    with open_archive(str(LOG)) as archive:
        archive.getinfo(NAME).CRC ^= 1
        with pytest.raises(UnreadableMemberError, match=r"damaged|cannot be unpacked"):
            load_member(archive, NAME)


LOGS = Path(__file__).parents[3] / "support/harness_logs/inspect"
NAMES = ("all_fail", "choices", "free_answers", "sums")
FREE = json.loads((LOGS / "json/free_answers.json").read_text())


def read(path: Path) -> list[Record]:
    return list(inspect_records(str(path)))


def fields_of(records: list[Record], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(record.fields.get(name) for name in names) for record in records if record.fields is not None]


def written(tmp_path: Path, **changes: Any) -> Path:
    """A log of one sample, with these changes of the sample."""
    sample = {**FREE["samples"][3], **changes}
    path = tmp_path / "log.json"
    log = {**FREE, "samples": [sample], "eval": {"task": "mine", "model": "m", "config": {}, "dataset": {}}}
    path.write_text(json.dumps(log))
    return path


@pytest.mark.parametrize("kind", ["json", "eval"])
def test_free_answers_have_the_last_question_all_targets_and_their_epoch(kind: str) -> None:
    records = read(LOGS / kind / f"free_answers.{kind}")
    expected = [
        ("bridge", "When was Tower Bridge opened?", ["1894", "in 1894"], "It was built in 1894, I believe."),
        ("colour", "Which colour has the square?", ["red", "crimson"], "red"),
        ("moon", "What goes round the Earth?", "the Moon", "The Moon"),
        ("recipe", "What is in plain bread?", "water, flour, salt", "flour, water and salt"),
    ]
    assert fields_of(records, "id", "question", "references", "prediction") == [
        (f"free_answers/{name}/{epoch}", *rest) for epoch in (1, 2) for name, *rest in expected
    ]
    assert [record.index for record in records] == list(range(10))
    assert [(record.index, record.problem) for record in records if record.fields is None] == [
        (index, "(id broken) failed in inspect: RuntimeError('the tool gave no answer')") for index in (1, 6)
    ]
    assert fields_of(records, "task", "model", "epoch", "metadata.topic")[0] == (
        "free_answers",
        "mockllm/model",
        1,
        "history",
    )
    scores = ("inspect_includes", "inspect_f1", "inspect_lengths_short", "inspect_lengths_words", "inspect_f1_answer")
    assert fields_of(records, *scores)[0] == (1.0, 0.44, 0.0, 7, "It was built in 1894, I believe.")
    assert fields_of(records, "inspect_includes")[3] == (0.0,)


def test_a_picture_in_the_input_is_the_rows() -> None:
    pictures = fields_of(read(LOGS / "eval/free_answers.eval"), "image")
    assert [picture is not None for (picture,) in pictures] == [False, True, False, False] * 2
    assert pictures[1][0].startswith("data:image/png;base64,iVBOR")


@pytest.mark.parametrize("kind", ["json", "eval"])
def test_letters_of_choices_become_their_texts(kind: str) -> None:
    names = ("id", "question", "references", "prediction", "raw_response", "inspect_choice")
    assert fields_of(read(LOGS / kind / f"choices.{kind}"), *names) == [
        ("choices/1", "Which of these is a metal?", ["iron"], "iron", "ANSWER: B", 1.0),
        ("choices/2", "Which two are birds?", ["owl, swan"], "owl", "ANSWER: A", 0.0),
        ("choices/3", "Which one is a fruit?", ["pear"], "The pear, of course", "The pear, of course", 0.0),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_of_a_log_give_the_same_rows(name: str) -> None:
    in_json, archived = (read(LOGS / kind / f"{name}.{kind}") for kind in ("json", "eval"))
    assert [(record.fields, record.problem) for record in in_json] == [
        (record.fields, record.problem) for record in archived
    ]
    assert in_json


def test_samples_that_the_run_did_not_reach_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**FREE, "samples": FREE["samples"][:7]}))
    missing = [record for record in read(path) if "is not in the log" in record.problem]
    assert [record.position for record in missing] == [
        f"sample {name} of epoch 2" for name in ("moon", "colour", "recipe")
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"input": [{"role": "user", "content": "One?"}, {"role": "user", "content": "Two?"}]}, "Two?"),
        ({"input": [{"role": "system", "content": "Only this."}]}, "Only this."),
        ({"input": [{"role": "user", "content": [{"type": "image", "image": "https://x/y.png"}]}]}, ""),
        ({"input": "attachment://far", "attachments": {"far": "A long one?"}}, "A long one?"),
        ({"input": "attachment://lost"}, "attachment://lost"),
    ],
)
def test_questions_of_any_input(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    assert fields_of(read(written(tmp_path, **changes)), "id", "question", "image") == [("mine/moon", expected, None)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [("C", 1.0), ("P", 0.5), ("N", 0.0), (True, 1.0), (0.25, 0.25), ("seven", "seven"), ([1, 2], [1, 2])],
)
def test_grades_are_numbers_as_inspects_own_figures_take_them(tmp_path: Path, value: Any, expected: Any) -> None:
    scores = {"own": {"value": value}}
    assert fields_of(read(written(tmp_path, scores=scores)), "inspect_own") == [(expected,)]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"output": None}, "has no output"),
        ({"output": "text"}, "has an output that is not an object"),
        ({"id": None}, "has no id"),
        ({"error": {"message": "too late"}, "scores": {}}, "failed in inspect: too late"),
    ],
)
def test_samples_that_cannot_be_used_say_why(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    (record,) = read(written(tmp_path, **changes))
    assert record.fields is None
    assert problem in record.problem


def test_a_sample_that_was_scored_despite_its_error_is_a_row(tmp_path: Path) -> None:
    assert fields_of(read(written(tmp_path, error={"message": "too late"})), "prediction") == [("The Moon",)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "is not a log from inspect: eval or status is missing .its fields: list"),
        ('{"a": 1}', "eval or status is missing .its fields: a"),
        ('{"eval": 3, "status": "success", "samples": []}', "eval is missing"),
        ('{"eval": {}, "status": "success"}', "Run inspect without --no-log-samples"),
        ("{", "is not a log from inspect, which is one JSON object"),
        (
            '{"doc_id": 1, "filtered_resps": [], "arguments": {}}\n{}\n',
            "looks like a log from lm-eval. Use --from lm-eval",
        ),
    ],
)
def test_files_of_others_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read(path)


def test_archives_without_a_header_are_read_as_far_as_they_go_or_refused(tmp_path: Path) -> None:
    """A run that was killed leaves no header."""
    killed, other = tmp_path / "killed.eval", tmp_path / "other.eval"
    for path, names in ((killed, ("_journal/start.json", "samples/moon_epoch_1.json")), (other, ("a.json",))):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                content = {"eval": FREE["eval"]} if name.startswith("_") else FREE["samples"][3]
                archive.writestr(name, json.dumps(content))
    records = read(killed)
    assert fields_of(records, "id", "prediction") == [("free_answers/moon/1", "The Moon")]
    assert sum("is not in the log" in record.problem for record in records) == 9
    with pytest.raises(InputError, match=r"header\.json and _journal"):
        read(other)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(NAMES), st.data())
def test_mangled_logs_are_rows_problems_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    document = json.loads((LOGS / f"json/{name}.json").read_text())
    sample = data.draw(mangled(document["samples"][0]))
    head = data.draw(st.just(document) | mangled({key: document[key] for key in ("eval", "status")}))
    log = {**head, "samples": [sample, *document["samples"][1:]]} if isinstance(head, dict) else head
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    check_rows(inspect_records, path)
    archive = bytearray((LOGS / f"eval/{name}.eval").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
    packed = tmp_path / "log.eval"
    packed.write_bytes(bytes(archive[: data.draw(st.integers(0, len(archive)) | st.just(len(archive)))]))
    check_rows(inspect_records, packed)


@pytest.mark.parametrize(
    ("completion", "extracted"),
    [
        ("B", "swan"),
        ("It swims.\n\nANSWER: B", "swan"),
        ("ANSWER: A\nNo.\nanswer: (C)", "crow"),
        ("ANSWER: A, C", "owl, crow"),
        ("ANSWER: a bird", None),
        ("ANSWER: D", None),
        ("Owls hunt at night, so the answer is (A).", "owl"),
        ("It is not A. Only C fits.", "crow"),
        ("", None),
    ],
)
def test_letters_of_a_run_without_scores_are_read_from_the_answer(
    tmp_path: Path, completion: str, extracted: str | None
) -> None:
    choices, output = ["owl", "swan", "crow"], {"completion": completion}
    (record,) = read(written(tmp_path, choices=choices, target="B", scores=None, output=output))
    fields = record.fields or {}
    prediction = extracted if completion in {"B", "ANSWER: A, C"} else completion
    assert (fields["prediction"], fields["references"], fields["raw_response"]) == (prediction, ["swan"], completion)
    assert fields.get("extracted") == extracted


def test_the_first_scorer_that_read_letters_counts(tmp_path: Path) -> None:
    scores = {"f1": {"value": 0.0, "answer": "the swan"}, "choice": {"value": "C", "answer": "B"}}
    output = {"completion": "ANSWER: A"}
    records = read(written(tmp_path, choices=["owl", "swan"], target="B", scores=scores, output=output))
    assert fields_of(records, "prediction")[0] == ("swan",)


def test_epochs_that_a_log_claims_are_missed_up_to_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    spec = {"task": "t", "model": "m", "config": {"epochs": 10**12}, "dataset": {"sample_ids": ["a"]}}
    path.write_text(json.dumps({**FREE, "samples": [], "eval": spec}))
    records = list(itertools.islice(inspect_records(str(path)), 1001))
    assert len(records) == 1000
    assert records[-1].problem.startswith("is not in the log")
    assert records[-1].id == "t/a/1000"


def test_of_several_pictures_none_is_the_row_s(tmp_path: Path) -> None:
    shown = [{"type": "image", "image": f"data:image/png;base64,{each}"} for each in ("AA==", "AQ==")]
    asked = [{"role": "user", "content": [{"type": "text", "text": "Which?"}, *shown]}]
    (record,) = read(written(tmp_path, input=asked))
    assert record.fields is not None
    assert (record.fields["question"], "image" in record.fields) == ("Which?", False)
    (record,) = read(written(tmp_path, input=[{"role": "user", "content": shown[:1]}]))
    assert (record.fields or {})["image"] == shown[0]["image"]


@pytest.mark.parametrize(
    ("target", "answer"), [(["A", "Z"], "A, Z"), (["A", "?"], "A, ?"), ("AB", "AB"), (["A", "A"], "A, A")]
)
def test_letters_of_which_one_names_no_choice_stay_letters(tmp_path: Path, target: Any, answer: str) -> None:
    """Half of an answer would be another answer."""
    scores = {"choice": {"value": "C", "answer": answer}}
    output = {"completion": "I say so"}
    records = read(written(tmp_path, choices=["owl", "swan"], target=target, scores=scores, output=output))
    assert fields_of(records, "prediction", "references") == [("I say so", target)]


def test_choices_behind_z_are_numbers(tmp_path: Path) -> None:
    """As inspect 0.3.285 logs them: its own score of this sample is 1."""
    scores = {"choice": {"value": "C", "answer": "3"}}
    choices = [f"option {place}" for place in range(30)]
    many = {"choices": choices, "target": "3", "output": {"completion": "ANSWER: 3"}}
    records = read(written(tmp_path, **many, scores=scores))
    assert fields_of(records, "prediction", "references") == [("option 28", ["option 28"])]
    few = read(written(tmp_path, **{**many, "choices": choices[:26]}, scores=scores))
    assert fields_of(few, "prediction", "references") == [("ANSWER: 3", "3")]


@pytest.mark.parametrize(
    ("output", "prediction"),
    [
        ({"choices": [{"message": {"role": "assistant", "content": "Flour"}}]}, "Flour"),
        ({"choices": [{"message": {"content": [{"type": "reasoning"}, {"type": "text", "text": "Water"}]}}]}, "Water"),
        ({"completion": "Salt", "choices": [{"message": {"content": "Flour"}}]}, "Salt"),
        ({"completion": "", "choices": [{"message": {"content": "Flour"}}]}, ""),
        ({"choices": [{"message": None}]}, ""),
        ({"choices": [7]}, ""),
        ({}, ""),
    ],
)
def test_an_output_that_is_not_summed_up_has_its_first_message(
    tmp_path: Path, output: dict[str, Any], prediction: str
) -> None:
    assert fields_of(read(written(tmp_path, output=output)), "prediction") == [(prediction,)]


def test_an_archive_by_another_name_is_told_how_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes((LOGS / "eval/sums.eval").read_bytes())
    with pytest.raises(InputError, match=r"needs a name that ends in \.eval"):
        read(path)
