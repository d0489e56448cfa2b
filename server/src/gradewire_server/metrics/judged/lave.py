"""LAVE: a language model rates the prediction 1 to 3 in the light of question and references.

Source: Mañas, Krojer and Agrawal 2024, "Improving Automatic VQA Evaluation Using Large Language Models", section 4.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from typing_extensions import override

from gradewire_server.domain.metric import ParameterError, ParameterInfo
from gradewire_server.metrics.judged.metric import JudgedMetric, JudgedParameters, Scale, judged_info
from gradewire_server.metrics.judged.parameters import (
    JUDGE_INFO,
    PROMPT_INFO,
    BinaryQuestions,
    LabelValue,
    binary_info,
    value_info,
)
from gradewire_server.metrics.judged.prompt import DEFAULT_SHARE
from gradewire_server.metrics.judged.shown_item import View


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
class LaveParameters(JudgedParameters):
    """Parameters of `lave`.

    Attributes:
        model: Plain name of the judge.
        mode: Whether a reason is asked for first.
        value: How probabilities become the rating.
        binary: Who grades answers to binary questions.
        demonstrations: Which ones are shown; auto: by the kind of question.
        caption: Whether the judge is shown the item's caption.
        reference_filter: References rarer than this share of the most frequent one are left out, 0 to 1.
        prompt: NAME/VERSION@DIGEST, or the text of a prompt file.

    Raises:
        ParameterError: A choice that does not exist, a share out of range, or a prompt that cannot be used.
    """

    metric: ClassVar[str] = "lave"

    model: str = ""
    mode: LaveMode = LaveMode.RATING
    value: LabelValue = LabelValue.EXPECTED
    binary: BinaryQuestions = BinaryQuestions.RULE
    demonstrations: Demonstrations = Demonstrations.AUTO
    caption: bool = False
    reference_filter: float = DEFAULT_SHARE
    prompt: str = ""

    def __post_init__(self) -> None:
        self.take_choices(mode=LaveMode, value=LabelValue, binary=BinaryQuestions, demonstrations=Demonstrations)
        if not 0 <= self.reference_filter <= 1:
            raise ParameterError("reference_filter", f"must be a number from 0 to 1, not {self.reference_filter}")
        self.take_prompt(self.mode)
        wanted = self.demonstrations
        if wanted is not Demonstrations.AUTO and wanted not in self.file.demonstrations:
            raise ParameterError("demonstrations", f"{self.file.title} has no {wanted} ones")

    @property
    @override
    def variant(self) -> str:
        return self.mode

    @property
    @override
    def by_rule(self) -> bool:
        return self.binary is BinaryQuestions.RULE

    @property
    @override
    def view(self) -> View:
        kind = "" if self.demonstrations is Demonstrations.AUTO else str(self.demonstrations)
        return View(self.caption, self.reference_filter, kind)


class Lave(JudgedMetric[LaveParameters]):
    """The judge's rating; of a binary question, by default, whether the prediction's yes or no is the references'."""

    info = judged_info(
        "lave",
        version=1,
        description="A language model's rating, 1 to 3, of the prediction in the light of question and references.",
        citation="Mañas, Krojer and Agrawal 2024, Improving Automatic VQA Evaluation Using Large Language Models, AAAI",
        parameters=(
            JUDGE_INFO,
            ParameterInfo(
                name="mode",
                description="rating: at once; rationale: behind a reason that is written first, many times slower.",
                default_value=LaveMode.RATING,
                allowed=", ".join(LaveMode),
            ),
            value_info(LaveParameters().value),
            binary_info(LaveParameters().binary),
            ParameterInfo(
                name="demonstrations",
                description="Solved items before the item: for binary, visual (short) or text questions (long); auto: "
                "by the kind of question.",
                default_value=Demonstrations.AUTO,
                allowed=", ".join(Demonstrations),
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
    )
    parameters_type = LaveParameters
    scale = Scale("rating", lowest=1.0, highest=3.0)
