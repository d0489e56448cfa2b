"""A session of ONNX Runtime opens as it is configured, and silently."""

from pathlib import Path

import numpy as np
import pytest

from gradewire_models.repository.built import load_built
from gradewire_server.encoders.local.session import EncoderSession
from gradewire_server.settings.compute import ComputeConfig


@pytest.mark.parametrize("spinning", ["0", "1"])
def test_a_session_opens_without_a_word_on_standard_error(
    minilm: Path, capfd: pytest.CaptureFixture[str], spinning: str
) -> None:
    model = load_built(minilm, "all-MiniLM-L6-v2")
    session = EncoderSession(model, ComputeConfig(lone_run_threads=1, allow_spinning=spinning == "1"))
    options = session._session.get_session_options()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == spinning
    output = session.run([np.array([101, 2003, 102], np.int32)], layers=(), exclusive=False)
    assert output.sentences.shape == (1, 384)
    assert capfd.readouterr().err == ""
