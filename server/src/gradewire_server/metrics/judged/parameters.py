"""Parameters that the judge metrics share; field and value names as in types.proto."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final

from typing_extensions import override

from gradewire_server.domain.metric import ParameterError, Parameters
from gradewire_server.metrics.common import take_choices
from gradewire_server.metrics.judged.references import ReferenceChoice, View
from gradewire_server.metrics.prompts import PACKAGE_PROMPTS, PromptError, PromptFile, PromptLibrary


class LabelValue(StrEnum):
    """How probabilities of a scale's labels become one value."""

    MOST_PROBABLE = "most_probable"
    EXPECTED = "expected"


class Guard(StrEnum):
    """What an answer that the judge calls right has to withstand."""

    NONE = "none"
    OTHER_KEY = "other_key"


class BinaryQuestions(StrEnum):
    """Who grades answers to binary questions."""

    JUDGE = "judge"
    RULE = "rule"


ADVICE: Final = (
    "On labelled answers to text questions a small judge agrees less with people than smile, which costs far less: "
    "docs/research/judge.md."
)
"""What people should know before they pay for a judge metric."""


@dataclass(frozen=True, slots=True)
class PromptParameters(Parameters):
    """Base of the parameters of all that shows a judge a prompt file.

    Attributes:
        metric: Whose parameters they are.
        model: Plain name of the judge.
        prompt: NAME/VERSION@DIGEST, or the text of a prompt file.
        caption: Whether the judge is shown captions.
        prompts: Where `prompt` is looked up; no parameter of the metric, for `prompt` says all by its digest or text.

    Raises:
        ParameterError: A choice that does not exist, or a prompt that does not, cannot be read, lacks the variant or
            has no place for the caption that is to be shown.
    """

    metric: ClassVar[str]

    model: str = ""
    prompt: str = ""
    caption: bool = False
    prompts: PromptLibrary = field(default=PACKAGE_PROMPTS, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        take_choices(self)
        try:
            file = self.file
        except PromptError as error:
            raise ParameterError("prompt", str(error)) from None
        if self.variant not in file.variants:
            raise ParameterError("prompt", f"{file.title} has no {self.variant}; it has {', '.join(file.variants)}")
        if self.caption and "caption" not in file.variants[self.variant].item.fields:
            raise ParameterError("caption", f"{file.title} has no {{caption}} in the item of {self.variant}")
        # From here on it names exactly one file.
        object.__setattr__(self, "prompt", self.prompts.parameter(file))

    @property
    def variant(self) -> str:
        """Name of the prompt file's variant that is asked."""
        raise NotImplementedError

    @property
    def file(self) -> PromptFile:
        """The prompt file that `prompt` names or holds; a text is read once and remembered."""
        return self.prompts.find(self.metric, self.prompt)

    @property
    @override
    def prompt_name(self) -> str:
        return self.file.title

    @property
    @override
    def prompt_digest(self) -> str:
        return self.file.digest


@dataclass(frozen=True, slots=True)
class JudgeParameters(PromptParameters):
    """Base of a judge metric's parameters.

    Attributes:
        value: How the probabilities of labels become one value: the grade, rating, verdict or similarity.
        references: Which of several aliases the judge is shown.
        guard: What an answer that the judge calls right has to withstand.
    """

    value: LabelValue = LabelValue.EXPECTED
    references: ReferenceChoice = ReferenceChoice.AUTO
    guard: Guard = Guard.NONE

    @property
    def view(self) -> View:
        """Return what of an item is shown."""
        return View(caption=self.caption, references=self.references)


@dataclass(frozen=True, slots=True)
class BinaryParameters(JudgeParameters):
    """Base of the parameters of metrics in which a rule may grade answers to binary questions.

    Attributes:
        binary: Who grades them.
    """

    binary: BinaryQuestions = BinaryQuestions.RULE
