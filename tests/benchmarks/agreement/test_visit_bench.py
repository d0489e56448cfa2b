"""The section on a judge: whole instructions only, metrics on the same ones, and the rest of the page kept."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.agreement import visit_bench

MODELS = ("llava-13b", "otter-9b")


def document(by: str) -> dict[str, Any]:
    whole = {"value": 0.5, "low": 0.1, "high": 0.9}
    ranks = {
        **dict.fromkeys(("spearman", "kendall", "pearson"), whole),
        "distant": [{"higher": MODELS[0], "lower": MODELS[1], "is_right": by != "lave"}],
        "models": list(MODELS),
        "published": [1106.0, 991.0],
    }
    return {
        "by": f"{by}/1",
        "pairs": 2,
        "instructions": 2,
        "published": dict.fromkeys(visit_bench.PUBLISHED, ranks),
        "length_bias": {"won": whole},
        "models": [{"model": model, "bradley_terry": {**whole, "value": 1000.0}} for model in MODELS],
    }


def test_a_prefix_of_whole_instructions_is_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, scores, out = tmp_path / "data.jsonl", tmp_path / "scores.jsonl", tmp_path / "page.md"
    data.write_text("".join(json.dumps({"id": str(n), "answers": dict.fromkeys(MODELS, "x")}) + "\n" for n in range(3)))
    scores.write_text("".join(json.dumps({"index": n, "scores": {"lave": {"score": 0.5}}}) + "\n" for n in range(5)))
    out.write_text(f"# Metrics\n\nthe table\n\n{visit_bench.JUDGE_SECTION}\n\nan older section\n")
    ranked: list[tuple[str, int, list[str]]] = []

    def rank(part: Path, by: str, _kept: Path, further: list[str], _prefix: str) -> dict[str, Any]:
        ranked.append((by, len(part.read_text().splitlines()), further))
        return document(by)

    monkeypatch.setattr(visit_bench, "rank", rank)
    options = ["--data", str(data), "--judge-scores", str(scores), "--kept", str(tmp_path / "kept"), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["visit_bench", *options])
    visit_bench.main()
    assert [(by, rows) for by, rows, _ in ranked] == [(by, 2) for by in ("lave", *visit_bench.BESIDE_JUDGE)]
    used = Path(ranked[0][2][-1])
    assert (ranked[0][2][0], len(used.read_text().splitlines())) == ("--scores", 4)
    text = out.read_text()
    assert text.startswith("# Metrics\n\nthe table\n\n## By a judge\n")
    assert "the first 2 of 3 instructions (2 distinct texts, 2 pairs)" in " ".join(text.split())
    assert "turns around: llava-13b above otter-9b." in text
    assert "an older section" not in text
    scores.write_text(scores.read_text().splitlines(keepends=True)[0])
    with pytest.raises(SystemExit, match="lacks scores of the first instruction"):
        visit_bench.main()
