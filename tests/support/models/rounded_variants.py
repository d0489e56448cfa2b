"""Models in the form of those for GPUs: the graphs of their bases, which run on CPUs, with weights in float16."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from gradewire_models.catalog.derived import with_compared_fits
from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import (
    CONFIG_FILE,
    ONNX_FILE,
    TOKENIZER_FILE,
    ModelFiles,
    digest_parts,
    make_config,
    write_config,
)
from gradewire_models.repository.digest import record_file
from gradewire_models.repository.serving import serving_of_class, write_warmup

ENCODER, GRADER = "all-MiniLM-L6-v2-fp16-cuda", "grader-mini-fp16-cuda"


def write_rounded_variants(repository: Path) -> None:
    """Writes both into a repository with their bases; the encoder has the fits that a build would give it."""
    catalog = dict(load_catalog())
    for name in (GRADER, ENCODER):  # the encoder's fits name the grader's digest
        base = load_built(repository, catalog[name].base)
        files = _write_files(repository / name, base)
        digest = digest_parts(catalog[name].metadata, files).digest()
        catalog[name] = with_compared_fits(replace(catalog[name], digest=digest, calibrations=()), catalog)
        describe(repository, catalog[name].metadata, files)


def describe(repository: Path, metadata: EncoderMetadata, files: ModelFiles) -> None:
    """Writes the config.pbtxt."""
    config = make_config(metadata, files, serving_of_class(metadata.numeric_class))
    write_config(repository / metadata.name / CONFIG_FILE, config)


def _write_files(target: Path, base: BuiltModel) -> ModelFiles:
    graph = onnx.load(base.onnx_path)
    for tensor in graph.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor)
            if np.abs(values).max() < np.finfo(np.float16).max:  # the penalty of a padding token is larger
                tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16).astype(np.float32), tensor.name))
    path = target / ONNX_FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(graph.SerializeToString(deterministic=True))
    (target / TOKENIZER_FILE).write_bytes(base.tokenizer_path.read_bytes())
    write_warmup(target, base.max_tokens)
    return ModelFiles(record_file(path), record_file(target / TOKENIZER_FILE), base.fingerprint)
