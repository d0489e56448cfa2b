"""What reads texts and runs of a model, by its kind."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_server.encoders.grading.run_reader import GraderRunReader
from gradewire_server.encoders.grading.texts import joined
from gradewire_server.encoders.grading.tokenizer import GraderTokenizer
from gradewire_server.encoders.run_reader import RunReader
from gradewire_server.encoders.telemetry import ModelTelemetry
from gradewire_server.encoders.tokenizer import TextTokenizer

_WARM_UP: Final = ("warm", "one somewhat longer sentence to warm the encoder up before anyone waits for it")


def open_tokenizer(model: BuiltModel) -> TextTokenizer:
    """The tokenizer of a model."""
    if model.kind == "grader":
        return GraderTokenizer(model.tokenizer_path)
    return TextTokenizer(model.tokenizer_path, max_tokens=model.max_tokens, prefix=model.prefix)


def run_reader(model: BuiltModel, tokenizer: TextTokenizer, telemetry: ModelTelemetry) -> RunReader:
    """What makes blobs of a model's runs."""
    kind = GraderRunReader if model.kind == "grader" else RunReader
    return kind(tokenizer, model.token_layers, telemetry)


def warm_up_ids(model: BuiltModel, tokenizer: TextTokenizer) -> list[NDArray[np.int32]]:
    """Token ids of a short and of a longer text, for runs that nobody waits for."""
    texts = [joined((text, text, text)) for text in _WARM_UP] if model.kind == "grader" else _WARM_UP
    return [text.ids for text in tokenizer.encode(texts)]
