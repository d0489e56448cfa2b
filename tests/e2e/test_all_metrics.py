"""Every metric without a judge over a real socket, with the default encoder: together, alone, embedded, streamed."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.engines.varied_rows import BAD, GOOD, ITEMS, ROWS
from tests.support.servers.server_process import ServerProcess

import gradewire
from gradewire import (
    AutoParts,
    BertscoreParts,
    BleuParts,
    ChoiceMatchParts,
    CiderParts,
    Client,
    CorrectnessParts,
    GraderParts,
    JudgeParts,
    MeteorParts,
    MetricScore,
    RougeLParts,
    Scorer,
    ScoreWarning,
    SmileParts,
    Status,
    ValueMatchParts,
    VqaParts,
)
from gradewire.metrics import METRIC_TYPES
from gradewire_cli.group import gradewire as gradewire_command
from gradewire_proto.parts import PART_TYPES

VARIANTS = (
    *("smile:fast", "smile:one_pass", "smile:whole", "smile:paper", "smile:reference_code"),
    *("bertscore?layer=5&measure=recall", "bertscore?idf=request", "bertscore?threshold=0.5&with_question=true"),
    *("vqa_accuracy?consensus=direct", "soft_vqa_accuracy?consensus=direct&verdict_cut=0.6"),
    *("vqa_accuracy?consensus=single&normalise=always", "soft_vqa_accuracy?consensus=single"),
    *("rouge_l?stem=true", "rouge_l?measure=precision", "bleu?max_ngram=2", "meteor?synonyms=none"),
    "correctness?features_only=true",
)
PREPARED = ("cider?corpus=prepared", "bertscore?idf=prepared")
# Metrics whose weights are counted over the items of one request.
COUNTED = ("cider", "idf=request")
# By metric as it is asked for, one result per row.
Scores = dict[str, list[MetricScore]]


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.address, deadline_s=60) as client:
        yield client


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory, minilm: object) -> Iterator[Scorer]:
    store = tmp_path_factory.mktemp("embedded")
    # Without WordNet, as the server, whatever is on this machine.
    with Scorer.embedded(model_repository=minilm, disk_directory=store, wordnet_directory=store / "nowhere") as scorer:
        yield scorer


@pytest.fixture(scope="module")
def metrics(client: Client) -> list[str]:
    """All that the server lists, but for those of a judge and of a grader (triton/test_grader.py), and variants."""
    listed = [(metric.name, METRIC_TYPES[metric.name]) for metric in client.models().metrics]
    names = [name for name, kind in listed if not (kind.asks_judge() or kind.needs_grader)]
    return [*names, *(line for line in VARIANTS if line.partition("?")[0].partition(":")[0] in names)]


def score(scoring: Client | Scorer, items: list[dict[str, Any]], metrics: list[str]) -> Scores:
    """All metrics in one request, the variants in a second one: a request has at most 16."""
    found: Scores = {}
    for asked in (metrics[: len(METRIC_TYPES)], metrics[len(METRIC_TYPES) :]):
        report = scoring.score(items, asked) if asked else None
        for written, label in zip(asked, report.labels if report else (), strict=True):
            found[written] = [item.scores[label] for item in report or ()]
    return found


@pytest.fixture(scope="module")
def together(client: Client, metrics: list[str]) -> Scores:
    """All rows and all metrics."""
    return score(client, ITEMS, metrics)


def assert_same(one: Scores, other: Scores) -> None:
    """The same statuses and messages, and scores within 2e-4, for the metrics of `one`."""
    for metric, results in one.items():
        there = other[metric][: len(results)]
        assert [(row.status, row.message) for row in results] == [(row.status, row.message) for row in there], metric
        assert [row.score for row in results] == pytest.approx([row.score for row in there], abs=2e-4), metric


def test_every_metric_of_this_version_is_served(client: Client) -> None:
    listed = {metric.name: metric for metric in client.models().metrics}
    assert set(listed) == set(METRIC_TYPES)
    assert all(metric.citation and metric.description for metric in listed.values())


def each(together: Scores) -> Iterator[tuple[str, str, MetricScore]]:
    for metric, results in together.items():
        yield from ((metric, name, result) for name, result in zip(ROWS, results, strict=True))


def test_a_score_is_there_exactly_when_the_status_is_ok(together: Scores, client: Client) -> None:
    ranges = {metric.name: (metric.minimum, metric.maximum) for metric in client.models().metrics}
    for metric, name, result in each(together):
        assert (result.score is not None) == (result.status is Status.OK), (metric, name)
        assert bool(result.message) or result.status is Status.OK, (metric, name)
        assert result.parts is None or result.status is Status.OK, (metric, name)
        assert result.correct is None or result.status is Status.OK, (metric, name)
        low, high = ranges[gradewire.parse_metric_line(metric).name]
        assert result.score is None or low - 1e-6 <= result.score <= high + 1e-6, (metric, name)
        if result.matched_reference is not None:
            assert 0 <= result.matched_reference < len(ROWS[name]["references"]), (metric, name)


def expected_status(metric: str, name: str) -> Status:
    if name in BAD:
        return BAD[name]
    kind = type(gradewire.parse_metric_line(metric))
    if "consensus" not in metric and len(ROWS[name]["references"]) < kind.least_references:
        return Status.INVALID_INPUT  # nobody is left when one annotator is left out
    if kind.needs_values and name != "annotators":
        return Status.INVALID_INPUT  # references without values
    if kind.needs_choices and name != "options":
        return Status.INVALID_INPUT  # a question without options
    if name == "no question" and (kind.needs_question or "with_question" in metric):
        return Status.INVALID_INPUT
    return Status.OK


def test_bad_rows_fail_in_every_metric_and_good_ones_in_none(together: Scores) -> None:
    for metric, name, result in each(together):
        if result.status is Status.MODEL_UNAVAILABLE and metric == "meteor":
            assert "synonyms=none" in result.message  # this machine has no WordNet
        elif name in BAD or name in GOOD:
            assert result.status is expected_status(metric, name), (metric, name, result.message)


def test_hostile_rows_end_in_a_status_that_says_why(together: Scores) -> None:
    for metric, name, result in each(together):
        if name not in BAD and name not in GOOD:
            assert result.status in {Status.OK, Status.INVALID_INPUT, Status.MODEL_UNAVAILABLE}, (metric, name)


def test_alone_is_as_together(client: Client, together: Scores, metrics: list[str]) -> None:
    for metric in metrics:
        assert_same(score(client, ITEMS, [metric]), together)


def test_the_embedded_engine_gives_what_the_server_gives(scorer: Scorer, together: Scores, metrics: list[str]) -> None:
    embedded = score(scorer, ITEMS, metrics)
    assert_same(embedded, together)
    for (metric, name, here), (_, _, there) in zip(each(embedded), each(together), strict=True):
        assert (here.correct, here.warnings) == (there.correct, there.warnings), (metric, name)
        assert (type(here.parts), here.provenance) == (type(there.parts), there.provenance), (metric, name)


def test_the_line_of_a_result_reproduces_it(client: Client, together: Scores) -> None:
    lines = {}
    for metric, results in together.items():
        provenance = results[0].provenance
        assert provenance is not None
        assert provenance.metric is not None
        assert gradewire.format_metric_line(provenance.metric) == provenance.line
        lines[metric] = provenance.line
    again = score(client, ITEMS, list(lines.values()))
    assert_same({metric: again[line] for metric, line in lines.items()}, together)
    for line, results in again.items():
        assert {result.provenance.line for result in results if result.provenance} == {line}


def test_a_stream_gives_what_a_request_gives(client: Client, together: Scores, metrics: list[str]) -> None:
    chosen = [metric for metric in metrics if not any(word in metric for word in COUNTED)][:16]
    streamed = sorted(client.score_stream(ITEMS, chosen), key=lambda item: item.index)
    labels = client.score([], chosen).labels
    by_metric = zip(chosen, labels, strict=True)
    assert_same({metric: [item.scores[label] for item in streamed] for metric, label in by_metric}, together)


def test_other_items_and_their_order_change_nothing(client: Client, together: Scores, metrics: list[str]) -> None:
    backwards = score(client, ITEMS[::-1], metrics)
    assert_same({metric: results[::-1] for metric, results in backwards.items()}, together)
    # Weights that are counted over a request are those of its items.
    chosen = [metric for metric in metrics if not any(word in metric for word in COUNTED)]
    assert_same(score(client, ITEMS[:4], chosen), together)


def test_a_bad_parameter_fails_its_metric_for_all_items(client: Client, metrics: list[str]) -> None:
    wrong = {
        "smile": "smile?sentence_weight=2",
        "bertscore": "bertscore?layer=99",
        "bleu": "bleu?max_ngram=9",
        "vqa_accuracy": "vqa_accuracy?verdict_cut=7",
        "correctness": "correctness?confidence=1",
        "meteor": "meteor?alpha=-1&synonyms=none",
    }
    chosen = [line for name, line in wrong.items() if name in metrics]
    found = client.score(ITEMS[:3], [*chosen, "exact_match"])
    for item in found:
        *failed, fine = item.scores.values()
        assert [result.status for result in failed] == [Status.INVALID_PARAMETER] * len(chosen)
        assert fine.status is Status.OK


def test_parts_explain_their_score(together: Scores) -> None:
    seen = set()
    for metric, name, result in each(together):
        if result.parts is not None:
            seen.add(type(result.parts))
            check_parts(result, len(ROWS[name]["references"]), f"{metric} of {name}")
    assert seen == set(PART_TYPES.values()) - {JudgeParts, GraderParts, AutoParts}


def check_correctness(result: MetricScore, parts: CorrectnessParts, metric: Any, where: str) -> None:
    """SMILE's score from its terms; verdict and band from the probability."""
    smile = 0.3 * parts.sentence + 0.7 * (parts.exact + parts.keyword) / 2
    assert parts.smile == pytest.approx(smile, abs=1e-6), where
    assert parts.features["keyword"] == parts.keyword, where
    assert result.score is not None, where
    if metric.features_only:
        assert (result.score, result.correct, parts.uncertain) == (parts.smile, None, None), where
        return
    assert parts.band_lower is not None, where
    assert parts.band_upper is not None, where
    assert result.correct is (result.score >= 0.5), where
    in_band = parts.band_lower <= result.score <= parts.band_upper
    assert (parts.uncertain_reason in {"band", "unlike"}) is in_band, where
    assert parts.uncertain is bool(parts.uncertain_reason), where
    assert parts.uncertain is (ScoreWarning.UNCERTAIN in result.warnings), where
    assert metric.fit == parts.fit, where


def check_parts(result: MetricScore, references: int, where: str) -> None:  # noqa: C901, PLR0912 - a case a kind
    """The score is worked out from the parts and the parameters that the line names."""
    assert result.provenance is not None
    metric: Any = result.provenance.metric
    match result.parts:
        case SmileParts(sentence=sentence, lexical=lexical, bin=bin_, correct=correct):
            weight = metric.sentence_weight
            assert result.score == pytest.approx(weight * sentence + (1 - weight) * lexical, abs=1e-6), where
            assert bin_ == max(0, min(5, math.floor(6 * result.score))), where
            assert result.correct is correct, where
        case BertscoreParts() | RougeLParts() as parts:
            total = parts.precision + parts.recall
            f1 = 2 * parts.precision * parts.recall / total if total else 0.0
            assert parts.f1 == pytest.approx(f1, abs=1e-5), where
            assert result.score == getattr(parts, getattr(metric, "measure", "f1")), where
            if isinstance(parts, BertscoreParts):
                expected = None if metric.threshold is None else parts.f1 >= metric.threshold
                assert (result.correct, bool(parts.corpus)) == (expected, metric.idf != "none"), where
        case VqaParts(agreeing=agreeing, annotators=annotators):
            assert (annotators, agreeing <= annotators) == (references, True), where
            if metric.name == "vqa_accuracy" and metric.verdict_cut is None:
                assert result.correct is (agreeing > 0), where
            if metric.name == "vqa_accuracy":
                # Leave-one-out: each annotator sees the others that agree; an agreeing one does not see itself.
                left_out = (annotators - agreeing) * min(1, agreeing / 3) + agreeing * min(1, (agreeing - 1) / 3)
                direct, single = min(1, agreeing / 3), float(agreeing > 0)
                by_rule = {"direct": direct, "single": single, "leave_one_out": left_out / annotators}
                assert result.score == pytest.approx(by_rule[metric.consensus]), where
        case BleuParts(precisions=precisions, brevity_penalty=brevity):
            used = [precision for precision in precisions if precision > 0]
            assert 1 <= len(precisions) <= metric.max_ngram, where
            if used:
                mean = math.exp(sum(map(math.log, used)) / len(used))
                assert result.score == pytest.approx(brevity * mean, abs=1e-6), where
            else:
                assert result.score == 0, where
        case MeteorParts(precision=precision, recall=recall, penalty=penalty, matches=matches, chunks=chunks):
            mean = precision * recall / (metric.alpha * precision + (1 - metric.alpha) * recall) if matches else 0.0
            assert result.score == pytest.approx(mean * (1 - penalty), abs=1e-6), where
            assert penalty == pytest.approx(metric.gamma * (chunks / matches) ** metric.beta if matches else 0.0), where
        case CorrectnessParts() as parts:
            check_correctness(result, parts, metric, where)
        case ValueMatchParts(wanted=wanted, found=found, contradicted=contradicted, missing=missing):
            assert found + contradicted + missing == wanted > 0, where
            assert result.score == pytest.approx(0.0 if contradicted else found / wanted), where
            assert result.correct is (found == wanted), where
        case ChoiceMatchParts(options=options, chosen=chosen, expected=expected, by=by, reason=reason):
            assert (result.score, result.correct) == (1.0, True), where
            assert (options, chosen, expected, by, reason) == (2, ("B",), ("B",), "letter", ""), where
        case CiderParts(by_order=by_order, corpus=corpus):
            assert result.score == pytest.approx(sum(by_order) / 4, abs=1e-6), where
            assert corpus.startswith("request:"), where


def test_a_prepared_corpus_scores_alike_in_a_request_a_stream_and_alone(client: Client, metrics: list[str]) -> None:
    weighted = [
        line for line in ("cider?corpus=prepared", "bertscore?idf=prepared") if line.partition("?")[0] in metrics
    ]
    rows = [ROWS[name] for name in ("plain", "said", "wrong", "annotators", "caption", "Chinese")]
    prepared = client.prepare(rows, weighted)
    assert prepared.failures == ()
    together = client.score(rows, weighted, reference_set=prepared.reference_set)
    stream = client.score_stream(rows, weighted, reference_set=prepared.reference_set)
    streamed = sorted(stream, key=lambda item: item.index)
    assert all(result.status is Status.OK for item in together for result in item.scores.values())
    for label in together.labels:
        provenance = together.provenance[label]
        assert provenance.reference_set == prepared.reference_set
        assert f"reference_set={prepared.reference_set}" in provenance.line
    streamed = sorted(
        client.score_stream(rows, weighted, reference_set=prepared.reference_set), key=lambda row: row.index
    )
    alone = [client.score([row], {name: together.provenance[name].line for name in together.labels})[0] for row in rows]
    for label in together.labels:
        expected = pytest.approx([item.scores[label].score for item in together], abs=2e-4)
        assert [item.scores[label].score for item in streamed] == expected
        assert [item.scores[label].score for item in alone] == expected


def test_the_command_scores_a_file_with_all_of_them(server: ServerProcess, together: Scores, tmp_path: Path) -> None:
    file, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    file.write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    # By name, for some rows have a single reference, and some no values or choices.
    lacking = [
        name
        for name, kind in METRIC_TYPES.items()
        if kind.needs_values or kind.needs_choices or kind.least_references > 1
    ]
    every = ",".join(("all", *lacking))
    arguments = ["score", str(file), "--metrics", every, "--server", server.address, "--out", str(out)]
    done = CliRunner().invoke(gradewire_command, arguments)
    assert done.exit_code == 1, "rows without references fail"
    rows = [json.loads(line)["scores"] for line in out.read_text().splitlines()]
    names = [name for name, kind in METRIC_TYPES.items() if not (kind.asks_judge() or kind.needs_grader)]
    available = {name for name in names if together[name][0].status is not Status.MODEL_UNAVAILABLE}
    assert [set(row) - {"grader"} for row in rows] == [available] * len(ITEMS)
    for name in available - {"cider"}:
        assert [row[name]["status"] for row in rows] == [str(result.status) for result in together[name]], name
        scores = [result.score for result in together[name]]
        assert [row[name]["score"] for row in rows] == pytest.approx(scores, abs=2e-4), name
    # cider takes the file for its corpus, which leaves out what cannot be read just as a request does.
    assert rows[0]["cider"]["line"].startswith("cider/1?answer=whole&corpus=prepared&reference_set=")
    assert f"--metrics '{rows[0]['correctness']['line']}," in done.stderr


# By id: question's answers, prediction, SQuAD 2's exact match and F1. The figures are computed by hand.
SQUAD: dict[str, tuple[list[str], str, float, float]] = {
    "a1": (["Ada", "Ada Lovelace"], "the Ada.", 1, 1),
    "a2": (["in 1815"], "1815", 0, 2 / 3),
    "a3": (["London"], "", 0, 0),
    "a4": (["an engineer"], "unanswerable", 0, 0),
    "n1": ([], "", 1, 1),
    "n2": ([], "The passage does not say.", 0, 0),
    "n3": ([], "red", 0, 0),
}


def test_official_figures_of_squad_overall_and_with_and_without_an_answer(
    server: ServerProcess, tmp_path: Path
) -> None:
    questions = [
        {"id": name, "question": "Who?", "answers": [{"text": each} for each in answers], "is_impossible": not answers}
        for name, (answers, *_) in SQUAD.items()
    ]
    files = tmp_path / "dev.json", tmp_path / "predictions.json", tmp_path / "summary.json"
    files[0].write_text(json.dumps({"data": [{"title": "Ada", "paragraphs": [{"context": "…", "qas": questions}]}]}))
    files[1].write_text(json.dumps({name: prediction for name, (_, prediction, *_) in SQUAD.items()}))
    labels = ["exact_match?abstention=blank", "token_f1?abstention=blank", "exact_match"]
    options = ["--from", "squad", "--questions", files[0], "--summary-json", files[2], "--server", server.address]
    done = CliRunner().invoke(
        gradewire_command, list(map(str, ["score", files[1], *options, "--metrics", ",".join(labels)]))
    )
    assert done.exit_code == 0, done.output
    summary = json.loads(files[2].read_text())
    groups = summary["by"]["answer_type"]

    def figures(label: str) -> list[float]:
        of_all = summary["metrics"][label]["mean_empty_as_wrong"]
        return [of_all, *(groups[name][label]["mean_empty_as_wrong"] for name in ("has answer", "no answer"))]

    assert figures(labels[0]) == pytest.approx([2 / 7, 1 / 4, 1 / 3])
    assert figures(labels[1]) == pytest.approx([(1 + 2 / 3 + 1) / 7, (1 + 2 / 3) / 4, 1 / 3])
    assert figures(labels[2]) == pytest.approx([3 / 7, 1 / 4, 2 / 3])  # n2 abstains in words


def test_a_table_with_questions_without_an_answer_is_graded_by_all_metrics(client: Client, metrics: list[str]) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [
        {"question": "Who?", "references": ["Ada"], "prediction": "Ada", "answerable": True},
        {"question": "Who else?", "references": None, "prediction": "No idea.", "answerable": False},
        {"question": "And then?", "references": math.nan, "prediction": "Bob", "answerable": False},
    ]
    found = [client.score(pandas.DataFrame(rows), part) for part in (metrics[:16], metrics[16:])]
    for label, right, wrong in (
        (label, *(item.scores[label] for item in part[1:])) for part in found for label in part.labels
    ):
        if label.partition("?")[0] in {"cider", "vqa_accuracy", "soft_vqa_accuracy"} or "features_only" in label:
            assert right.status is wrong.status is Status.INVALID_INPUT
            assert right.message.startswith("answerable: ")
        elif right.status is not Status.MODEL_UNAVAILABLE:
            assert (right.score, wrong.score) == (1.0, 0.0), label
            assert right.correct in {True, None}
