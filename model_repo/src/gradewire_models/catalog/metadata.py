"""What is said of an encoder in its description, wherever it came from: the catalog, or an export."""

from collections.abc import Mapping
from dataclasses import dataclass

from gradewire_models.catalog.calibration import StoredCalibration


@dataclass(frozen=True, slots=True)
class Bertscore:
    """What BERTScore has to know of an encoder; measured by benchmarks/research/bertscore_facts.py.

    Attributes:
        layer: Whose token vectors are compared where a request names none; 1 is the first.
        baselines: By layer: precision, recall and F1 of unrelated texts, for rescaling.
        measured_on: On what, for people.
    """

    layer: int
    baselines: Mapping[int, tuple[float, float, float]]
    measured_on: str = ""


@dataclass(frozen=True, slots=True)
class AdapterMetadata:
    """A low-rank adapter that was merged into an encoder's weights.

    Attributes:
        base: Name of the catalog's model whose weights these were.
        sha256: Of the adapter (`gradewire_models.catalog.adapters.AdapterSource.sha256`), 64 hex characters.
        text_form: What the encoder was trained to read: ``"sfve"`` for "Question: … Answer: …", ``"grader"`` for
            question, reference and answer together; empty for plain texts or where nobody says.
    """

    base: str
    sha256: str
    text_form: str = ""

    @property
    def remark(self) -> str:
        """What follows for its user, a sentence; "" where nothing does."""
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
        layers: Number of encoder layers.
        token_layers: Earlier layers (1 is the first) whose token vectors are outputs as well.
        max_tokens: Longest input in tokens, special tokens included.
        pooling: How token vectors become one, always followed by L2 normalisation; of a grader how they become a logit,
            ``"mean, linear, / TEMPERATURE"``.
        prefix: Text put before every input.
        numeric_class: Arithmetic the vectors come from; ends in the device, ``-cpu`` or ``-cuda`` or ``-tensorrt``.
        licence: SPDX identifier of the weights' licence; empty where nobody knows.
        origin: Where the weights were published first.
        source: Which copy of them was taken.
        catalog_version: Version of the catalog that lists the model; 0 when none does.
        build_command: The command that makes the model again.
        base: Name of the model of which this is a variant; empty for a model of its own.
        calibrations: Thresholds and fits for metrics; those of users count only where they were fitted on this model.
        bertscore: Layer and baselines of BERTScore, or None.
        adapter: What was merged into the weights, or None.
        kind: ``"encoder"``, or ``"grader"`` of what reads question, reference and answer together.
    """

    name: str
    architecture: str
    dims: int
    layers: int
    token_layers: tuple[int, ...]
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
