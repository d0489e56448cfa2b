"""Exports an encoder with optimum's ONNX exporter, and completes its graph with what the repository asks for.

optimum knows, architecture by architecture, what has to be changed in transformers' code before it can be traced. What
it writes is the encoder alone; pooling, normalisation and the two inputs of the repository are added as ONNX operators
(`gradewire_models.export.completed`).
"""

import logging
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx

from gradewire_models.errors import ExportError
from gradewire_models.export.completed import HIDDEN_STATES, LAST_HIDDEN_STATE, POOLER_OUTPUT

_OPSET = 20  # as the graphs that gradewire writes itself: GELU is one operator from here on
_EXAMPLE_TOKENS = 16
_TASK = "feature-extraction"


class UnsupportedError(ExportError):
    """optimum's exporter cannot be had here, or does not know the model; another exporter may."""


def export_through_optimum(model: Any, outputs: Sequence[str], max_tokens: int) -> onnx.ModelProto:
    """Exports `model`; equal weights and versions give equal bytes.

    Args:
        model: As `gradewire_models.export.encoder.load_encoder` gave it; the exporter changes its `config`.
        outputs: Names of outputs, of those that `gradewire_models.export.completed` reads.
        max_tokens: Most tokens of a text.

    Returns:
        The bare encoder: inputs as transformers names them, int64 [batch, tokens], and at least `outputs`.

    Raises:
        UnsupportedError: optimum is not installed, does not work with the transformers that is, knows no such
            architecture, or fails to trace it.
    """
    # Seconds, and not there where transformers 5 is installed (docs/adr/0031-optimum-export.md).
    try:
        from optimum.exporters.onnx import export  # noqa: PLC0415
    except ImportError as error:
        raise UnsupportedError(
            f"optimum's ONNX exporter is not usable here ({error}): pip install 'gradewire[export]'"
        ) from error
    earlier_layers = any(name.startswith(HIDDEN_STATES) for name in outputs)
    config = _exporter_config(model, pooler=POOLER_OUTPUT in outputs, earlier_layers=earlier_layers)
    with tempfile.TemporaryDirectory() as directory, _quiet():
        path = Path(directory) / "encoder.onnx"
        try:
            export(
                model,
                config,
                path,
                opset=_OPSET,
                input_shapes={"sequence_length": min(_EXAMPLE_TOKENS, max_tokens)},
                disable_dynamic_axes_fix=True,  # it runs the graph to find them, and `complete` states them
                model_kwargs={"output_hidden_states": True} if earlier_layers else None,
            )
        # torch's tracer and each architecture's code raise whatever they raise.
        except Exception as error:
            said = " ".join(str(error).strip().splitlines()[:2])
            raise UnsupportedError(f"optimum cannot trace {model.config.model_type}: {said}") from error
        return onnx.load(path)


def _exporter_config(model: Any, *, pooler: bool, earlier_layers: bool) -> Any:
    import optimum.exporters.onnx.model_configs  # noqa: F401, PLC0415 - registers what optimum knows; as above
    from optimum.exporters.tasks import TasksManager  # noqa: PLC0415

    try:
        make = TasksManager.get_exporter_config_constructor(
            "onnx", model=model, task=_TASK, library_name="transformers"
        )
        known = make(model.config)
    except (KeyError, ValueError) as error:
        raise UnsupportedError(f"optimum's ONNX exporter does not know {model.config.model_type}") from error
    # The tracer names outputs in their order, so those of all layers have to be there.
    wanted = OrderedDict([(LAST_HIDDEN_STATE, {0: "batch", 1: "tokens"})])
    if pooler:
        wanted[POOLER_OUTPUT] = {0: "batch"}
    if earlier_layers:
        count = int(model.config.num_hidden_layers) + 1
        wanted.update((f"{HIDDEN_STATES}.{layer}", {0: "batch", 1: "tokens"}) for layer in range(count))
    # optimum offers no option for further outputs: a configuration says what they are.
    known.__class__ = type(f"Wider{type(known).__name__}", (type(known),), {"outputs": property(lambda _: wanted)})
    return known


@contextmanager
def _quiet() -> Iterator[None]:
    # Both exporters tell their own developers a lot.
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "optimum")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
