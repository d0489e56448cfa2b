import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from tests.models.build.quantized_models import build_beside_base, int8_variant
from tests.support.models.tiny_models import Package

from gradewire_models.build import quantize
from gradewire_models.build.install import build_model
from gradewire_models.build.publish import add_fingerprint, write_model
from gradewire_models.build.quality import (
    AnswerRow,
    AnswerRows,
    check_quality,
    compare_with_base,
    own_rows,
    rank_correlation,
    read_rows,
    spearman,
)
from gradewire_models.build.verify import Check
from gradewire_models.cli.group import models
from gradewire_models.errors import BuildError, ModelNotBuiltError


def rows(count: int = 500) -> AnswerRows:
    """Rows of the tiny vocabulary."""
    rng = np.random.default_rng(8)

    def text() -> str:
        return " ".join(f"w{number}" for number in rng.integers(0, 60, rng.integers(2, 9)))

    drawn = (AnswerRow(text(), (text(), text()), text()) for _ in range(count))
    return AnswerRows(tuple(drawn), "drawn", "0" * 64)


def passed(checks: list[Check]) -> dict[str, bool]:
    return {check.name: check.passed for check in checks}


@pytest.fixture(scope="module")
def repository(bert: Package, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base; a variant with three products in 8 bits; and one ruined by weights of three values."""
    path = tmp_path_factory.mktemp("variants")
    excluded = [f"layer_{layer}.{part}" for layer in (1, 2) for part in ("qkv", "attention_out", "up", "down")]
    good = replace(int8_variant(bert, excluded=(*excluded, "layer_3.attention_out")), name="good")
    build_beside_base(bert, good, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantize, "_WEIGHT_LEVELS", 1)
        build_beside_base(bert, replace(int8_variant(bert), name="coarse"), path)
    return path


def test_a_variant_that_hardly_changes_scores_is_accepted(repository: Path) -> None:
    checks = compare_with_base(repository, "good", "tiny-bert", rows())
    assert passed(checks) == {"operators": True, "scores of sbert": True, "scores of sfve": True}, checks


def test_a_variant_that_changes_scores_is_refused_with_figures(repository: Path) -> None:
    checks = compare_with_base(repository, "coarse", "tiny-bert", rows())
    assert passed(checks) == {"operators": True, "scores of sbert": False, "scores of sfve": False}
    assert "largest change 0." in checks[1].detail


def test_too_few_rows_prove_nothing(repository: Path) -> None:
    assert passed(compare_with_base(repository, "good", "tiny-bert", rows(499)))["rows"] is False


def test_dynamic_quantization_is_refused_whatever_its_scores(bert: Package, repository: Path, tmp_path: Path) -> None:
    # After gradewire_models.runtime, which switches the library's reports off before it is loaded.
    from onnxruntime.quantization import quantize_dynamic  # noqa: PLC0415 - as the comment says

    build_model(bert.model, tmp_path, wheels=bert.wheels)
    plain, dynamic = tmp_path / "plain.onnx", tmp_path / "dynamic.onnx"
    graph = onnx.load(tmp_path / "tiny-bert/1/model.onnx")
    _drop_fingerprint(graph)
    onnx.save(graph, plain)
    quantize_dynamic(plain, dynamic)
    target = repository / "dynamic"
    target.mkdir()
    (target / "tokenizer.json").write_bytes((tmp_path / "tiny-bert/tokenizer.json").read_bytes())
    facts = replace(int8_variant(bert), name="dynamic").metadata
    write_model(target, facts, add_fingerprint(onnx.load(dynamic)))
    checks = compare_with_base(repository, "dynamic", "tiny-bert", rows())
    assert passed(checks)["operators"] is False
    assert "depends on the other texts in its batch" in checks[0].detail


def _drop_fingerprint(model: onnx.ModelProto) -> None:
    graph = model.graph
    nodes = [node for node in graph.node if not any(name.startswith("model_fingerprint") for name in node.output)]
    outputs = [output for output in graph.output if output.name != "model_fingerprint"]
    del graph.node[:], graph.output[:]
    graph.node.extend(nodes)
    graph.output.extend(outputs)


def test_only_variants_are_compared(repository: Path) -> None:
    assert check_quality(repository, "tiny-bert", None) == []


def test_a_missing_base_is_named(repository: Path, bert: Package, tmp_path: Path) -> None:
    build_model(int8_variant(bert), tmp_path, wheels=bert.wheels)
    with pytest.raises(ModelNotBuiltError, match="tiny-bert"):
        check_quality(tmp_path, "tiny-bert-int8", None)
    with pytest.raises(ModelNotBuiltError):
        check_quality(repository, "absent", None)


def test_verify_prints_what_a_variant_does_to_scores(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(_line(row) for row in rows().rows))
    call = ["verify", "coarse", "--model-repository", str(repository), "--rows", str(file)]
    result = CliRunner().invoke(models, call)
    assert result.exit_code == 4
    assert "FAILED scores of sbert: largest change" in result.output
    assert "against tiny-bert on 500 rows (rows.jsonl" in result.output


def _line(row: AnswerRow) -> str:
    return json.dumps({"question": row.question, "references": row.references, "prediction": row.prediction})


def test_own_rows_are_many_and_all_different() -> None:
    own = own_rows()
    assert len(own.rows) >= 500
    assert len({(row.question, row.prediction) for row in own.rows}) == len(own.rows)
    assert own.sha256 == own_rows().sha256


def test_of_many_rows_500_are_taken_evenly(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(_line(AnswerRow(f"q{number}", ("r",), "p")) for number in range(2000)))
    found = read_rows(file).rows
    assert [row.question for row in found] == [f"q{4 * number}" for number in range(500)]


def test_a_line_ends_at_its_line_feed_only(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"question": "a\u2028b", "references": ["r"], "prediction": "c\u0085d"}\n', encoding="utf-8")
    assert read_rows(file).rows == (AnswerRow("a\u2028b", ("r",), "c\u0085d"),)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "has no rows"),
        ("{", "line 1"),
        ('{"question": "q", "references": ["r"]}', "line 1: must have question"),
        (
            '{"question": "q", "references": [], "prediction": "p"}',
            "line 1: a text is empty",
        ),
        (
            '{"question": "q", "references": [7], "prediction": "p"}',
            "line 1: a text is empty",
        ),
        (
            '{"question": "q", "references": ["r"], "prediction": " "}',
            "line 1: a text is empty",
        ),
    ],
)
def test_rows_that_cannot_be_scored_are_named(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(content)
    with pytest.raises(BuildError, match=said):
        read_rows(file)


def test_rank_correlation_is_spearmans() -> None:
    first = np.array([1.0, 2.0, 2.0, 4.0, 5.0])
    assert spearman(first, np.exp(first)) == pytest.approx(1)
    assert spearman(first, -first) == pytest.approx(-1)
    # Ranks 1, 2.5, 2.5, 4, 5 against 1, 2, 3, 5, 4: covariance 8.5, sums of squares 9.5 and 10.
    assert spearman(first, np.array([0.1, 0.2, 0.3, 0.9, 0.8])) == pytest.approx(8.5 / np.sqrt(95))
    assert np.isnan(spearman(first, np.ones(5)))


def test_the_last_bits_of_equal_scores_are_not_ranked() -> None:
    first = np.array([0.1, 0.5, 1, np.nextafter(1, 0)])
    assert rank_correlation(first, first[[0, 1, 3, 2]]) == pytest.approx(1)
