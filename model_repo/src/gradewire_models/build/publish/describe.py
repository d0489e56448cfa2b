"""Writes a model's directory from its parts."""

from pathlib import Path

from gradewire_models.build.graph.fingerprint import SealedGraph
from gradewire_models.catalog.facts import EncoderFacts
from gradewire_models.repository.config import (
    CONFIG_FILE,
    ONNX_FILE,
    TOKENIZER_FILE,
    FileFacts,
    facts_in,
    make_config,
    write_config,
)
from gradewire_models.repository.digest import file_sha256
from gradewire_models.repository.serving import Serving, write_warmup


def write_model(target: Path, facts: EncoderFacts, graph: SealedGraph, serving: Serving | None = None) -> str:
    """Writes graph, warm-up data and config.pbtxt beside the tokenizer.json that is there.

    Args:
        target: The model's directory.
        facts: What the encoder is.
        graph: Goes into version folder 1.
        serving: How Triton is to run it; None for the CPU and the usual number of copies.

    Returns:
        The model's digest, 64 hex characters.

    Raises:
        OSError: A file cannot be read or written.
    """
    path = target / ONNX_FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(graph.content)
    write_warmup(target, facts.max_tokens)
    tokenizer = target / TOKENIZER_FILE
    files = FileFacts(
        onnx_sha256=file_sha256(path),
        onnx_bytes=path.stat().st_size,
        tokenizer_sha256=file_sha256(tokenizer),
        tokenizer_bytes=tokenizer.stat().st_size,
        fingerprint=graph.fingerprint,
    )
    config = make_config(facts, files, serving or Serving())
    write_config(target / CONFIG_FILE, config)
    return facts_in(config)["digest"]
