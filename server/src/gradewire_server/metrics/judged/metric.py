"""The base of all metrics that ask a judge: their parameters, rounds of needs, and the score of a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Generic, TypeVar

from typing_extensions import override

from gradewire_proto.choices import BinaryQuestions, JudgeGuard, LabelValue, ShownReferences
from gradewire_proto.parts import JudgeParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ResultWarning, Status, shortened
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.domain.metric import MetricInfo, ModelMetadata, ParameterError, Parameters
from gradewire_server.domain.needs import Need, Preparation, Program, Rounds
from gradewire_server.metrics.common import (
    FailureError,
    check_question,
    cut_warning,
    preparing,
    scoring,
    stop_at,
    take_choices,
)
from gradewire_server.metrics.judged.prompt import (
    check_judged,
    demonstration_set,
    fixed_turns,
    judge_prompt,
    kind_of_question,
    show_item,
)
from gradewire_server.metrics.judged.references import View, count_references, other_key, rule_verdict, says_key
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS, PromptLibrary
from gradewire_server.metrics.prompts.neutralise import Delimiters, neutralise
from gradewire_server.metrics.prompts.prompt_file import PromptFile, Step
from gradewire_server.metrics.prompts.template import PromptError

WITHSTANDS_BELOW: Final = 0.5
"""Score against the other key (of judge_grade: probability of yes) from which the judge is not believed.

Chosen on the development half of docs/research/attacks.md: .3 and .4 cost more right answers, .65 lets more through.
"""
MIN_LABEL_MASS: Final = 0.01
"""Probability of all labels together under which they say nothing: the judge wanted to say something else."""


ADVICE: Final = (
    "On labelled answers to text questions a small judge agrees less with people than smile, which costs far less: "
    "docs/research/judge.md."
)
"""What people should know before they pay for a judge metric."""


@dataclass(frozen=True, slots=True)
class PromptParameters(Parameters):
    """Base of the parameters of all that shows a judge a prompt file; `metric` is the name of the one whose they are.

    `prompts` is no parameter: `prompt` (NAME/VERSION@DIGEST, or the text of a file) is looked up there.

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
    """Base of a judge metric's parameters, as types.proto describes them."""

    value: LabelValue = LabelValue.EXPECTED
    references: ShownReferences = ShownReferences.AUTO
    guard: JudgeGuard = JudgeGuard.NONE

    @property
    def view(self) -> View:
        """Return what of an item is shown."""
        return View(caption=self.caption, references=self.references)


@dataclass(frozen=True, slots=True)
class BinaryParameters(JudgeParameters):
    """Base of the parameters of metrics in which a rule may grade answers to binary questions."""

    binary: BinaryQuestions = BinaryQuestions.RULE


P = TypeVar("P", bound=JudgeParameters)

Answer = Choice | Generated | Failure
"""A judge's answer to one step."""


def ask_step(model: str, step: Step, prompts: Sequence[JudgePrompt]) -> Rounds[tuple[Answer, ...]]:
    """Ask a judge for one step of several prompts in one round; return its answers in their order."""
    needs: tuple[Need, ...] = tuple(
        Choose(model, prompt, step.labels) if step.labels else Generate(model, prompt, step.max_tokens, ("\n",))
        for prompt in prompts
    )
    answers: tuple[Answer, ...] = yield needs
    return answers


def read_answer(step: Step, answer: Answer, delimiters: Delimiters) -> str | Failure:
    """Return the label or the text of an answer, as the judge is shown it in its next step.

    UNPARSABLE where the labels have less than MIN_LABEL_MASS together, or no text was written. What the judge was
    talked into writing there is made harmless: it must not be held to a verdict of its own.
    """
    if isinstance(answer, Failure):
        return answer
    if isinstance(answer, Generated):
        text = neutralise(answer.text, delimiters)
        return text or Failure(Status.UNPARSABLE, f"the judge wrote no {step.name}")
    if answer.mass is None or answer.mass >= MIN_LABEL_MASS:
        return step.labels[answer.probabilities.index(max(answer.probabilities))]
    return Failure(
        Status.UNPARSABLE,
        f"the judge answers something else than {shortened(', '.join(step.labels))}: it gives them "
        f"{answer.mass:.2g} of its probability together",
    )


@dataclass(slots=True)
class Exchange:
    """What a judge was shown, and what its answers took; token counts are None where the judge does not tell."""

    cut: bool
    masked: bool
    prompt_tokens: int | None = field(default=0, kw_only=True)
    generated_tokens: int | None = field(default=0, kw_only=True)

    @property
    def warnings(self) -> tuple[ResultWarning, ...]:
        """Return what to say of what was not shown as it was written."""
        return (*cut_warning(self.cut), *((ResultWarning.MASKED,) if self.masked else ()))

    @property
    def tokens(self) -> tuple[int | None, int | None]:
        """Return tokens of prompts and of answers; None for both where the judge does not tell one of them."""
        found = self.prompt_tokens, self.generated_tokens
        return (None, None) if None in found else found

    def count(self, more: "Choice | Generated | Exchange") -> None:
        """Add what another answer, or asking again, took."""
        self.prompt_tokens = _added(self.prompt_tokens, more.prompt_tokens)
        self.generated_tokens = _added(self.generated_tokens, more.generated_tokens)


def _added(sum_so_far: int | None, tokens: int | None) -> int | None:
    return None if sum_so_far is None or tokens is None else sum_so_far + tokens


@dataclass(frozen=True, slots=True)
class Chosen:
    """A step's choice."""

    step: Step
    choice: Choice

    def value(self, how: LabelValue) -> float:
        """Return one value, on the labels' own scale."""
        probabilities, values = self.choice.probabilities, self.step.values
        if how is LabelValue.MOST_PROBABLE:
            return values[probabilities.index(max(probabilities))]
        mean = sum(p * value for p, value in zip(probabilities, values, strict=True))
        return min(max(mean, min(values)), max(values))


@dataclass(slots=True)
class Judged(Exchange):
    """A judge's choices and answers in all steps about an item, by name of the step.

    `demonstrations` is the kind of those that were to be shown, "" for none.
    """

    demonstrations: str
    matched_reference: int | None
    choices: dict[str, Chosen] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)


def ask_judge(model: str, file: PromptFile, variant_name: str, item: Item, view: View) -> Rounds[Judged]:
    """Ask a judge all steps of a variant about an item that passes `check_judged`, one after the other.

    Raises:
        FailureError: What it said is no score: its failure, or UNPARSABLE.
    """
    variant = file.variants[variant_name]
    shown = show_item(item, file, variant, view)
    fixed = fixed_turns(file, variant_name, shown.kind, view)
    demonstrated = demonstration_set(file, variant, shown.kind, view.shots)
    judged = Judged(shown.cut, shown.masked, demonstrated, shown.matched_reference)
    for step in variant.steps:
        prompt = judge_prompt(fixed, shown.rendered, variant, judged.answers, item.images if view.image else ())
        (answer,) = yield from ask_step(model, step, [prompt])
        read = read_answer(step, answer, variant.delimiters)
        if isinstance(answer, Failure) or isinstance(read, Failure):
            failure = next(each for each in (answer, read) if isinstance(each, Failure))
            # A reply that is no verdict may be about what was not shown; else there is nothing to explain.
            warnings = judged.warnings if failure.status is Status.UNPARSABLE else ()
            raise FailureError(failure, replace(MetricResult.failed(failure), warnings=warnings))
        judged.count(answer)
        judged.cut |= answer.truncated
        judged.answers[step.name] = read
        if isinstance(answer, Choice):
            judged.choices[step.name] = Chosen(step, answer)
    return judged


@dataclass(frozen=True, slots=True)
class Scale:
    """How a judge's choice becomes the score: `lowest` as 0, `highest` as 1.

    Attributes:
        step: Step of the prompt whose labels are the scale.
        verdict: Step whose yes or no is the verdict; empty: the score decides.
        shown: Whether the parts name the value; it is left out where the score says the same.
    """

    step: str
    lowest: float
    highest: float
    verdict: str = ""
    shown: bool = True

    def score(self, value: float) -> float:
        """Return the value between lowest and highest, as 0 to 1."""
        return (value - self.lowest) / (self.highest - self.lowest)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A judge's value on the labels' own scale, its score from 0 to 1, and what follows from them.

    `yes_probability` is None where the score decides, `other_key_score` where that key was not asked about.
    """

    value: float
    score: float
    yes_probability: float | None
    correct: bool
    other_key_score: float | None = None

    def compare_with_key(self, other: "_Verdict") -> "_Verdict":
        """Lowered, and wrong, where the judge believes the same answer against another question's key."""
        belief = other.score if other.yes_probability is None else other.yes_probability
        if belief < WITHSTANDS_BELOW:
            return replace(self, other_key_score=other.score)
        lowered = max(0.0, self.score - other.score)
        return replace(self, score=lowered, correct=False, other_key_score=other.score)


@dataclass(frozen=True, slots=True)
class JudgedMetric(Generic[P]):
    """Asks a judge the steps of a prompt; answers to binary questions may be graded by a rule instead."""

    info: MetricInfo
    parameters_type: type[P]
    scale: Scale

    @scoring
    def score(self, item: Item, parameters: P, metadata: ModelMetadata) -> Program:
        """One round for each step of the prompt's variant; none where the rule decides; as many again for the guard."""
        del metadata
        stop_at(check_judged(item))
        if parameters.view.image and not item.images:
            raise FailureError(Failure(Status.INVALID_INPUT, "images: there is none, and image=true needs one"))
        if isinstance(parameters, BinaryParameters) and parameters.binary is BinaryQuestions.RULE:
            verdict = rule_verdict(item.question, item.references, item.prediction)
            if verdict is not None:
                return self._by_rule(verdict)
        judged = yield from ask_judge(parameters.model, parameters.file, parameters.variant, item, parameters.view)
        said = self._verdict_of(judged, parameters)
        if parameters.guard is JudgeGuard.NONE or not said.correct or says_key(item, parameters.view.share):
            return self._by_judge(judged, said)
        view = parameters.view
        # Beside the same demonstrations, so that the key is all that differs.
        view = replace(view, kind=view.kind or kind_of_question(item, count_references(item.references)))
        about_key = replace(item, references=other_key(item))
        other = yield from ask_judge(parameters.model, parameters.file, parameters.variant, about_key, view)
        judged.count(other)
        return self._by_judge(judged, said.compare_with_key(self._verdict_of(other, parameters)))

    @preparing
    def prepare(self, entry: ReferenceEntry, parameters: P) -> Preparation:
        """Ask for nothing: a judge reads the references with each answer."""
        del parameters
        yield from ()
        return check_question(entry.question)

    def _by_rule(self, verdict: bool) -> MetricResult:  # noqa: FBT001 - the verdict is what it is about
        value = self.scale.highest if verdict else self.scale.lowest
        parts = JudgeParts(value=value if self.scale.shown else None, decided_by="rule")
        return MetricResult(score=float(verdict), parts=parts, correct=verdict)

    def _verdict_of(self, judged: Judged, parameters: P) -> _Verdict:
        scale, correct_from = self.scale, parameters.file.variants[parameters.variant].correct_from
        value = judged.choices[scale.step].value(parameters.value)
        score = scale.score(value)
        if not scale.verdict:
            return _Verdict(value, score, None, correct=score >= correct_from)
        verdict = judged.choices[scale.verdict]
        # The most probable verdict is 1 or 0: a score of 1 and a verdict of no would contradict each other.
        least = 1.0 if parameters.value is LabelValue.MOST_PROBABLE else correct_from
        correct = verdict.value(parameters.value) >= least
        return _Verdict(value, score, verdict.value(LabelValue.EXPECTED), correct)

    def _by_judge(self, judged: Judged, said: _Verdict) -> MetricResult:
        chosen = judged.choices[self.scale.step]
        choices = [each.choice for each in judged.choices.values()]
        prompt_tokens, generated_tokens = judged.tokens
        parts = JudgeParts(
            value=said.value if self.scale.shown else None,
            labels=chosen.step.labels,
            probabilities=chosen.choice.probabilities,
            yes_probability=said.yes_probability,
            label_mass=min((choice.mass for choice in choices if choice.mass is not None), default=None),
            reason=next((text for name, text in judged.answers.items() if name not in judged.choices), ""),
            decided_by="judge" if said.correct or said.other_key_score is None else "guard",
            demonstrations=judged.demonstrations if all(choice.demonstrated for choice in choices) else "",
            prompt_tokens=prompt_tokens,
            generated_tokens=generated_tokens,
            other_key_score=said.other_key_score,
        )
        return MetricResult(
            score=said.score,
            warnings=judged.warnings,
            matched_reference=judged.matched_reference,
            parts=parts,
            correct=said.correct,
        )
