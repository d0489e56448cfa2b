"""How batches are cut follows from what runs a model."""

from dataclasses import replace
from pathlib import Path

from gradewire_models.repository.built import load_built
from gradewire_server.encoders.local.choosing import open_session
from gradewire_server.encoders.local.cuda.device import Gpu
from gradewire_server.settings.compute import ComputeConfig, GpuConfig


def test_padding_costs_little_in_graphs_that_take_it_out_and_all_in_exported_ones(minilm: Path) -> None:
    built = load_built(minilm, "all-MiniLM-L6-v2")
    compute = ComputeConfig(workers=1, lone_run_threads=1)
    costs = [
        open_session(model, compute, GpuConfig(device="cpu"), Gpu(None)).compute.padding_cost
        for model in (built, replace(built, name="exported"))
    ]
    assert costs == [0.15, 1.0]
