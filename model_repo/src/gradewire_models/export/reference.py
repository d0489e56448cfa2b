"""What an exported graph has to agree with: the encoder in torch, each text alone, so there is no padding to get wrong.

Nothing of the wrapper that is traced is used here: no mask, and pooling and normalisation in numpy and float64.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradewire_models.build.reference import Golden
from gradewire_models.errors import ExportError
from gradewire_models.export.folder import Pooling

_SHORT_LENGTHS = (1, 2, 3, 5, 8, 13, 24, 48, 90)
_SEED = 20261122
_NEAR = 8

Ids = NDArray[np.int64]


def reference_texts(tokenized: Sequence[Sequence[int]], vocabulary: int, max_tokens: int) -> tuple[Ids, ...]:
    """Token ids of texts of many lengths, in mixed order.

    Args:
        tokenized: Ids of real texts, each at most `max_tokens`.
        vocabulary: Number of word vectors; random ids are drawn below it.
        max_tokens: Length of the longest one.

    Returns:
        The real texts that have any token, and random ones of 1 to `max_tokens` tokens.
    """
    rng = np.random.default_rng(_SEED)
    lengths = [length for length in _SHORT_LENGTHS if length < max_tokens] + [max_tokens]
    texts = [rng.integers(0, vocabulary, length) for length in lengths]
    texts += [np.array(ids, np.int64) for ids in tokenized if ids]
    return tuple(texts[place] for place in rng.permutation(len(texts)))


def reference_vectors(model: Any, pooling: Pooling, token_layers: Sequence[int], texts: Sequence[Ids]) -> Golden:
    """Encodes each text alone with the model as transformers runs it.

    Args:
        model: As `load_encoder` gave it.
        pooling: How token vectors become a sentence vector.
        token_layers: Earlier layers (1 is the first) whose token vectors are wanted.
        texts: int64 [tokens] each.

    Raises:
        ExportError: The model has no such layer, or no positions for a text that long.
    """
    last = int(model.config.num_hidden_layers)
    if any(layer >= last for layer in token_layers):
        raise ExportError(f"the model has {last} layers: --token-layer lies between 1 and {last - 1}")
    sentences: list[NDArray[np.float32]] = []
    tokens: dict[int, list[NDArray[np.float32]]] = {layer: [] for layer in (*token_layers, last)}
    for ids in texts:
        try:
            with torch.inference_mode():
                found = model(input_ids=torch.from_numpy(ids)[None], output_hidden_states=True)
        except (IndexError, RuntimeError) as error:
            raise ExportError(
                f"the model cannot take {len(ids)} tokens ({error}): lower --max-tokens{_how_far(model, ids)}"
            ) from error
        for layer in token_layers:
            tokens[layer].append(found.hidden_states[layer][0].numpy())
        tokens[last].append(found.last_hidden_state[0].numpy())
        sentences.append(_sentence(found, pooling))
    return Golden(
        ids=tuple(texts),
        sentences=np.stack(sentences),
        tokens_by_layer={layer: np.concatenate(rows) for layer, rows in tokens.items()},
    )


def _how_far(model: Any, ids: Ids) -> str:
    # RoBERTa and its like take fewer tokens than their settings say, by one more than the padding's id.
    for tokens in range(len(ids) - 1, max(0, len(ids) - _NEAR), -1):
        try:
            with torch.inference_mode():
                model(input_ids=torch.from_numpy(ids[:tokens])[None])
        except (IndexError, RuntimeError):
            continue
        return f" to {tokens}"
    return ""


def _sentence(found: Any, pooling: Pooling) -> NDArray[np.float32]:
    rows: NDArray[np.float64] = found.last_hidden_state[0].double().numpy()
    pooled = {
        "mean": lambda: rows.mean(axis=0),
        "cls": lambda: rows[0],
        "last": lambda: rows[-1],
        "pooler": lambda: found.pooler_output[0].double().numpy(),
    }[pooling]()
    unit: NDArray[np.float32] = (pooled / np.linalg.norm(pooled)).astype(np.float32)
    return unit
