"""`bench smile`: the ablations of one scoring, against scipy on scores that the test works out itself."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.cli.conftest import Command, figures_of, write_rows
from tests.cli.judged import rows_of

from gradewire.testing import StubTransport, echo_scores
from gradewire_cli.results.manifest import read_manifest
from gradewire_proto.v1 import scoring_pb2, types_pb2


def parts_of(prediction: str, *, synthetic: bool) -> tuple[float, float, float]:
    """Sentence, keyword and exact part of the stub; synthetic answers double the sentence part."""
    letters = len(prediction)
    sentence = (letters * 7 % 11) / 22
    return sentence * (2 if synthetic else 1), letters / 20, float(letters % 3 == 0)


class SmileStub:
    """SMILE by `parts_of` and the weight that is asked for, else its own.

    Lave and sbert go by length; lave calls answers right from 14 letters.
    """

    def __init__(self, own_weight: float = 0.3) -> None:
        self.calls = 0
        self._own_weight = own_weight

    def __call__(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        self.calls += 1
        for spec in request.metrics:
            if spec.WhichOneof("metric") == "smile" and not spec.smile.HasField("sentence_weight"):
                spec.smile.sentence_weight = self._own_weight
        reply = echo_scores(request, score=lambda item: 0.0 if item.prediction else None)
        for item, sent in zip(reply.items, request.items, strict=True):
            for result in item.results if sent.prediction else ():
                spec = request.metrics[result.metric_index]
                if (name := spec.WhichOneof("metric")) in {"lave", "sbert"}:
                    result.score = len(sent.prediction) / 20
                    if name == "lave":
                        result.correct = len(sent.prediction) >= 14
                    continue
                synthetic = spec.smile.synthetic == types_pb2.SYNTHETIC_MODE_INLINE
                if synthetic and len(sent.synthetic_answers) != len(sent.references):
                    result.ClearField("score")
                    result.status, result.message = types_pb2.STATUS_INVALID_INPUT, "one for each reference"
                    continue
                sentence, keyword, exact = parts_of(sent.prediction, synthetic=synthetic)
                weight = spec.smile.sentence_weight
                result.score = weight * sentence + (1 - weight) * (keyword + exact) / 2
                result.smile.sentence, result.smile.keyword, result.smile.exact = sentence, keyword, exact
                # Another weight may choose another reference, whose parts say nothing of the lexical term.
                if weight > 0:
                    result.smile.keyword = result.smile.exact = 0.5
        return reply


def benched(
    command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str, own_weight: float = 0.3
) -> dict[str, Any]:
    stub = StubTransport(SmileStub(own_weight))
    return figures_of(partial(command, "bench", "smile", stub=stub), tmp_path, rows, *options)


def pearson(rows: list[dict[str, Any]], weight: float, *, synthetic: bool = False) -> float:
    scores = []
    for row in rows:
        sentence, keyword, exact = parts_of(row["prediction"], synthetic=synthetic)
        scores.append(weight * sentence + (1 - weight) * (keyword + exact) / 2)
    return float(stats.pearsonr(scores, [row["label"] for row in rows]).statistic)


def value(document: dict[str, Any], variant: str) -> float:
    found: float = document["variants"][variant]["all_rows"]["pearson"]["value"]
    return found


def area(document: dict[str, Any], variant: str) -> float | None:
    found: float | None = document["variants"][variant]["all_rows"]["auc"]["value"]
    return found


def test_terms_and_weights(command: Command, tmp_path: Path) -> None:
    rows = rows_of(80)
    document = benched(command, tmp_path, rows)
    assert value(document, "smile") == pytest.approx(pearson(rows, 0.3))
    assert value(document, "without the lexical term") == pytest.approx(pearson(rows, 1))
    assert value(document, "without the sentence term") == pytest.approx(pearson(rows, 0))
    for tenth in range(11):
        assert value(document, f"w = {tenth / 10:g}") == pytest.approx(pearson(rows, tenth / 10))
    labels = [row["label"] for row in rows]
    for place, name in ((1, "keyword similarity alone"), (2, "exact words alone")):
        part = [parts_of(row["prediction"], synthetic=False)[place] for row in rows]
        assert value(document, name) == pytest.approx(stats.pearsonr(part, labels).statistic)
    apart = document["variants"]["without the lexical term"]["difference"]["all_rows"]
    assert apart["value"] == pytest.approx(pearson(rows, 1) - pearson(rows, 0.3))
    assert "without synthetic answers" not in document["variants"]
    assert "sentence_weight=1" in document["variants"]["w = 1"]["line"]
    manifest = read_manifest(tmp_path / "figures.json.manifest.json")
    assert (manifest.command, manifest.counts.rows) == ("bench smile", 80)
    assert document["variants"]["w = 1"]["line"] in manifest.metrics.values()


def test_a_row_that_failed_is_in_no_part(command: Command, tmp_path: Path) -> None:
    rows = rows_of(60)
    failed = [{**row, "prediction": ""} for row in rows_of(10, seed=4)]
    document, plain = benched(command, tmp_path, [*rows, *failed]), benched(command, tmp_path, rows)
    for name in ("smile", "keyword similarity alone", "exact words alone"):
        assert value(document, name) == pytest.approx(value(plain, name))
    assert document["variants"]["smile"]["statuses"] == {"OK": 60, "EMPTY_PREDICTION": 10}


def test_synthetic_answers_that_the_rows_have_are_a_term(command: Command, tmp_path: Path) -> None:
    rows = rows_of(80, synthetic_answers=["It is a."])
    document = benched(command, tmp_path, rows)
    assert document["synthetic"] == "inline"
    assert value(document, "smile") == pytest.approx(pearson(rows, 0.3, synthetic=True))
    assert value(document, "without synthetic answers") == pytest.approx(pearson(rows, 0.3))
    assert benched(command, tmp_path, rows, "--synthetic", "none")["synthetic"] == "none"


def test_all_lines_are_over_the_rows_that_every_variant_scored(command: Command, tmp_path: Path) -> None:
    """A row without synthetic answers has a score without them alone."""
    rows = rows_of(80, synthetic_answers=["It is a."])
    for row in rows[::4]:
        row["synthetic_answers"] = ["one", "too many"]
    document = benched(command, tmp_path, rows, "--synthetic", "inline")
    whole = [row for place, row in enumerate(rows) if place % 4]
    assert document["variants"]["without synthetic answers"]["statuses"] == {"OK": 80}
    assert document["variants"]["smile"]["statuses"] == {"OK": 60, "INVALID_INPUT": 20}
    assert value(document, "smile") == pytest.approx(pearson(whole, 0.3, synthetic=True))
    assert value(document, "without synthetic answers") == pytest.approx(pearson(whole, 0.3))


def test_smile_itself_has_the_weight_that_the_server_gives_it(command: Command, tmp_path: Path) -> None:
    """That of the preset, or the one that `calibrate` fitted for the encoder."""
    rows = rows_of(40)
    document = benched(command, tmp_path, rows, "--preset", "reference_code", "--weights", "0.25", own_weight=0.45)
    assert (document["preset"], document["sentence_weight"]) == ("reference_code", 0.45)
    assert value(document, "smile") == pytest.approx(pearson(rows, 0.45))
    assert [name for name in document["variants"] if name.startswith("w = ")] == ["w = 0.25"]


def test_weights_have_all_their_digits(command: Command, tmp_path: Path) -> None:
    rows = rows_of(40)
    document = benched(command, tmp_path, rows, "--weights", "0.1234567,0.1234568,-0,1.0")
    assert [name for name in document["variants"] if name.startswith("w = ")] == [
        "w = 0.1234567",
        "w = 0.1234568",
        "w = 0",
        "w = 1",
    ]
    assert value(document, "w = 0.1234567") == pytest.approx(pearson(rows, 0.1234567), abs=1e-12)


def test_all_variants_are_one_scoring(command: Command, tmp_path: Path) -> None:
    stub, file = SmileStub(), write_rows(tmp_path / "rows.jsonl", rows_of(40))
    done = command("bench", "smile", file, "--resamples", "100", stub=StubTransport(stub))
    assert done.exit_code == 0, done.output
    assert stub.calls == 2, "one question about the metrics, and one request with all rows"
    assert "Terms of smile:v1 (w = 0.3, synthetic answers: none)" in done.stdout
    assert "Weight w of the sentence term" in done.stdout


def test_an_evaluator_may_stand_in_the_place_of_people(command: Command, tmp_path: Path) -> None:
    rows = rows_of(60)
    judged = [{name: each for name, each in row.items() if name != "label"} for row in rows]
    document = benched(command, tmp_path, judged, "--against", "lave")
    lengths = [len(row["prediction"]) / 20 for row in rows]
    keyword = [parts_of(row["prediction"], synthetic=False)[1] for row in rows]
    assert value(document, "keyword similarity alone") == pytest.approx(np.corrcoef(keyword, lengths)[0, 1])
    assert document["against"]["metric"] == "lave"
    right = np.array(lengths) >= 14 / 20
    exact = np.array([parts_of(row["prediction"], synthetic=False)[2] for row in rows])
    pairs = [(a > b) + (a == b) / 2 for a in exact[right] for b in exact[~right]]
    assert area(document, "exact words alone") == pytest.approx(np.mean(pairs)), "of its verdicts"
    assert area(benched(command, tmp_path, judged, "--against", "sbert"), "smile") is None, "it has no verdicts"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metrics", "sbert"), "bench smile chooses its metrics"),
        (("--weights", "0,2"), "Use numbers from 0 to 1"),
        (("--scores", "rows.jsonl"), "--scores: bench smile must score FILE with every weight"),
        (("--weights", "half"), "Use numbers from 0 to 1"),
        (("--against", "smile?sentence_weight=0&synthetic=none"), "the variants include this metric"),
        (("--against", "nothing"), "unknown metric 'nothing'"),
    ],
)
def test_what_makes_no_sense_is_refused(command: Command, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    file = write_rows(tmp_path / "rows.jsonl", rows_of(4))
    done = command("bench", "smile", file, *options, stub=StubTransport(SmileStub()))
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
