"""Export an encoder into a repository, and verify the exported model. A failure leaves the repository unchanged."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from gradewire_models.build.progress import Progress, Report, ignore
from gradewire_models.build.publish import WEIGHTS_SHA256, add_fingerprint, publish_model, workspace, write_model
from gradewire_models.build.reference import GOLDEN_FILE, load_golden, save_golden
from gradewire_models.build.verify import Check, require, verify_built
from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.errors import BuildError, ExportError, VerificationError
from gradewire_models.export.exporter import (
    EXPORTERS,
    load_encoder,
    reference_texts,
    reference_vectors,
    weight_bytes,
    written_graph,
)
from gradewire_models.export.folder import EncoderFolder, find_source, read_folder
from gradewire_models.export.graph import check_file
from gradewire_models.export.parity import check_parity, tolerance_of
from gradewire_models.export.plan import CPU_CLASS, ExportOptions, check_options, make_plan, notes_on
from gradewire_models.export.tokens import load_tokenizer, sample_ids, write_exported_tokenizer
from gradewire_models.export.weights_file import MAX_GRAPH_WEIGHT_BYTES, require_space, take_out_weights
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import ONNX_FILE, TOKENIZER_FILE
from gradewire_models.repository.serving import serving_of_class


@dataclass(frozen=True, slots=True)
class ExportResult:
    """An exported model, the verification's results, and notes for the user."""

    model: BuiltModel
    checks: tuple[Check, ...]
    notes: tuple[str, ...]


def export_model(  # noqa: PLR0913 - keyword options with defaults
    wanted: str,
    repository: Path,
    options: ExportOptions,
    *,
    revision: str = "",
    max_graph_weight_bytes: int = MAX_GRAPH_WEIGHT_BYTES,
    report: Report = ignore,
) -> ExportResult:
    """Export an encoder from a directory or the hub into `repository`; replace any model with the same name.

    The graph is compared with torch before it is published. After a failure, the repository is unchanged. Weights of
    more than `max_graph_weight_bytes` get a file of their own beside the graph.

    Raises:
        ExportError: The model cannot be exported with these options.
        DownloadError: The model cannot be downloaded from the hub.
        VerificationError: The graph's results differ from torch's.
        BuildError: The repository is not writable, or has too little space.
    """
    check_options(options)
    report(Progress("looking for the model"))
    source = find_source(wanted, revision=revision)
    folder = read_folder(source.directory, pooling=options.pooling)
    plan = make_plan(folder, options, source)
    try:
        repository.mkdir(parents=True, exist_ok=True)
        with workspace(repository, plan.name, report) as directory:
            require_space(repository, _COPIES * _FLOAT_BYTES * folder.weight_numbers, plan.name)
            checks, notes = _write(folder, plan, directory, report, max_graph_weight_bytes)
            dropped = publish_model(directory / plan.name, repository)
    except OSError as error:
        raise BuildError(f"cannot write {plan.name} into {repository}: {error}. Nothing was changed") from error
    dropped_notes = [f"dropped, because the model's vectors changed: {fitted.summary}" for fitted in dropped]
    return ExportResult(load_built(repository, plan.name), checks, (*notes_on(folder, options), *notes, *dropped_notes))


_FLOAT_BYTES = 4
# The exporter's files, those that optimum joins, and the model's.
_COPIES = 3


def _write(
    folder: EncoderFolder, plan: EncoderMetadata, directory: Path, report: Report, max_graph_weight_bytes: int
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    report(Progress("loading the weights"))
    tokenizer = load_tokenizer(folder)
    model = load_encoder(folder)
    is_large = weight_bytes(model) > max_graph_weight_bytes
    if is_large and plan.numeric_class != CPU_CLASS:
        raise ExportError(
            f"{folder.directory} has {weight_bytes(model) / 1e9:.1f} GB of weights in float32, but an export for GPUs "
            f"can have at most {max_graph_weight_bytes / 1e9:.0f} GB. Export it without --target gpu"
        )
    target = directory / plan.name
    target.mkdir(parents=True)
    notes = write_exported_tokenizer(folder, tokenizer, target / TOKENIZER_FILE, plan.max_tokens)

    report(Progress("computing the reference"))
    tokenized = sample_ids(tokenizer, plan)
    vocabulary = int(model.get_input_embeddings().num_embeddings)
    if max(tokenizer.get_vocab().values()) >= vocabulary:
        raise ExportError(f"the tokenizer of {folder.directory} returns ids beyond the {vocabulary} word vectors")
    drawn = reference_texts(tokenized, vocabulary, plan.max_tokens)
    golden = reference_vectors(model, plan.pooling, plan.earlier_layers, drawn)
    save_golden(golden, target / GOLDEN_FILE)

    metadata = replace(plan, dims=golden.sentences.shape[1], layers=max(golden.tokens_by_layer))
    *first, last = EXPORTERS
    for each in first:
        try:
            return _write_graph(model, each, metadata, target, report, is_large=is_large), notes
        except (ExportError, VerificationError) as error:
            notes += (f"exported with {last}, because {each} failed: {error}",)
            # The failed exporter may have changed the model.
            model = load_encoder(folder)
    return _write_graph(model, last, metadata, target, report, is_large=is_large), notes


def _write_graph(  # noqa: PLR0913 - the pieces of one export
    model: Any, exporter: str, metadata: EncoderMetadata, target: Path, report: Report, *, is_large: bool
) -> tuple[Check, ...]:
    report(Progress("writing the graph"))
    path, weights = target / ONNX_FILE, None
    # Beside the target, because the exporter's files may be larger than the system's directory for temporary files.
    with tempfile.TemporaryDirectory(prefix="graph-", dir=target.parent) as scratch:
        graph = written_graph(model, metadata, exporter, Path(scratch), in_files=is_large)
        if is_large:
            path.parent.mkdir(exist_ok=True)
            weights = take_out_weights(graph, Path(scratch), path.parent)
            helper.set_model_props(graph, {**_properties(graph), WEIGHTS_SHA256: weights.sha256})
    fingerprinted = add_fingerprint(graph)
    del graph
    write_model(target, metadata, fingerprinted, serving_of_class(metadata.numeric_class), weights=weights)
    if is_large:
        check_file(path)
    report(Progress("verifying"))
    golden = load_golden(target / GOLDEN_FILE)
    vocabulary = int(model.get_input_embeddings().num_embeddings)
    parity = check_parity(target / ONNX_FILE, golden, vocabulary, tolerance_of(metadata.numeric_class))
    checks = (*parity, *verify_built(target.parent, metadata.name, None))
    return require(checks, "the graph does not compute the same as torch: ")


def _properties(graph: onnx.ModelProto) -> dict[str, str]:
    return {each.key: each.value for each in graph.metadata_props}
