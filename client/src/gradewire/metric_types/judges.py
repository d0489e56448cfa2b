"""Metrics that ask a judge: a language model that reads question, references and prediction."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from gradewire.metric_types.base import Metric

LabelValue = Literal["most_probable", "expected"]
BinaryQuestions = Literal["judge", "rule"]
LaveMode = Literal["rating", "rationale"]
LavePreset = Literal["v1", "paper"]
Demonstrations = Literal["auto", "binary", "short", "long"]
GradeStyle = Literal["match", "extract"]
ShownReferences = Literal["closest", "all", "auto"]
JudgeGuard = Literal["none", "other_key"]
VerdictStyle = Literal["plain", "step_by_step", "reasons"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lave(Metric):
    """LAVE: a judge rates the prediction 1 to 3 in the light of question and references; the score is 0 to 1.

    Attributes:
        mode: rating (default: read from the probabilities of the prompt's three labels) or rationale (a reason is
            written first, as in the paper, many times slower).
        value: How the labels' probabilities become one value: most_probable or expected; None: the server's default.
        binary: Who grades answers to yes-no questions: judge (the paper's way) or rule (a prediction that is yes or no
            and nothing else against the references' majority, the judge for all others); None: the server's default.
        demonstrations: Which examples stand before the item: auto (default: by the kind of question), binary, short or
            long.
        preset: v1 (default) or paper: as LAVE's paper has it (rationale, most_probable, the judge for binary questions,
            all references, its own prompt); what is said beside it goes before it.
        shots: How many of the prompt's demonstrations are shown, 0 to as many as it has of each kind; None: all.
        caption: Whether the judge sees the item's captions; default False.
        references: Which of several aliases the judge sees: the closest one to the prediction, all, or auto (default:
            the closest where it has a word in common with the prediction, else all). Of votes it sees all.
        guard: What an answer has to withstand that the judge calls right: none (default), or other_key: where it has no
            word of a reference, it must not be right against another question's key, too.
        reference_filter: References given by less than this share of the most frequent one's annotators are left out,
            0 to 1; None: 0.25.
        prompt: NAME/VERSION[@DIGEST] of a prompt that the server knows, or the whole text of a prompt file
            (docs/reference/prompt-files.md); None: the metric's own.
        model: Judge, NAME or NAME@DIGEST (at least 8 hex digits); None: the call's `judge`, then the server's default.
    """

    name: ClassVar[Literal["lave"]] = "lave"
    needs_judge: ClassVar[bool] = True
    mode: LaveMode | None = None
    value: LabelValue | None = None
    binary: BinaryQuestions | None = None
    preset: LavePreset | None = None
    demonstrations: Demonstrations | None = None
    shots: int | None = None
    caption: bool | None = None
    references: ShownReferences | None = None
    guard: JudgeGuard | None = None
    reference_filter: float | None = None
    prompt: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeGrade(Metric):
    """A judge's verdict yes or no, and its grade from 0 to 5; the score is grade / 5.

    All attributes but `style` are as in `Lave`.

    Attributes:
        style: match (default: at once) or extract (the key facts of both answers are written out first).
    """

    name: ClassVar[Literal["judge_grade"]] = "judge_grade"
    needs_judge: ClassVar[bool] = True
    style: GradeStyle | None = None
    value: LabelValue | None = None
    binary: BinaryQuestions | None = None
    caption: bool | None = None
    references: ShownReferences | None = None
    guard: JudgeGuard | None = None
    prompt: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSimilarity(Metric):
    """How alike prediction and references are in a judge's eyes, 0 to 1; attributes as in `Lave`."""

    name: ClassVar[Literal["judge_similarity"]] = "judge_similarity"
    needs_judge: ClassVar[bool] = True
    value: LabelValue | None = None
    caption: bool | None = None
    references: ShownReferences | None = None
    guard: JudgeGuard | None = None
    prompt: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeVerdict(Metric):
    """A judge's verdict; the score is the probability of yes, or 1 and 0 with value = most_probable.

    All attributes but `style` are as in `Lave`.

    Attributes:
        style: plain (default), step_by_step (the judge thinks first) or reasons (it gives its reasons first).
        image: Whether the judge sees the item's images; default False. Its judge must be one that sees.
    """

    name: ClassVar[Literal["judge_verdict"]] = "judge_verdict"
    needs_judge: ClassVar[bool] = True
    style: VerdictStyle | None = None
    image: bool | None = None
    value: LabelValue | None = None
    binary: BinaryQuestions | None = None
    caption: bool | None = None
    references: ShownReferences | None = None
    guard: JudgeGuard | None = None
    prompt: str | None = None
    model: str | None = None
