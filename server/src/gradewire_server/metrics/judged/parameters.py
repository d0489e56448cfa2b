"""Parameters that the judge metrics share; field and value names as in types.proto."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from gradewire_server.domain.metric import ParameterError, ParameterInfo, PlainParameters
from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS, PromptError, PromptFile, PromptLibrary
from gradewire_server.metrics.parameters import member


class LabelValue(StrEnum):
    """How probabilities of a scale's labels become one value."""

    MOST_PROBABLE = "most_probable"
    EXPECTED = "expected"


class BinaryQuestions(StrEnum):
    """Who grades answers to binary questions."""

    JUDGE = "judge"
    RULE = "rule"


JUDGE_INFO: Final = ParameterInfo(
    name="model",
    description="Judge: a name of the model list; NAME@DIGEST (8 hex digits or more) insists on exact weights.",
    default_value="",
    allowed="a judge that is here; empty: the default one",
)
PROMPT_INFO: Final = ParameterInfo(
    name="prompt",
    description="What the judge is shown; its name, version and digest stand in every result.",
    default_value="",
    allowed="NAME/VERSION[@DIGEST] of a prompt that the server knows, or a prompt file's text; empty: the metric's own",
)


def value_info(default: LabelValue) -> ParameterInfo:
    """`value`, for Models.List."""
    return ParameterInfo(
        name="value",
        description="most_probable: the label that the judge finds most probable; expected: the labels' mean, weighted "
        "with their probabilities.",
        default_value=default,
        allowed=", ".join(LabelValue),
    )


def binary_info(default: BinaryQuestions) -> ParameterInfo:
    """`binary`, for Models.List."""
    return ParameterInfo(
        name="binary",
        description="Who grades answers to yes/no questions: the judge, or the answer's own yes or no against most of "
        "the references (the judge where an answer is not yes or no and nothing else).",
        default_value=default,
        allowed=", ".join(BinaryQuestions),
    )


ADVICE: Final = (
    "On labelled answers to text questions a small judge agrees less with people than smile, which costs far less: "
    "docs/research/judge.md."
)
"""What people should know before they pay for a judge metric."""


@dataclass(frozen=True, slots=True)
class JudgeParameters(PlainParameters):
    """Base of a judge metric's parameters, which have a field `prompt`.

    Attributes:
        metric: Whose parameters they are.
        prompts: Where `prompt` is looked up; no parameter of the metric, for `prompt` says all by its digest or text.
    """

    metric: ClassVar[str]

    prompts: PromptLibrary = field(default=PACKAGE_PROMPTS, kw_only=True, repr=False, compare=False)

    if TYPE_CHECKING:
        prompt: str

    @property
    def file(self) -> PromptFile:
        """What `prompt` means; a text is read once and remembered."""
        return self.prompts.find(self.metric, self.prompt)

    @property
    def prompt_name(self) -> str:
        """NAME/VERSION of the prompt file."""
        return self.file.title

    @property
    def prompt_digest(self) -> str:
        """SHA-256 of the prompt file, 64 hex digits."""
        return self.file.digest

    def take_choices(self, **choices: type[StrEnum]) -> None:
        """Makes members of the fields that are named, by their enum; for `__post_init__`.

        Raises:
            ParameterError: A choice that does not exist.
        """
        for name, kind in choices.items():
            object.__setattr__(self, name, member(kind, name, getattr(self, name)))

    def take_prompt(self, variant: str) -> None:
        """Sets `prompt` to what names exactly one file; for `__post_init__`.

        Raises:
            ParameterError: There is no such prompt, it cannot be read, or it lacks the variant.
        """
        try:
            file = self.file
        except PromptError as error:
            raise ParameterError("prompt", str(error)) from None
        if variant not in file.variants:
            raise ParameterError("prompt", f"{file.title} has no {variant}; it has {', '.join(file.variants)}")
        object.__setattr__(self, "prompt", self.prompts.parameter(file))
