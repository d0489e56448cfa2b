"""LAVE: a language model rates the prediction 1 to 3 in the light of question and references.

Source: Mañas, Krojer and Agrawal 2024, "Improving Automatic VQA Evaluation Using Large Language Models", section 4.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from typing_extensions import override

from gradewire_server.domain.metric import MetricInfo, ParameterError, ParameterInfo
from gradewire_server.metrics.judged.metric import JudgedMetric, Scale
from gradewire_server.metrics.judged.parameters import (
    ADVICE,
    BINARY_INFO,
    JUDGE_INFO,
    PROMPT_INFO,
    VALUE_INFO,
    BinaryParameters,
)
from gradewire_server.metrics.judged.prompt import DEFAULT_SHARE
from gradewire_server.metrics.judged.shown_item import View
from gradewire_server.metrics.parameters import choice_info


class LaveMode(StrEnum):
    """Whether the judge gives a reason before its rating."""

    RATING = "rating"
    RATIONALE = "rationale"


class Demonstrations(StrEnum):
    """Which solved items stand before the item."""

    AUTO = "auto"
    BINARY = "binary"
    SHORT = "short"
    LONG = "long"


@dataclass(frozen=True, slots=True)
class LaveParameters(BinaryParameters):
    """Parameters of `lave`.

    Attributes:
        mode: Whether a reason is asked for first.
        demonstrations: Which ones are shown; auto: by the kind of question.
        caption: Whether the judge is shown the item's caption.
        reference_filter: References rarer than this share of the most frequent one are left out, 0 to 1.

    Raises:
        ParameterError: As `JudgeParameters`; a share out of range, or demonstrations that the prompt does not have.
    """

    metric: ClassVar[str] = "lave"

    mode: LaveMode = LaveMode.RATING
    demonstrations: Demonstrations = Demonstrations.AUTO
    caption: bool = False
    reference_filter: float = DEFAULT_SHARE

    def __post_init__(self) -> None:
        if not 0 <= self.reference_filter <= 1:
            raise ParameterError("reference_filter", f"must be a number from 0 to 1, not {self.reference_filter}")
        BinaryParameters.__post_init__(self)
        wanted = self.demonstrations
        if wanted is not Demonstrations.AUTO and wanted not in self.file.demonstrations:
            raise ParameterError("demonstrations", f"{self.file.title} has no {wanted} ones")

    @property
    @override
    def variant(self) -> str:
        return self.mode

    @property
    @override
    def view(self) -> View:
        kind = "" if self.demonstrations is Demonstrations.AUTO else str(self.demonstrations)
        return View(self.caption, self.reference_filter, kind)


LAVE: Final = JudgedMetric(
    MetricInfo(
        name="lave",
        version=2,
        description="A language model's rating, 1 to 3, of the prediction in the light of question and references.",
        citation="Mañas, Krojer and Agrawal 2024, Improving Automatic VQA Evaluation Using Large Language Models, AAAI",
        parameters=(
            JUDGE_INFO,
            choice_info(
                "mode",
                LaveMode.RATING,
                "rating: at once; rationale: behind a reason that is written first, many times slower.",
            ),
            VALUE_INFO,
            BINARY_INFO,
            choice_info(
                "demonstrations",
                Demonstrations.AUTO,
                "Solved items before the item: for binary, visual (short) or text questions (long); auto: by the kind "
                "of question.",
            ),
            ParameterInfo(
                name="caption",
                description="Whether the judge is shown the item's caption.",
                default_value="false",
                allowed="true, false",
            ),
            ParameterInfo(
                name="reference_filter",
                description="References given less often than this share of the most frequent one are left out.",
                default_value=str(DEFAULT_SHARE),
                allowed="0 to 1",
            ),
            PROMPT_INFO,
        ),
        needs_judge=True,
        advice=ADVICE,
    ),
    LaveParameters,
    Scale("rating", lowest=1.0, highest=3.0),
)
"""The judge's rating; of a binary question, by default, whether the prediction's yes or no is the references'."""
