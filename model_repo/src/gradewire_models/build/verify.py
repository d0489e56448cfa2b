"""Check a built model's files and description, and compare its vectors with those of the published weights."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradewire_models.bf16 import BF16_CLASS, Bf16Graph, Bf16UnavailableError, arithmetic, bf16_instruction, pad
from gradewire_models.build.reference import GOLDEN_FILE, Golden, load_golden
from gradewire_models.build.renew import find_differences
from gradewire_models.catalog.entries import CatalogModel, Limits, usual_limits
from gradewire_models.errors import BuildError, ModelBrokenError, VerificationError
from gradewire_models.repository._model_config_pb2 import TYPE_FP32, TYPE_INT64, ModelInput, ModelOutput
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import (
    ATTENTION_MASK,
    CONFIG_FILE,
    FINGERPRINT_OUTPUT,
    INPUT_IDS,
    read_config,
)
from gradewire_models.runtime import cpu_session_options, onnxruntime

Ids: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.float32]

ERRORS_ONLY = 3
"""The log level at which onnxruntime writes no warnings, for graphs that gradewire did not write itself."""

_BATCH_TEXTS = 7
_MAX_LENGTH_ERROR = 1e-5
_ONNX_TYPES = {TYPE_INT64: "tensor(int64)", TYPE_FP32: "tensor(float)"}


def open_session(path: Path, *, severity: int | None = None) -> onnxruntime.InferenceSession:
    """Open a graph with two threads that do not spin; `severity` is onnxruntime's log level."""
    options = cpu_session_options(2)
    if severity is not None:
        options.log_severity_level = severity
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Computes(Protocol):
    """An object that computes a graph's outputs, for example an ONNX Runtime session."""

    def run(self, outputs: Sequence[str], inputs: Mapping[str, Ids], /) -> list[Rows]:
        """Return the outputs for a batch that `pad` made."""


class _Bf16Session:
    """A session that computes with `Bf16Graph`. It removes the padding, which this graph does not allow."""

    def __init__(self, graph: Bf16Graph) -> None:
        self._graph = graph

    def run(self, outputs: Sequence[str], inputs: Mapping[str, Ids], /) -> list[Rows]:
        lengths = inputs[ATTENTION_MASK].sum(axis=1)
        return self._graph.run(outputs, [row[:length] for row, length in zip(inputs[INPUT_IDS], lengths, strict=True)])


def open_computing(model: BuiltModel) -> Computes:
    """Open a session that computes a model's vectors as accurately as this machine can; see `computed_how`.

    Raises:
        BuildError: The model uses bf16 and the machine supports bf16, but OpenVINO cannot compile the graph.
    """
    if model.numeric_class != BF16_CLASS or not _has_bf16():
        session: Computes = open_session(model.onnx_path)
        return session
    try:
        return _Bf16Session(Bf16Graph(model.onnx_path))
    except Bf16UnavailableError as error:
        raise BuildError(f"{model.name}: {error}: {error.__cause__}") from error


def computed_how(model: BuiltModel) -> str:
    """Return a note on how `open_computing` runs a bf16 or GPU model; "" for other models."""
    if model.numeric_class != BF16_CLASS:
        return "" if model.on_cpu else "computed on a CPU, which says little about a GPU"
    try:
        return f"computed in bf16 ({arithmetic()})"
    except Bf16UnavailableError as error:
        return f"computed in fp32, which says nothing about bf16: {error}"


def _has_bf16() -> bool:
    try:
        bf16_instruction()
    except Bf16UnavailableError:
        return False
    return True


def run(session: Computes, outputs: Sequence[str], ids: Ids, mask: Ids) -> list[Rows]:
    """Compute `outputs` for a batch that `pad` made."""
    found: list[Rows] = session.run(outputs, {INPUT_IDS: ids, ATTENTION_MASK: mask})
    return found


@dataclass(frozen=True, slots=True)
class Check:
    """A check's name, whether the check passed, and its findings."""

    name: str
    passed: bool
    detail: str


def verify_built(repository: Path, name: str, expected: CatalogModel | None) -> list[Check]:
    """Check the model `name` in `repository`; `expected` is None if the model is not in the catalog.

    If the files are broken, skip all other checks.

    Raises:
        ModelNotBuiltError: The model is missing.
    """
    try:
        model = load_built(repository, name)
        golden = load_golden(model.directory / GOLDEN_FILE)
    except (ModelBrokenError, OSError, ValueError) as error:
        return [Check("files", passed=False, detail=str(error))]
    session = open_session(model.onnx_path)
    # A second session would need the memory of the weights again.
    computing: Computes = open_computing(model) if model.numeric_class == BF16_CLASS else session
    how = computed_how(model)
    where = f"; the checks below were {how}" if how else ""
    limits = usual_limits(model.numeric_class) if expected is None else expected.limits
    return [
        Check("files", passed=True, detail=f"digest {model.digest}{where}"),
        _check_catalog(model, expected),
        _check_config(model, session, expected),
        _check_fingerprint(model, session, golden),
        *(
            check_logits(model, computing, golden, limits)
            if model.kind == "grader"
            else check_vectors(model, computing, golden, limits)
        ),
    ]


def require(checks: Iterable[Check], failure: str = "") -> tuple[Check, ...]:
    """Return the checks if all passed.

    Raises:
        VerificationError: A check failed; the message begins with `failure`.
    """
    checks = tuple(checks)
    failed = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    if failed:
        raise VerificationError(failure + "; ".join(failed))
    return checks


def check_vectors(model: BuiltModel, session: Computes, golden: Golden, limits: Limits) -> list[Check]:
    """Compare mixed batches with golden vectors, and single texts with batches."""
    layers = sorted(golden.tokens_by_layer)
    batches = _batches(session, [model.sentence_output, *map(model.token_output, layers)], golden)
    sentences = np.concatenate([batch[0] for batch in batches])
    lengths = np.linalg.norm(sentences.astype(np.float64), axis=1)
    golden_lengths = np.linalg.norm(golden.sentences.astype(np.float64), axis=1)
    products = np.sum(sentences.astype(np.float64) * golden.sentences, axis=1)
    cosines = products / (lengths * golden_lengths)
    token_errors = {}
    for place, layer in enumerate(layers, start=1):
        rows = (row for batch in batches for row in batch[place])
        found = np.concatenate([row[: len(ids)] for row, ids in zip(rows, golden.ids, strict=True)])
        token_errors[layer] = token_error(found, golden.tokens_by_layer[layer])
    return [
        Check(
            "sentence vectors",
            passed=bool(np.min(cosines) >= limits.min_cosine and np.all(np.abs(lengths - 1) < _MAX_LENGTH_ERROR)),
            detail=f"lowest cosine {np.min(cosines):.12f} to the reference {_over(golden, 'texts')} "
            f"(at least {limits.min_cosine})",
        ),
        Check(
            "token vectors",
            passed=all(error <= limits.max_token_error for error in token_errors.values()),
            detail="largest error "
            + ", ".join(f"{error:.1e} (layer {layer})" for layer, error in token_errors.items())
            + f" (at most {limits.max_token_error:.0e})",
        ),
        _check_invariance(model, session, golden, sentences, limits.max_batch_effect),
    ]


def check_logits(model: BuiltModel, session: Computes, golden: Golden, limits: Limits) -> list[Check]:
    """Compare mixed batches with golden logits, and single pieces with batches."""
    logits = np.concatenate([batch[0] for batch in _batches(session, [model.sentence_output], golden)])
    error = float(np.max(np.abs(logits - golden.sentences)))
    return [
        Check(
            "logits",
            passed=error <= limits.max_logit_error,
            detail=f"largest error {error:.1e} to the reference {_over(golden, 'pieces')} "
            f"(at most {limits.max_logit_error:.0e})",
        ),
        _check_invariance(model, session, golden, logits, limits.max_logit_error),
    ]


def token_error(found: Rows, expected: Rows) -> float:
    """Return the largest error of any component in token vectors, float32 [tokens, dims].

    If the layer's root mean square is above 1, the error is divided by the root mean square, because values grow in
    layers without a final normalisation, for example in decoders.
    """
    size = float(np.sqrt(np.mean(expected.astype(np.float64) ** 2)))
    return float(np.max(np.abs(found - expected))) / max(1.0, size)


def _batches(session: Computes, outputs: Sequence[str], golden: Golden) -> list[list[Rows]]:
    starts = range(0, len(golden.ids), _BATCH_TEXTS)
    return [run(session, outputs, *pad(golden.ids[start : start + _BATCH_TEXTS])) for start in starts]


def _check_invariance(model: BuiltModel, session: Computes, golden: Golden, together: Rows, limit: float) -> Check:
    alone = np.concatenate([run(session, [model.sentence_output], *pad((ids,)))[0] for ids in golden.ids])
    effect = float(np.max(np.abs(together - alone)))
    what = "logit" if model.kind == "grader" else "vector component"
    return Check(
        "batch invariance",
        passed=effect <= limit,
        detail=f"in a batch, a {what} changes by up to {effect:.1e} (at most {limit:.0e})",
    )


def _over(golden: Golden, what: str) -> str:
    tokens = [len(ids) for ids in golden.ids]
    return f"over {len(tokens)} {what} of {min(tokens)} to {max(tokens)} tokens in mixed batches"


def _check_catalog(model: BuiltModel, expected: CatalogModel | None) -> Check:
    if expected is None or not expected.digest:
        return Check("catalog", passed=True, detail="the catalog pins no digest for this model; not compared")
    if expected.digest != model.digest:
        detail = f"the catalog expects digest {expected.digest}. Build the model again: {expected.build_hint}"
        return Check("catalog", passed=False, detail=detail)
    return Check("catalog", passed=True, detail="the digest matches the catalog")


def _check_config(model: BuiltModel, session: onnxruntime.InferenceSession, expected: CatalogModel | None) -> Check:
    config, _ = read_config(model.directory / CONFIG_FILE)
    # Triton omits the batch dimension, and ONNX has names for variable dimensions.
    described: list[ModelInput | ModelOutput] = [*config.input, *config.output]
    said = {tensor.name: (_ONNX_TYPES.get(tensor.data_type), [-1, *tensor.dims]) for tensor in described}
    real = {
        tensor.name: (tensor.type, [size if isinstance(size, int) else -1 for size in tensor.shape])
        for tensor in (*session.get_inputs(), *session.get_outputs())
    }
    if said != real:
        detail = f"{CONFIG_FILE} describes {said}, but the graph has {real}"
        return Check("config.pbtxt", passed=False, detail=detail)
    try:
        differences = find_differences(model, expected)
    except (OSError, ValueError) as error:
        return Check("config.pbtxt", passed=False, detail=str(error))
    if differences:
        renewal = f". Renew it: gradewire models build {model.name}"
        return Check("config.pbtxt", passed=False, detail="; ".join(differences) + renewal)
    if model.unreadable:
        return Check("config.pbtxt", passed=False, detail="; ".join(each.summary for each in model.unreadable))
    detail = f"a build would write the same; the graph has the same tensors: {', '.join(said)}"
    return Check("config.pbtxt", passed=True, detail=detail)


def _check_fingerprint(model: BuiltModel, session: onnxruntime.InferenceSession, golden: Golden) -> Check:
    texts = golden.ids[:_BATCH_TEXTS]
    (rows,) = run(session, [FINGERPRINT_OUTPUT], *pad(texts))
    named = rows.tolist() == [[model.fingerprint]] * len(texts)
    wrong = f"{CONFIG_FILE} has {model.fingerprint}, but the graph returns {rows.tolist()}"
    right = f"the graph returns its fingerprint in every row: {model.fingerprint}"
    return Check("fingerprint", passed=named, detail=right if named else wrong)
