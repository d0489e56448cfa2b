"""A model in bf16 on OpenVINO: token ids in, vectors out. Called from worker threads, several at a time."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gradewire_models.bf16 import Bf16Graph, arithmetic
from gradewire_models.repository.built import BuiltModel
from gradewire_server.encoders.run_reader import RunOutput
from gradewire_server.settings.compute import ComputeConfig


class Bf16Session:
    """The graph of one model, compiled.

    Raises:
        Bf16UnavailableError: OpenVINO is not installed, the processor has no instruction for bf16, or OpenVINO cannot
            compile the graph.
    """

    def __init__(self, model: BuiltModel, compute: ComputeConfig) -> None:
        self._graph = Bf16Graph(model.onnx_path, runs_at_once=compute.worker_count)
        self._model = model

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Runs texts of any lengths; as `EncoderSession.run`.

        Args:
            ids: Token ids of each text, at least one.
            layers: Whose token vectors are wanted, of the model's `token_layers`.
            exclusive: Makes no difference.
        """
        del exclusive
        names = [self._model.sentence_output, *map(self._model.token_output, layers)]
        sentences, *tokens = self._graph.run(names, ids)
        return RunOutput(sentences, dict(zip(layers, tokens, strict=True)))


def described_for_caches(model: BuiltModel, use: str) -> BuiltModel:
    """The same model under a digest that names of entries in caches follow from.

    Another processor or another OpenVINO gives other bits, up to 1e-3 of a component: they share no entries.

    Args:
        model: What is run.
        use: What its vectors are for.

    Raises:
        Bf16UnavailableError: As `Bf16Session`.
    """
    digest = hashlib.sha256(f"bf16 {use}\n{arithmetic()}\n{model.digest}".encode()).hexdigest()
    return replace(model, digest=digest)
