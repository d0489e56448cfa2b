"""How batches are cut follows from what runs a model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradewire_models.repository.built import load_built
from gradewire_server.encoders.cuda import Gpu
from gradewire_server.encoders.local import EncoderSession, open_session
from gradewire_server.settings.engine import ComputeConfig, GpuConfig


def test_padding_costs_little_in_graphs_that_take_it_out_and_all_in_exported_ones(minilm: Path) -> None:
    built = load_built(minilm, "all-MiniLM-L6-v2")
    compute = ComputeConfig(workers=1, lone_run_threads=1)
    costs = [
        open_session(model, compute, GpuConfig(device="cpu"), Gpu(None)).compute.padding_cost
        for model in (built, replace(built, name="exported"))
    ]
    assert costs == [0.15, 1.0]


def test_a_session_opens_without_a_word_on_standard_error(minilm: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = load_built(minilm, "all-MiniLM-L6-v2")
    session = EncoderSession(model, ComputeConfig(lone_run_threads=1))
    options = session._session.get_session_options()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    output = session.run([np.array([101, 2003, 102], np.int32)], layers=(), exclusive=False)
    assert output.sentences.shape == (1, 384)
    assert capfd.readouterr().err == ""
