"""The GPU's steps for drawn judges, on a CPU and in a tiny shape."""

import builtins
import sys
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.gpu import judging
from benchmarks.gpu.drawn_judges import SHAPES, DrawnWeights, Shape, measured, parity
from benchmarks.gpu.judge_sizes import LARGE, SMALL, TINY
from benchmarks.gpu.step_processes import NotRunError

VERY_TINY = replace(TINY, layers=2, vocabulary=512)


def test_the_shapes_have_as_many_weights_as_their_names_say() -> None:
    sizes = {(shape.name, shape.form): shape.gigabytes for shape in SHAPES}
    assert sizes["1.5 B", "fp16"] / 2 == pytest.approx(1.54, abs=0.05)
    assert sizes["7 B", "fp16"] / 2 == pytest.approx(7.6, abs=0.1)
    assert sizes["7 B", "int4"] < 6.5
    assert (SMALL.head_dim, LARGE.head_dim) == (128, 128)


def test_speed_is_measured_by_items_in_a_batch() -> None:
    rows = list(measured(Shape("tiny", VERY_TINY, "fp16", tied=False), "cpu", 0.2, batches=(1, 3)))
    assert [row["items a batch"] for row in rows] == [1, 3]
    assert all(row["items/s"] > 0 and row["tokens of items/s"] > 0 for row in rows)
    assert rows[0].keys() == rows[1].keys()


def test_parity_on_one_device_is_exact_to_the_batch() -> None:
    rows = list(parity("cpu", VERY_TINY))
    assert [row["weights"] for row in rows] == ["fp16", "int4"]
    assert [row["largest change of a probability to the CPU's"] for row in rows] == [0.0, 0.0]
    assert all(row["alone against in a batch"] < 1e-3 for row in rows)


def test_drawn_weights_differ_between_layers_and_are_the_same_every_time() -> None:
    one, other = (DrawnWeights(VERY_TINY, tied=True) for _ in range(2))
    assert (one.layer(1).gate == other.layer(1).gate).all()
    assert (one.layer(0).gate != one.layer(1).gate).any()


def test_a_drawn_judge_needs_no_file_of_a_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without_gguf(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "gguf":
            raise ImportError(name)
        return imported(name, *rest, **more)

    for module in [name for name in sys.modules if name.startswith(("gguf", "gradewire_models.judges", "benchmarks"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without_gguf)
    __import__("benchmarks.gpu.drawn_judges")


def test_without_a_graph_writer_the_step_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(NotRunError, match="lacks onnx"):
        judging._need_graph_writer()
