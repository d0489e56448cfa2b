"""Export an encoder into a repository, and verify the exported model. A failure leaves the repository unchanged."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradewire_models.build.progress import Progress, Report, ignore
from gradewire_models.build.publish import add_fingerprint, publish_model, workspace, write_model
from gradewire_models.build.reference import GOLDEN_FILE, load_golden, save_golden
from gradewire_models.build.verify import Check, require, verify_built
from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.errors import BuildError, ExportError, VerificationError
from gradewire_models.export.exporter import EXPORTERS, load_encoder, reference_texts, reference_vectors, written_graph
from gradewire_models.export.folder import EncoderFolder, find_source, read_folder
from gradewire_models.export.parity import check_parity, tolerance_of
from gradewire_models.export.plan import ExportOptions, check_options, make_plan, notes_on
from gradewire_models.export.tokens import load_tokenizer, sample_ids, write_exported_tokenizer
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import ONNX_FILE, TOKENIZER_FILE
from gradewire_models.repository.serving import serving_of_class


@dataclass(frozen=True, slots=True)
class ExportResult:
    """An exported model, the verification's results, and notes for the user."""

    model: BuiltModel
    checks: tuple[Check, ...]
    notes: tuple[str, ...]


def export_model(
    wanted: str, repository: Path, options: ExportOptions, *, revision: str = "", report: Report = ignore
) -> ExportResult:
    """Export an encoder from a directory or the hub into `repository`; replace any model with the same name.

    The graph is compared with torch before it is published. After a failure, the repository is unchanged.

    Raises:
        ExportError: The model cannot be exported with these options.
        DownloadError: The model cannot be downloaded from the hub.
        VerificationError: The graph's results differ from torch's.
        BuildError: The repository is not writable.
    """
    check_options(options)
    report(Progress("looking for the model"))
    source = find_source(wanted, revision=revision)
    folder = read_folder(source.directory, pooling=options.pooling)
    plan = make_plan(folder, options, source)
    try:
        repository.mkdir(parents=True, exist_ok=True)
        with workspace(repository, plan.name, report) as directory:
            checks, notes = _write(folder, plan, directory, report)
            dropped = publish_model(directory / plan.name, repository)
    except OSError as error:
        raise BuildError(f"cannot write {plan.name} into {repository}: {error}. Nothing was changed") from error
    dropped_notes = [f"dropped, because the model's vectors changed: {fitted.summary}" for fitted in dropped]
    return ExportResult(load_built(repository, plan.name), checks, (*notes_on(folder, options), *notes, *dropped_notes))


def _write(
    folder: EncoderFolder, plan: EncoderMetadata, directory: Path, report: Report
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    report(Progress("loading the weights"))
    tokenizer = load_tokenizer(folder)
    model = load_encoder(folder)
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
            return _write_graph(model, each, metadata, target, report), notes
        except (ExportError, VerificationError) as error:
            notes += (f"exported with {last}, because {each} failed: {error}",)
            # The failed exporter may have changed the model.
            model = load_encoder(folder)
    return _write_graph(model, last, metadata, target, report), notes


def _write_graph(
    model: Any, exporter: str, metadata: EncoderMetadata, target: Path, report: Report
) -> tuple[Check, ...]:
    report(Progress("writing the graph"))
    graph = add_fingerprint(written_graph(model, metadata, exporter))
    write_model(target, metadata, graph, serving_of_class(metadata.numeric_class))
    report(Progress("verifying"))
    golden = load_golden(target / GOLDEN_FILE)
    vocabulary = int(model.get_input_embeddings().num_embeddings)
    parity = check_parity(target / ONNX_FILE, golden, vocabulary, tolerance_of(metadata.numeric_class))
    checks = (*parity, *verify_built(target.parent, metadata.name, None))
    return require(checks, "the graph does not compute the same as torch: ")
