"""The floor's server answers every metric without a model's runs, and its rows look like answers."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.latency import floor
from benchmarks.latency.costless_server import CostlessSession
from benchmarks.latency.floor import drawn_rows

from gradewire_models.repository.built import load_built


def test_drawn_rows_are_the_same_for_a_seed_and_share_their_references() -> None:
    rows = drawn_rows(5, seed=3)
    assert rows == drawn_rows(5, seed=3) != drawn_rows(5, seed=4)
    assert len({row["id"] for row in rows}) == 5
    assert rows[0]["references"] == rows[1]["references"] != rows[2]["references"]
    assert rows[1]["prediction"].endswith(f"{rows[1]['references'][0]}.")


def test_costless_vectors_have_the_shapes_of_a_models(minilm: Path) -> None:
    model = load_built(minilm, "all-MiniLM-L6-v2")
    session = CostlessSession(model)
    ids = [np.ones(3, np.int32), np.ones(7, np.int32)]
    first, second = (session.run(ids, layers=(5, 6), exclusive=False) for _ in range(2))
    assert first.sentences.shape == (2, model.dims)
    assert np.allclose(np.linalg.norm(first.sentences, axis=1), 1.0, atol=1e-5)
    assert not np.array_equal(first.sentences, second.sentences)
    shapes = {layer: vectors.shape for layer, vectors in first.tokens.items()}
    assert shapes == {5: (2, 7, model.dims), 6: (2, 7, model.dims)}


def test_the_table_has_both_costs_of_each_metric(
    minilm: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(minilm))
    arguments = ["floor", "--data", "nowhere", "--rows", "12", "--warm-passes", "1", "--metrics", "sbert;smile"]
    monkeypatch.setattr("sys.argv", arguments)
    floor.main()
    shown = capsys.readouterr().out
    assert "12 drawn rows" in shown
    lines = [line.split("|") for line in shown.splitlines() if line.startswith("| `")]
    assert [cells[1].strip() for cells in lines] == ["`sbert`", "`smile`"]
    assert float(lines[1][4]) > float(lines[0][4]) > 1
