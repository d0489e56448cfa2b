"""What stands for `all`, and what is left out of it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Command, answer, read_rows, write_rows
from tests.cli.judged import rows_of

from gradewire.metrics import METRIC_TYPES
from gradewire.testing import StubTransport
from gradewire_cli.scoring.plan import metrics_not_for
from gradewire_proto.v1 import models_pb2

# Each has what every metric needs.
ROWS = [
    {"question": f"how many {length}", "references": ["a", f"b{length}"], "prediction": "x" * length}
    for length in (20, 40, 90)
]


def listing(*available: str, missing: tuple[str, ...] = ()) -> StubTransport:
    """A server that lists metrics."""
    metrics = [models_pb2.Metric(name=name, available=True) for name in available]
    metrics += [models_pb2.Metric(name=name, available=False) for name in missing]
    return StubTransport(answer, models=models_pb2.ListModelsResponse(metrics=metrics, server_version="stub"))


def labels_of(command: Command, file: Path, metrics: str, stub: StubTransport) -> list[str]:
    done = command("score", file, "--metrics", metrics, "--quiet", stub=stub)
    assert done.exit_code == 0, done.stderr
    return list(read_rows(done.stdout)[0]["scores"])


def test_all_is_what_the_server_can_compute_and_smile(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    # A metric of a later server is not one that this client can ask for.
    server = listing("bleu", "exact_match", "of_tomorrow", missing=("sbert", "smile"))
    assert labels_of(command, file, "all", server) == ["smile", "exact_match", "bleu"]
    with_more = labels_of(command, file, "bleu?max_ngram=2,all", server)
    assert with_more == ["bleu?max_ngram=2", "smile", "exact_match", "bleu"]
    without_judge = [name for name, kind in METRIC_TYPES.items() if not kind.asks_judge()]
    file = write_rows(tmp_path / "b.jsonl", [{**row, "choices": row["references"]} for row in ROWS])
    assert labels_of(command, file, "all", listing(*METRIC_TYPES)) == without_judge


def test_all_leaves_out_what_the_encoder_cannot_compute(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    server = StubTransport(
        answer,
        models=models_pb2.ListModelsResponse(
            metrics=[models_pb2.Metric(name=name, available=True) for name in ("smile", "sbert", "correctness")],
            models=[
                models_pb2.Model(name="judge", kind="judge", is_default=True),
                models_pb2.Model(name="fitted", kind="encoder", is_default=True),
                models_pb2.Model(name="bare", kind="encoder", without_metrics={"correctness": "it has no fit"}),
            ],
        ),
    )
    assert labels_of(command, file, "all", server) == ["correctness", "smile", "sbert"]
    for model in ("bare", "bare@" + "1" * 12):
        done = command("score", file, "--metrics", "all", "--model", model, stub=server)
        assert (done.exit_code, list(read_rows(done.stdout)[0]["scores"])) == (0, ["smile", "sbert"])
        assert "left out of all: correctness (it has no fit)" in done.stderr
    # Who asks for it by name is told by the server what is missing.
    assert "correctness" in labels_of(command, file, "correctness,all", server)


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ("all,bleu", ["smile", "exact_match", "cider", "bleu"]),
        ("bleu,all", ["bleu", "smile", "exact_match", "cider"]),
        ("all,bleu/1,all", ["smile", "exact_match", "cider", "bleu"]),
        ("all,smile:v1", ["exact_match", "bleu", "cider", "smile"]),
        ("all,smile:fast", ["smile", "exact_match", "bleu", "cider", "smile:fast"]),
        ("all,cider?corpus=prepared", ["smile", "exact_match", "bleu", "cider?corpus=prepared"]),
        ("all,bleu?max_ngram=2", ["smile", "exact_match", "bleu", "cider", "bleu?max_ngram=2"]),
    ],
)
def test_all_leaves_out_what_is_written_beside_it(
    command: Command, tmp_path: Path, metrics: str, expected: list[str]
) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    assert labels_of(command, file, metrics, listing("exact_match", "bleu", "cider")) == expected


def test_a_metric_that_is_written_twice_is_refused_beside_all_too(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    done = command("score", file, "--metrics", "all,bleu,bleu", stub=listing("bleu"))
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "Error: metrics has bleu twice: leave out one")


@pytest.mark.parametrize(
    "verb", [("score",), ("agree", "--resamples", "100"), ("bench", "accuracy", "--resamples", "100")]
)
@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_all_says_what_it_leaves_out_and_why(
    command: Command, tmp_path: Path, verb: tuple[str, ...], quiet: tuple[str, ...]
) -> None:
    file = write_rows(tmp_path / "a.jsonl", rows_of(8, references=["a 1", "b"], choices=["a 1", "b"]))
    there = set(METRIC_TYPES) - {"meteor", "sbert", "bertscore", "cider"}
    server = StubTransport(
        answer,
        models=models_pb2.ListModelsResponse(
            metrics=[
                *(models_pb2.Metric(name=name, available=name != "smile", missing="no encoder") for name in there),
                models_pb2.Metric(name="sbert", missing="no encoder"),
                models_pb2.Metric(name="bertscore", missing="no encoder"),
                models_pb2.Metric(name="meteor", missing="WordNet's files are missing"),
            ]
        ),
    )
    done = command(*verb, file, "--metrics", "all", *quiet, stub=server)
    assert done.exit_code == 0, done.output
    assert [line for line in done.stderr.splitlines() if line.startswith("left out")] == [
        "left out of all: sbert, bertscore (no encoder)",
        "left out of all: meteor (WordNet's files are missing)",
        "left out of all: cider (not available on the server)",
    ]
    prepared = command("prepare", file, "--metrics", "all", *quiet, stub=server)
    assert ("left out of all: meteor" in prepared.stderr) is not bool(quiet), "--quiet prints the name and nothing else"


@pytest.mark.parametrize(
    ("metrics", "there"),
    [
        (("all",), False),
        (("all", "--reference-set", "mine"), True),
        (("all,bertscore?idf=prepared&reference_set=mine",), True),
    ],
)
def test_all_on_standard_input_leaves_out_cider_unless_a_set_is_named(
    command: Command, tmp_path: Path, metrics: tuple[str, ...], *, there: bool
) -> None:
    with write_rows(tmp_path / "a.jsonl", ROWS).open("rb") as rows:
        done = command("score", "-", "--metrics", *metrics, stub=listing("bleu", "cider"), stdin=rows)
    assert done.exit_code == 0, done.output
    assert ("cider" in read_rows(done.stdout)[0]["scores"]) is there
    said = "left out of all: cider (needs to count the file's references first, but standard input cannot be read twice"
    assert (said in done.stderr) is not there


@pytest.mark.parametrize(
    ("lacking", "left_out"),
    [
        ({"question": " "}, "sfve (no row has a question)"),
        (
            {"references": ["a"]},
            "vqa_accuracy, soft_vqa_accuracy (some rows have fewer than 2 references, but the metric",
        ),
        (
            {"references": ["a", "b"]},
            "value_match (some rows have no number in their references, but the metric compares dates",
        ),
        ({"references": ["a", "b"]}, "cider (all rows have the same references, so all n-grams weigh the same"),
    ],
)
def test_all_leaves_out_what_no_row_has_the_columns_for(
    command: Command, tmp_path: Path, lacking: dict[str, Any], left_out: str
) -> None:
    file = write_rows(tmp_path / "a.jsonl", [{**row, **lacking} for row in ROWS])
    names = left_out.partition(" (")[0].split(", ")
    done = command("score", file, "--metrics", "all", stub=listing(*METRIC_TYPES))
    assert done.exit_code == 0, done.output
    without_judge = [name for name, kind in METRIC_TYPES.items() if not kind.asks_judge() and name not in names]
    # Where the references are all alike, cider is left out too, where they have no digit, value_match, and where rows
    # have no choices, choice_match.
    others = {"cider", "value_match", "choice_match"}
    scored = [name for name in read_rows(done.stdout)[0]["scores"] if name not in others]
    assert scored == [name for name in without_judge if name not in others]
    assert f"left out of all: {left_out}" in done.stderr
    # A row without a question is at fault where others have one; a single reference is none.
    file = write_rows(tmp_path / "b.jsonl", [*({**row, **lacking} for row in ROWS), *ROWS[1:]])
    there = set(names) <= set(labels_of(command, file, "all", listing(*METRIC_TYPES)))
    assert there is (lacking != {"references": ["a"]} and "value_match" not in names)
    # Who names a metric gets it.
    assert names[0] in labels_of(command, tmp_path / "a.jsonl", f"all,{names[0]}", listing(*METRIC_TYPES))


def test_all_keeps_cider_over_a_named_set(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS[:1])
    done = command("score", file, "--metrics", "all", "--reference-set", "mine", stub=listing("bleu", "cider"))
    assert "cider" in read_rows(done.stdout)[0]["scores"]
    assert "left out of all: cider" not in done.stderr


def test_metrics_over_references_are_left_out_if_some_questions_have_no_answer() -> None:
    rows = [*({**row, "references": row["references"] * 2} for row in ROWS), {"references": [], "answerable": False}]
    assert set(metrics_not_for(rows[:3])) == {"choice_match"}
    assert set(metrics_not_for(rows)) == {"choice_match", "cider", "vqa_accuracy", "soft_vqa_accuracy"}
    assert metrics_not_for(rows)["cider"].startswith("some questions have no answer")


ITEMS = st.fixed_dictionaries(
    {"references": st.lists(st.sampled_from(["a", "b", "in 1969"]), max_size=3)},
    optional={
        "question": st.sampled_from(["", " ", "q", "p", None]),
        "choices": st.sampled_from([[], ["a", "b"]]),
    },
)


@given(st.lists(ITEMS, max_size=5))
def test_a_metric_is_left_out_by_what_items_with_references_have(items: list[dict[str, Any]]) -> None:
    readable = [item for item in items if item["references"]]
    asked = [(item.get("question") or "").strip() for item in readable]
    expected = set()
    if readable:
        if not any(asked):
            expected.add("sfve")
        if min(len(item["references"]) for item in readable) < 2:
            expected |= {"vqa_accuracy", "soft_vqa_accuracy"}
        if not all(any("1969" in reference for reference in item["references"]) for item in readable):
            expected.add("value_match")
        if not all(item.get("choices") for item in readable):
            expected.add("choice_match")
        if len({frozenset(item["references"]) for item in readable}) == 1:
            expected.add("cider")
    assert set(metrics_not_for(items)) == expected
