"""LAVE: a language model rates the prediction 1 to 3 in the light of question and references.

Source: Mañas, Krojer and Agrawal 2024, "Improving Automatic VQA Evaluation Using Large Language Models", section 4.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelFacts, ParameterError, ParameterInfo
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import Failure, JudgeParts, MetricResult
from gradewire_server.metrics.judged.binary_questions import rule_verdict
from gradewire_server.metrics.judged.item import View, check_entry, check_judged
from gradewire_server.metrics.judged.parameters import (
    JUDGE_INFO,
    PROMPT_INFO,
    BinaryQuestions,
    JudgeParameters,
    LabelValue,
    advice,
    binary_info,
    value_info,
)
from gradewire_server.metrics.judged.prompt import DEFAULT_SHARE
from gradewire_server.metrics.judged.rounds import ask_judge

_LOWEST: Final = 1.0
_HIGHEST: Final = 3.0


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
class LaveParameters(JudgeParameters):
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
    def view(self) -> View:
        """What of an item is shown."""
        kind = "" if self.demonstrations is Demonstrations.AUTO else str(self.demonstrations)
        return View(self.caption, self.reference_filter, kind)


class Lave:
    """The judge's rating; of a binary question, by default, whether the prediction's yes or no is the references'."""

    info = MetricInfo(
        name="lave",
        version=1,
        description="A language model's rating, 1 to 3, of the prediction in the light of question and references.",
        minimum=0.0,
        maximum=1.0,
        higher_is_better=True,
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
        needs_model=False,
        needs_judge=True,
        advice=advice("a twentieth", 0.946),
    )
    parameters_type = LaveParameters

    def score(self, item: Item, parameters: LaveParameters, facts: ModelFacts) -> Program:
        """One round for a rating; two where a reason stands before it; none where the rule decides."""
        del facts
        failure = check_judged(item)
        if failure is not None:
            return MetricResult.failed(failure)
        if parameters.binary is BinaryQuestions.RULE:
            verdict = rule_verdict(item.question, item.references, item.prediction)
            if verdict is not None:
                parts = JudgeParts(value=_HIGHEST if verdict else _LOWEST, decided_by="rule")
                return MetricResult(score=float(verdict), parts=parts, correct=verdict)
        judged = yield from ask_judge(parameters.model, parameters.file, parameters.mode, item, parameters.view)
        if isinstance(judged, Failure):
            return MetricResult.failed(judged)
        value = judged.choices["rating"].value(parameters.value)
        score = (value - _LOWEST) / (_HIGHEST - _LOWEST)
        return MetricResult(
            score=score,
            warnings=judged.warnings,
            matched_reference=judged.matched_reference,
            parts=judged.parts("rating", value=value, yes_probability=None),
            correct=score >= parameters.file.variants[parameters.mode].correct_from,
        )

    def prepare(self, entry: ReferenceEntry, parameters: LaveParameters) -> Preparation:
        """Asks for nothing: a judge reads the references with each answer."""
        del parameters
        yield from ()
        return check_entry(entry)
