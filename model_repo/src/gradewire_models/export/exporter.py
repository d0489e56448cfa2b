"""Export encoders with optimum or torch, and compute reference vectors."""

import logging
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
import transformers
from numpy.typing import NDArray
from onnx import helper

from gradewire_models.build.reference import Golden
from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.errors import ExportError
from gradewire_models.export.folder import EncoderFolder
from gradewire_models.export.graph import HIDDEN_STATES, LAST_HIDDEN_STATE, POOLER_OUTPUT, Completion, complete, to_half
from gradewire_models.export.plan import CPU_CLASS
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS

_OPSET = 20  # the first opset with a GELU operator, which our own graphs also use
_EXAMPLE_TOKENS = 16
_TASK = "feature-extraction"

# Texts of unequal length, so that the trace includes padding.
_EXAMPLE_LENGTHS = (11, 5, 2)

_SHORT_LENGTHS = (1, 2, 3, 5, 8, 13, 24, 48, 90)
_SEED = 20261122
_NEAR = 8

Ids = NDArray[np.int64]


def load_encoder(folder: EncoderFolder) -> Any:
    """Load the weights as float32, in evaluation mode, with plain ("eager") attention.

    This reads only safetensors and never runs a model's code.

    Raises:
        ExportError: The architecture is unknown or needs the model's code, or weights are missing.
    """
    # transformers' own progress bar would break ours.
    transformers.utils.logging.disable_progress_bar()
    try:
        model, info = transformers.AutoModel.from_pretrained(
            folder.directory,
            attn_implementation="eager",
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    # transformers raises errors of many types, so show its message.
    except Exception as error:
        raise ExportError(
            f"transformers {transformers.__version__} cannot load {folder.directory} ({folder.model_type}) without "
            f"running the model's code, which we never do: {_first_lines(error)}"
        ) from error
    missing = sorted(name for name in info["missing_keys"] if folder.pooling == "pooler" or "pooler" not in name)
    if missing:
        raise ExportError(f"{folder.directory} lacks these weights: {', '.join(missing[:5])}")
    if model.config.get_text_config() is not model.config:
        raise ExportError(f"{folder.directory} contains a model for more than text ({folder.model_type})")
    if folder.pooling == "pooler" and getattr(model, "pooler", None) is None:
        raise ExportError(f"{folder.model_type} has no pooler. Choose another --pooling")
    model.config.use_cache = False
    return model.eval()


def weight_bytes(model: Any) -> int:
    """Return the size of a model's weights in bytes; weights that layers share count once."""
    return sum(int(parameter.numel()) * int(parameter.element_size()) for parameter in model.parameters())


def padding_id(model: Any) -> int:
    """Return the model's padding id, or 0 for a model without a padding id."""
    padding = model.config.pad_token_id
    return 0 if padding is None or padding < 0 else int(padding)


class BareEncoder(torch.nn.Module):  # type: ignore[misc]  # torch is not installed for type checks
    """An encoder for torch's exporter to trace, with only the required outputs."""

    def __init__(self, model: Any, outputs: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.outputs = tuple(outputs)

    def forward(self, input_ids: Any, attention_mask: Any) -> tuple[Any, ...]:
        """Encode a batch.

        Args:
            input_ids: int64 [batch, tokens], with the model's padding id after a text's end.
            attention_mask: int64 [batch, tokens], with 1 for a text's tokens, then 0.

        Returns:
            An array for each output: float32 [batch, tokens, dims], or [batch, dims] for the pooler.
        """
        layers = any(name.startswith(HIDDEN_STATES) for name in self.outputs)
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=layers)
        return tuple(_output(found, name) for name in self.outputs)


def _output(found: Any, name: str) -> Any:
    whole, _, layer = name.partition(".")
    return found[whole][int(layer)] if layer else found[whole]


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).strip().splitlines()[:3])


def export_through_optimum(
    model: Any, outputs: Sequence[str], max_tokens: int, directory: Path, *, in_files: bool = False
) -> onnx.ModelProto:
    """Export `model` with optimum. Equal weights and versions give equal bytes. The export changes `model.config`.

    Return the bare encoder, without pooling. Its inputs have transformers' names, int64 [batch, tokens], and its
    outputs include `outputs`. With `in_files`, weights that torch wrote into files in `directory` stay there.

    Raises:
        ExportError: optimum is not installed, does not support the installed transformers or the architecture, or fails
            to trace the model. Another exporter may work.
    """
    # The import takes seconds, and fails with transformers 5 (docs/adr/0009-encoder-graphs.md).
    try:
        from optimum.exporters.onnx import export  # noqa: PLC0415
    except ImportError as error:
        raise ExportError(
            f"optimum's ONNX exporter is not usable here ({error}). Run: pip install 'gradewire[export]'"
        ) from error
    earlier_layers = any(name.startswith(HIDDEN_STATES) for name in outputs)
    config = _exporter_config(model, pooler=POOLER_OUTPUT in outputs, earlier_layers=earlier_layers)
    with _quiet():
        path = directory / "encoder.onnx"
        try:
            export(
                model,
                config,
                path,
                opset=_OPSET,
                input_shapes={"sequence_length": min(_EXAMPLE_TOKENS, max_tokens)},
                disable_dynamic_axes_fix=True,  # the fix would run the graph to find axes, which `complete` sets anyway
                model_kwargs={"output_hidden_states": True} if earlier_layers else None,
            )
        # torch's tracer and each architecture's code raise errors of many types.
        except Exception as error:
            said = " ".join(str(error).strip().splitlines()[:2])
            raise ExportError(f"optimum cannot trace {model.config.model_type}: {said}") from error
        return onnx.load(path, load_external_data=not in_files)


def _exporter_config(model: Any, *, pooler: bool, earlier_layers: bool) -> Any:
    import optimum.exporters.onnx.model_configs  # noqa: F401, PLC0415 - registers optimum's architectures; slow as above
    from optimum.exporters.tasks import TasksManager  # noqa: PLC0415

    try:
        make = TasksManager.get_exporter_config_constructor(
            "onnx", model=model, task=_TASK, library_name="transformers"
        )
        known = make(model.config)
    except (KeyError, ValueError) as error:
        raise ExportError(f"optimum's ONNX exporter does not support {model.config.model_type}") from error
    # The tracer names outputs in order, so list all layers.
    wanted = OrderedDict([(LAST_HIDDEN_STATE, {0: "batch", 1: "tokens"})])
    if pooler:
        wanted[POOLER_OUTPUT] = {0: "batch"}
    if earlier_layers:
        count = int(model.config.num_hidden_layers) + 1
        wanted.update((f"{HIDDEN_STATES}.{layer}", {0: "batch", 1: "tokens"}) for layer in range(count))
    # optimum has no option for additional outputs, so override a property of its configuration class.
    known.__class__ = type(f"Wider{type(known).__name__}", (type(known),), {"outputs": property(lambda _: wanted)})
    return known


@contextmanager
def _quiet() -> Iterator[None]:
    # Hide both exporters' messages for developers.
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def trace(
    model: Any, outputs: Sequence[str], max_tokens: int, directory: Path, *, in_files: bool = False
) -> onnx.ModelProto:
    """Trace `model` with torch's exporter. Equal weights and versions give equal bytes.

    Return the bare encoder, without pooling, with the inputs ``input_ids`` and ``attention_mask``, int64 [batch,
    tokens], and `outputs`. With `in_files`, the weights are in a file in `directory`.

    Raises:
        ExportError: torch cannot express the model as ONNX.
    """
    encoder = BareEncoder(model, outputs)
    tokens = min(max(_EXAMPLE_LENGTHS), max_tokens)
    ids = torch.ones((len(_EXAMPLE_LENGTHS), tokens), dtype=torch.int64)
    mask = torch.stack([(torch.arange(tokens) < length).to(torch.int64) for length in _EXAMPLE_LENGTHS])
    dims = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=max_tokens)}
    with _quiet(), torch.no_grad():
        try:
            program = torch.onnx.export(
                encoder,
                (ids, mask),
                input_names=[INPUT_IDS, ATTENTION_MASK],
                output_names=list(outputs),
                dynamic_shapes=(dims, dims),
                opset_version=_OPSET,
                external_data=in_files,
                verbose=False,
                dynamo=True,
            )
            if in_files:
                path = directory / "traced.onnx"
                program.save(path, external_data=True)
                return onnx.load(path, load_external_data=False)
        except torch.onnx.errors.OnnxExporterError as error:
            raise ExportError(f"torch {torch.__version__} cannot write this model as ONNX: {error}") from error
    model_proto: onnx.ModelProto = program.model_proto
    return model_proto


EXPORTERS: Final = {"optimum": export_through_optimum, "torch": trace}
"""The exporters in the order of the attempts."""


def written_graph(
    model: Any, metadata: EncoderMetadata, exporter: str, directory: Path, *, in_files: bool = False
) -> onnx.ModelProto:
    """Export `model` for `metadata` with one of `EXPORTERS`. Equal weights and versions give equal bytes.

    Return a graph of standard operators. It includes the weights; with `in_files`, it may refer to files in `directory`
    for them. Its inputs are ``input_ids`` and ``attention_mask``,
    int64 [batch, tokens]; its outputs are ``sentence_embedding``, ``token_embeddings`` and
    ``token_embeddings_layer_N``, float32.

    Raises:
        ExportError: This exporter cannot export the model.
    """
    completion = Completion(metadata.pooling, metadata.earlier_layers, int(model.config.hidden_size), padding_id(model))
    try:
        encoder = EXPORTERS[exporter](model, completion.needed, metadata.max_tokens, directory, in_files=in_files)
        if metadata.numeric_class.startswith("fp16-"):
            encoder = to_half(encoder)
        graph = complete(encoder, completion)
    except (ValueError, onnx.checker.ValidationError) as error:
        raise ExportError(f"{exporter} exports no valid graph: {error}") from error
    if metadata.numeric_class != CPU_CLASS:
        # Variants can have the same graph. Store the numeric class, so that their fingerprints differ.
        helper.set_model_props(graph, {"numeric_class": metadata.numeric_class})
    return graph


def reference_texts(tokenized: Sequence[Sequence[int]], vocabulary: int, max_tokens: int) -> tuple[Ids, ...]:
    """Return random texts and the texts of `tokenized` that have ids, in random order.

    A random text has 1 to `max_tokens` ids below `vocabulary`.
    """
    rng = np.random.default_rng(_SEED)
    lengths = [length for length in _SHORT_LENGTHS if length < max_tokens] + [max_tokens]
    texts = [rng.integers(0, vocabulary, length) for length in lengths]
    texts += [np.array(ids, np.int64) for ids in tokenized if ids]
    return tuple(texts[place] for place in rng.permutation(len(texts)))


def reference_vectors(model: Any, pooling: str, token_layers: Sequence[int], texts: Sequence[Ids]) -> Golden:
    """Encode texts one at a time with transformers. Each text is int64 [tokens].

    Raises:
        ExportError: The model lacks a layer, or has too few positions for a text.
    """
    last = int(model.config.num_hidden_layers)
    if any(layer >= last for layer in token_layers):
        raise ExportError(f"the model has {last} layers, so --token-layer must be between 1 and {last - 1}")
    sentences: list[NDArray[np.float32]] = []
    tokens: dict[int, list[NDArray[np.float32]]] = {layer: [] for layer in (*token_layers, last)}
    for ids in texts:
        try:
            with torch.inference_mode():
                found = model(input_ids=torch.from_numpy(ids)[None], output_hidden_states=True)
        except (IndexError, RuntimeError) as error:
            raise ExportError(
                f"the model does not accept {len(ids)} tokens ({error}). Lower --max-tokens{_how_far(model, ids)}"
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
    # RoBERTa and similar models accept fewer tokens than their settings say; the difference is the padding id plus one.
    for tokens in range(len(ids) - 1, max(0, len(ids) - _NEAR), -1):
        try:
            with torch.inference_mode():
                model(input_ids=torch.from_numpy(ids[:tokens])[None])
        except (IndexError, RuntimeError):
            continue
        return f" to {tokens}"
    return ""


def _sentence(found: Any, pooling: str) -> NDArray[np.float32]:
    rows: NDArray[np.float64] = found.last_hidden_state[0].double().numpy()
    pooled = {
        "mean": lambda: rows.mean(axis=0),
        "cls": lambda: rows[0],
        "last": lambda: rows[-1],
        "pooler": lambda: found.pooler_output[0].double().numpy(),
    }[pooling]()
    unit: NDArray[np.float32] = (pooled / np.linalg.norm(pooled)).astype(np.float32)
    return unit
