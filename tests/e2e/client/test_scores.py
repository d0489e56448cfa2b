"""The client against the real server, and against the engine in the process: the same scores, the same statuses."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.server_process import ServerProcess

import gradewire
import gradewire.metrics
from gradewire import AsyncClient, AsyncScorer, Client, Scorer, ScoreWarning, Smile, Status

METRICS = "smile,smile:fast,smile:paper,smile:reference_code,sbert,exact_match,easy_match"
EXAMPLES = Path(__file__).parents[3] / "examples" / "answers.jsonl"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """A third of the examples, of every kind: the server chooses windows in fp32, which takes most of the time."""
    return [json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()][::3]


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.address, deadline_s=60) as client:
        yield client


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[Scorer]:
    store = tmp_path_factory.mktemp("embedded")
    with Scorer.embedded(model_repository=minilm, disk_directory=store) as scorer:
        yield scorer


def numbers(report: gradewire.ScoreReport) -> list[tuple[str, str, float | None]]:
    return [(item.id, label, result.score) for item in report for label, result in item.scores.items()]


def assert_same(one: gradewire.ScoreReport, other: gradewire.ScoreReport) -> None:
    assert [(row[0], row[1]) for row in numbers(one)] == [(row[0], row[1]) for row in numbers(other)]
    assert [row[2] for row in numbers(one)] == pytest.approx([row[2] for row in numbers(other)], abs=2e-4)
    assert [[str(result.status) for result in item.scores.values()] for item in one] == [
        [str(result.status) for result in item.scores.values()] for item in other
    ]


def test_server_and_embedded_engine_give_the_same(client: Client, scorer: Scorer, rows: list[dict[str, Any]]) -> None:
    over_the_wire = client.score(rows, METRICS)
    in_the_process = scorer.score(rows, METRICS)
    assert_same(over_the_wire, in_the_process)
    assert over_the_wire.provenance == in_the_process.provenance
    assert over_the_wire.summary()["smile"].scored == len(rows)


async def test_stream_submit_and_async_give_the_same(
    client: Client, server: ServerProcess, rows: list[dict[str, Any]]
) -> None:
    straight = client.score(rows, "smile,sbert")
    streamed = sorted(client.score_stream(rows, "smile,sbert"), key=lambda item: item.index)
    assert_same(straight, gradewire.ScoreReport(tuple(streamed), straight.labels, straight.provenance))
    assert_same(straight, client.submit(rows, "smile,sbert").result(60))
    async with AsyncClient(server.address) as asynchronous:
        assert_same(straight, await asynchronous.score(rows, "smile,sbert"))


def test_the_line_of_a_result_reproduces_it(client: Client, scorer: Scorer, rows: list[dict[str, Any]]) -> None:
    metric = Smile(preset="reference_code", sentence_weight=0.4, synthetic="none")
    first = client.score(rows[:5], metric)
    (label,) = first.labels
    line = first.provenance[label].line
    again = scorer.score(rows[:5], {label: line})
    assert_same(first, again)
    assert again.provenance[label].line == line
    typed = again.provenance[label].metric
    assert typed == gradewire.parse_metric_line(line)
    assert typed is not None
    assert_same(first, client.score(rows[:5], {label: typed}))


BAD = {
    "fine": {"references": ["a cat"], "prediction": "a kitten"},
    "no references": {"references": [], "prediction": "a kitten"},
    "blank reference": {"references": ["a cat", " "], "prediction": "a kitten"},
    "empty prediction": {"references": ["a cat"], "prediction": ""},
    "blank prediction": {"references": ["a cat"], "prediction": " \t"},
    "1 MB": {"references": ["a cat"], "prediction": "a kitten " * 116_000},
    "NUL": {"references": ["a\0cat"], "prediction": "a\0cat"},
    "surrogate": {"references": ["a cat"], "prediction": "a \ud83d cat"},
    "wrong type": {"references": ["a cat", True], "prediction": "a cat"},
    "synthetic count": {"references": ["a", "b"], "prediction": "a", "synthetic_answers": ["It is a."]},
}
EXPECTED = {
    "fine": Status.OK,
    "no references": Status.INVALID_INPUT,
    "blank reference": Status.INVALID_INPUT,
    "empty prediction": Status.EMPTY_PREDICTION,
    "blank prediction": Status.EMPTY_PREDICTION,
    "1 MB": Status.OK,
    "NUL": Status.OK,
    "surrogate": Status.INVALID_INPUT,
    "wrong type": Status.INVALID_INPUT,
}


@pytest.mark.parametrize("way", ["server", "embedded", "stream"])
def test_bad_input_fails_alone_and_says_why(client: Client, scorer: Scorer, way: str) -> None:
    items = [{"id": name, **item} for name, item in BAD.items()]
    if way == "stream":
        results = sorted(client.score_stream(items), key=lambda item: item.index)
    else:
        results = list((client if way == "server" else scorer).score(items))
    found = {item.id: item.scores["smile"] for item in results}
    assert {name: found[name].status for name in EXPECTED} == EXPECTED
    for name, result in found.items():
        assert (result.score is not None) == (result.status is Status.OK)
        assert bool(result.message) == (result.status is not Status.OK), name
    assert ScoreWarning.TRUNCATED in found["1 MB"].warnings
    assert found["NUL"].score is not None
    assert found["NUL"].score > 0.99


def test_a_bad_parameter_fails_its_metric_only(client: Client) -> None:
    (item,) = client.score([BAD["fine"]], [Smile(sentence_weight=float("nan")), "sbert", "exact_match"])
    assert [str(result.status) for result in item.scores.values()] == ["INVALID_PARAMETER", "OK", "OK"]


def test_a_missing_model_fails_its_metric_or_the_call(client: Client) -> None:
    (item,) = client.score([BAD["fine"]], ["smile?model=no-such-model", "exact_match"])
    assert [str(result.status) for result in item.scores.values()] == ["MODEL_UNAVAILABLE", "OK"]
    with pytest.raises(gradewire.NotReady, match="no-such-model"):
        client.score([BAD["fine"]], model="no-such-model")
    digest = client.score([BAD["fine"]]).provenance["smile"].model_digest
    other = "0" * 8 if not digest.startswith("0" * 8) else "1" * 8
    with pytest.raises(gradewire.NotReady, match=other):
        client.score([BAD["fine"]], model=f"all-MiniLM-L6-v2@{other}")
    assert client.score([BAD["fine"]], model=f"all-MiniLM-L6-v2@{digest[:8]}")[0].scores["smile"].score


def test_another_version_of_a_metric_is_refused(client: Client) -> None:
    version = client.score([BAD["fine"]]).provenance["smile"].version
    assert client.score([BAD["fine"]], Smile(version=version))
    with pytest.raises(gradewire.InvalidRequest, match=f"version {version + 1} of smile"):
        client.score([BAD["fine"]], Smile(version=version + 1))


@pytest.mark.parametrize("way", ["server", "embedded"])
def test_prepared_answers_score_like_inline_ones(client: Client, scorer: Scorer, way: str) -> None:
    scoring = client if way == "server" else scorer
    items = [
        {
            "references": [f"reference {number}"],
            "synthetic_answers": [f"The answer is reference {number}."],
            "prediction": f"I would say reference {number % 7}.",
        }
        for number in range(150)
    ]
    first = scoring.prepare(items, synthetic="prepared")
    assert (first.entries, first.failures, first.synthetic_answers_stored) == (150, (), 150)
    again = scoring.prepare(items, synthetic="prepared")
    assert again.reference_set == first.reference_set
    assert again.cache_hits.computed == 0
    bare = [{name: item[name] for name in ("references", "prediction")} for item in items]
    prepared = scoring.score(bare, "smile", synthetic="prepared", reference_set=first.reference_set)
    inline = scoring.score(items, "smile", synthetic="inline")
    assert_same(prepared, inline)
    # The line alone gives the same scores again, and contradicting it is an error, not another score.
    line = prepared.provenance["smile"].line
    assert f"reference_set={first.reference_set}" in line
    assert prepared.provenance["smile"].reference_set == first.reference_set
    assert first.provenance["smile"].line == line
    assert_same(scoring.score(bare, line), prepared)
    streamed = sorted(scoring.score_stream(bare[:5], line), key=lambda item: item.index)
    assert [item.scores["smile"].score for item in streamed] == [
        pytest.approx(item.scores["smile"].score, abs=1e-6) for item in prepared[:5]
    ]
    with pytest.raises(gradewire.InvalidRequest, match="a call has one set"):
        scoring.score(bare[:1], line, reference_set="another")
    unknown = scoring.score(bare[:1], synthetic="prepared", reference_set="0" * 32)
    assert unknown[0].scores["smile"].status is Status.NOT_PREPARED


def test_many_items_keep_their_order(client: Client) -> None:
    draw = random.Random(7)  # noqa: S311 - a fixed sequence is what the test wants
    items = [
        {"id": str(number), "references": ["right"], "prediction": draw.choice(["right", "wrong"])}
        for number in range(3000)
    ]
    report = client.score(items, "exact_match")
    assert [item.id for item in report] == [item["id"] for item in items]
    assert [item.scores["exact_match"].score for item in report] == [
        float(item["prediction"] == "right") for item in items
    ]


def test_the_list_says_what_there_is(client: Client, scorer: Scorer) -> None:
    for scoring in (client, scorer):
        listed = scoring.models()
        assert {metric.name for metric in listed.metrics} == set(gradewire.metrics.METRIC_TYPES)
        # meteor needs WordNet; tests/e2e/judges/test_metrics.py has a judge.
        judging = {metric.name for metric in listed.metrics if metric.needs_judge}
        assert {metric.name for metric in listed.metrics if not metric.available} <= {
            "meteor",
            "auto",
        } | judging
        assert len(judging) == 4
        assert [model.name for model in listed.models if model.kind == "encoder" and model.is_default] == [
            "all-MiniLM-L6-v2"
        ]
        assert listed.limits.max_items_per_request > 0


async def test_the_async_scorer_gives_the_same(scorer: Scorer, tmp_path: Path, minilm: Path) -> None:
    async with AsyncScorer.embedded(model_repository=minilm, disk_directory=tmp_path) as asynchronous:
        assert_same(await asynchronous.score([BAD["fine"]]), scorer.score([BAD["fine"]]))


def test_a_second_scorer_finds_what_the_first_has_computed(tmp_path: Path, minilm: Path) -> None:
    hits = []
    for _ in range(2):
        with Scorer.embedded(model_repository=minilm, disk_directory=tmp_path) as scorer:
            hits.append(scorer.score([BAD["fine"]])[0].scores["smile"].cache_hits)
    assert (hits[0].disk, hits[0].computed > 0) == (0, True)
    assert (hits[1].disk > 0, hits[1].computed <= hits[0].computed) == (True, True)


def test_what_was_submitted_last_is_scored_before_the_program_ends(tmp_path: Path, minilm: Path) -> None:
    program = (
        "import sys, gradewire\n"
        "given = {'model_repository': sys.argv[1], 'disk_directory': sys.argv[2], 'window_choice': 'fp32'}\n"
        "scorer = gradewire.Scorer.embedded(**given)\n"
        "for index in range(5):\n"
        "    row = {'references': ['a cat'], 'prediction': f'a kitten on mat {index}'}\n"
        "    scorer.submit([row], callback=lambda future: print(future.result()[0].scores['smile'].status))\n"
    )
    command = [sys.executable, "-c", program, str(minilm), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split() == ["OK"] * 5


def test_a_wrong_setting_of_the_embedded_engine_is_named() -> None:
    with pytest.raises(gradewire.InvalidRequest, match="memory_max_bytes"):
        Scorer.embedded(memory_max_bytes="plenty")
    with pytest.raises(gradewire.InvalidRequest, match="colour"):
        Scorer.embedded(colour="red")


def test_without_the_servers_part_it_says_what_to_install() -> None:
    program = (
        "import sys\n"
        "sys.modules['onnxruntime'] = None\n"
        "import gradewire\n"
        "try:\n"
        "    gradewire.Scorer.embedded()\n"
        "except gradewire.MissingExtra as error:\n"
        "    print(isinstance(error, ImportError), error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == (
        "True the embedded engine needs onnxruntime, which is not installed. Run: pip install 'gradewire[server]'\n"
    )
