"""LAVE: a language model rates the prediction 1 to 3, given question and references.

Source: Mañas, Krojer and Agrawal 2024, "Improving Automatic VQA Evaluation Using Large Language Models", section 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typing_extensions import override

from gradewire_proto.choices import BinaryQuestions, Demonstrations, LabelValue, LaveMode, LavePreset, ShownReferences
from gradewire_server.domain.metric import MetricInfo, ParameterError
from gradewire_server.metrics.judged.metric import ADVICE, BinaryParameters, JudgedMetric, Scale
from gradewire_server.metrics.judged.references import DEFAULT_SHARE, View


@dataclass(frozen=True, slots=True)
class LaveParameters(BinaryParameters):
    """The parameters of `lave` (see types.proto).

    Raises:
        ParameterError: A value is invalid (see `PromptParameters`), `reference_filter` is out of range, or the prompt
            lacks the requested demonstrations.
    """

    metric: ClassVar[str] = "lave"

    preset: LavePreset = LavePreset.V1
    mode: LaveMode = LaveMode.RATING
    demonstrations: Demonstrations = Demonstrations.AUTO
    reference_filter: float = DEFAULT_SHARE
    shots: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.reference_filter <= 1:
            raise ParameterError("reference_filter", f"must be a number from 0 to 1, not {self.reference_filter}")
        BinaryParameters.__post_init__(self)
        wanted = self.demonstrations
        if wanted is not Demonstrations.AUTO and wanted not in self.file.demonstrations:
            raise ParameterError("demonstrations", f"{self.file.title} has no {wanted} demonstrations")
        fewest = min(map(len, self.file.demonstrations.values()), default=0)
        if self.shots is not None and self.shots > fewest:
            raise ParameterError("shots", f"must be at most {fewest}, the size of {self.file.title}'s smallest set")

    @classmethod
    @override
    def preset_values(cls, preset: str | None) -> Mapping[str, Any]:
        return _PAPER_PRESET if preset == LavePreset.PAPER else {}

    @property
    @override
    def variant(self) -> str:
        return self.mode

    @property
    @override
    def view(self) -> View:
        kind = "" if self.demonstrations is Demonstrations.AUTO else str(self.demonstrations)
        return View(self.caption, self.reference_filter, kind, self.references, self.shots)


_PAPER_PRESET: Final[Mapping[str, Any]] = {
    "mode": LaveMode.RATIONALE,
    "value": LabelValue.MOST_PROBABLE,
    "binary": BinaryQuestions.JUDGE,
    "references": ShownReferences.ALL,
    "prompt": "lave_paper/2",
}


LAVE: Final = JudgedMetric(
    MetricInfo(
        name="lave",
        version=3,
        description="A language model's rating, 1 to 3, of the prediction, given the question and references.",
        citation="Mañas, Krojer and Agrawal 2024, Improving Automatic VQA Evaluation Using Large Language Models, AAAI",
        needs_judge=True,
        advice=ADVICE,
    ),
    LaveParameters,
    Scale("rating", lowest=1.0, highest=3.0),
)
"""The metric `lave`. By default, a rule grades binary questions by the "yes" or "no" in prediction and references."""
