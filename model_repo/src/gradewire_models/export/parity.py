"""Check that a graph and torch compute the same results, whatever texts are in the batch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from gradewire_models.bf16 import pad
from gradewire_models.build.reference import Golden
from gradewire_models.build.verify import ERRORS_ONLY, Check, Rows, open_session, run, token_error
from gradewire_models.repository.config import SENTENCE_OUTPUT, TOKENS_OUTPUT, layer_output
from gradewire_models.runtime import onnxruntime

_BATCH_TEXTS = 5
_SEED = 20261122


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Limits for the differences between a graph and torch in float32.

    Attributes:
        component: Maximum difference in a component of a sentence vector.
        cosine: Maximum of (1 - cosine) between a sentence vector and torch's vector.
        token_component: Maximum difference in a component of a token vector, measured by `token_error`.
    """

    component: float = 1e-4
    cosine: float = 1e-4
    token_component: float = 1e-4


FP16_TOLERANCE: Final = Tolerance(component=5e-3, token_component=0.05)


def tolerance_of(numeric_class: str) -> Tolerance:
    """Return the limits for a graph with this numeric class, for example ``"fp16-cuda"``."""
    return FP16_TOLERANCE if numeric_class.startswith("fp16-") else Tolerance()


def check_parity(path: Path, golden: Golden, vocabulary: int, tolerance: Tolerance) -> list[Check]:
    """Compare the graph at `path` with `golden`, in mixed batches with random ids as padding."""
    session = open_session(path, severity=ERRORS_ONLY)
    layers = sorted(golden.tokens_by_layer)
    outputs = [SENTENCE_OUTPUT, *(layer_output(layer) for layer in layers[:-1]), TOKENS_OUTPUT]
    sentences: list[Rows] = []
    tokens: dict[int, list[Rows]] = {layer: [] for layer in layers}
    rng = np.random.default_rng(_SEED)
    for start in range(0, len(golden.ids), _BATCH_TEXTS):
        texts = golden.ids[start : start + _BATCH_TEXTS]
        ids, mask = pad(texts)
        found = run(session, outputs, np.where(mask, ids, rng.integers(0, vocabulary, ids.shape)), mask)
        sentences.append(found[0])
        for layer, rows in zip(layers, found[1:], strict=True):
            tokens[layer] += [row[: len(text)] for row, text in zip(rows, texts, strict=True)]
    lengths = [len(text) for text in golden.ids]
    over = f"over {len(lengths)} texts of {min(lengths)} to {max(lengths)} tokens in mixed batches"
    return [
        _check_sentences(np.concatenate(sentences), golden.sentences, over, tolerance),
        _check_tokens({layer: np.concatenate(rows) for layer, rows in tokens.items()}, golden, tolerance),
        _check_empty(session, tolerance),
    ]


def _check_sentences(found: Rows, expected: Rows, over: str, tolerance: Tolerance) -> Check:
    error = float(np.max(np.abs(found - expected)))
    cosine_error = float(np.max(1 - np.sum(found.astype(np.float64) * expected, axis=1)))
    return Check(
        "sentence vectors match torch",
        # A comparison with NaN is False, so the check fails on NaN.
        passed=error <= tolerance.component and cosine_error <= tolerance.cosine,
        detail=f"largest difference {error:.1e}, cosine at least 1 - {cosine_error:.1e}, {over} "
        f"(at most {tolerance.component:.0e} and {tolerance.cosine:.0e})",
    )


def _check_tokens(found: dict[int, Rows], golden: Golden, tolerance: Tolerance) -> Check:
    errors = {layer: token_error(rows, golden.tokens_by_layer[layer]) for layer, rows in found.items()}
    said = ", ".join(f"{error:.1e} (layer {layer})" for layer, error in errors.items())
    return Check(
        "token vectors match torch",
        passed=all(error <= tolerance.token_component for error in errors.values()),
        detail=f"largest difference {said} (at most {tolerance.token_component:.0e} of their size)",
    )


def _check_empty(session: onnxruntime.InferenceSession, tolerance: Tolerance) -> Check:
    # A server fills batches with zeros, which must not change other rows.
    ids = np.zeros((2, 3), np.int64)
    mask = np.array([[1, 1, 1], [0, 0, 0]], np.int64)
    (found,) = run(session, [SENTENCE_OUTPUT], ids, mask)
    (alone,) = run(session, [SENTENCE_OUTPUT], ids[:1], mask[:1])
    passed = bool(np.all(np.isfinite(found))) and float(np.max(np.abs(found[0] - alone[0]))) <= tolerance.component
    return Check(
        "empty rows", passed=passed, detail="a row without tokens has finite results and does not change the other row"
    )
