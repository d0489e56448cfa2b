"""The base of all judge metrics."""

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
from gradewire_server.metrics.prompts.prompt_file import PromptFile, Step, Variant
from gradewire_server.metrics.prompts.reading import example, read_label, spoken_text
from gradewire_server.metrics.prompts.template import PromptError

WITHSTANDS_BELOW: Final = 0.5
"""Minimum score for a wrong key at which the guard distrusts the judge.

For judge_grade, the probability of "yes" is compared instead of the score. The limit was chosen on the development half
of docs/research/attacks.md.
"""
MIN_LABEL_MASS: Final = 0.01
"""Minimum total probability of all labels. Below this limit, the judge's answer is not a label."""


WRITTEN: Final = "reason"
"""The name of the judge's one text among its answers."""
EXAMPLE_REASON: Final = "THE JUDGE'S REASON GOES HERE"

ADVICE: Final = (
    "On labelled answers to text questions, a small judge agrees less with annotators than smile does, and costs far "
    "more. See docs/research/judge.md."
)


@dataclass(frozen=True, slots=True)
class PromptParameters(Parameters):
    """The base class of parameters with a prompt file; `metric` is the metric's name.

    `prompts` is not a parameter, but the library that resolves `prompt` (NAME/VERSION@DIGEST, or a file's text).

    Raises:
        ParameterError: A choice is unknown, or the prompt does not exist, cannot be parsed, lacks the variant, or has
            no field for the requested caption.
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
            lines = " or ".join(file.metric_lines)
            raise ParameterError(
                "prompt", f"{file.title} has no {self.variant}, only {', '.join(file.variants)}: request {lines}"
            )
        if self.caption and "caption" not in file.variants[self.variant].item.fields:
            raise ParameterError("caption", f"{file.title} has no {{caption}} in the item of {self.variant}")
        # From here on, `prompt` names exactly one file.
        object.__setattr__(self, "prompt", self.prompts.parameter(file))

    @property
    def variant(self) -> str:
        """The name of the prompt file's variant to use."""
        raise NotImplementedError

    @property
    def file(self) -> PromptFile:
        """The prompt file that `prompt` names or contains."""
        return self.prompts.find(self.metric, self.prompt)

    @property
    def judged_variant(self) -> Variant:
        """The prompt file's variant to use."""
        return self.file.variants[self.variant]

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
    """The base class of a judge metric's parameters (see types.proto)."""

    value: LabelValue = LabelValue.EXPECTED
    references: ShownReferences = ShownReferences.AUTO
    guard: JudgeGuard = JudgeGuard.NONE

    @property
    def view(self) -> View:
        """The parts of an item to show to the judge."""
        return View(caption=self.caption, references=self.references)


@dataclass(frozen=True, slots=True)
class BinaryParameters(JudgeParameters):
    """The base class of parameters with a rule for binary questions."""

    binary: BinaryQuestions = BinaryQuestions.RULE


P = TypeVar("P", bound=JudgeParameters)

Answer = Choice | Generated | Failure


def ask_step(model: str, step: Step, prompts: Sequence[JudgePrompt]) -> Rounds[tuple[Answer, ...]]:
    """Ask a judge the same step of several prompts in one round; return the answers in the prompts' order."""
    needs: tuple[Need, ...] = tuple(
        Choose(model, prompt, step.labels) if step.labels else Generate(model, prompt, step.max_tokens, ("\n",))
        for prompt in prompts
    )
    answers: tuple[Answer, ...] = yield needs
    return answers


def ask_for_text(
    model: str, variant: Variant, prompts: Sequence[JudgePrompt]
) -> Rounds[tuple[Generated | Failure, ...]]:
    """Ask a judge for the one text of a variant for several prompts in one round; return the answers in order."""
    shown = example([step.rule for step in variant.steps], EXAMPLE_REASON)
    answers: tuple[Generated | Failure, ...] = yield tuple(
        Generate(model, prompt, variant.max_tokens, variant.stop, example=shown) for prompt in prompts
    )
    return answers


def read_text(variant: Variant, answer: Generated | Failure) -> "dict[str, Chosen] | Failure":
    """Return the labels that a judge's one text states, by step name, or the reason why a label is missing."""
    if isinstance(answer, Failure):
        return answer
    chosen: dict[str, Chosen] = {}
    for step in variant.steps:
        found = read_label(answer.text, step.rule, whole=answer.complete)
        if isinstance(found, Failure):
            return found
        if (without := step.without_verdict(step.labels[found])) is not None:
            return without
        shares = tuple(float(place == found) for place in range(len(step.labels)))
        chosen[step.name] = Chosen(step, Choice(shares, None, answer.prompt_tokens, answer.truncated))
    return chosen


def read_answer(step: Step, answer: Answer, delimiters: Delimiters) -> str | Failure:
    """Return the label or text of a judge's answer, for the next step's prompt.

    Return UNPARSABLE if the total probability of all labels is below MIN_LABEL_MASS, or if the judge wrote no text. If
    the label is no verdict, return the failure that the prompt maps it to. Text is neutralised, because it may repeat
    an attack from the answer under test.
    """
    if isinstance(answer, Failure):
        return answer
    if isinstance(answer, Generated):
        text = neutralise(answer.text, delimiters)
        return text or Failure(Status.UNPARSABLE, f"the judge wrote no {step.name}")
    if answer.mass is None or answer.mass >= MIN_LABEL_MASS:
        label = step.labels[answer.probabilities.index(max(answer.probabilities))]
        return step.without_verdict(label) or label
    return Failure(
        Status.UNPARSABLE,
        f"the judge's answer is none of the labels {shortened(', '.join(step.labels))}, which together have a "
        f"probability of only {answer.mass:.2g}",
    )


@dataclass(slots=True)
class Exchange:
    """An exchange with a judge.

    Attributes:
        cut: True if a shown text was cut.
        masked: True if words of an answer were removed.
        prompt_tokens: The number of prompt tokens so far, or None if the judge does not report this number.
        generated_tokens: The same for generated tokens.
    """

    cut: bool
    masked: bool
    prompt_tokens: int | None = field(default=0, kw_only=True)
    generated_tokens: int | None = field(default=0, kw_only=True)

    @property
    def warnings(self) -> tuple[ResultWarning, ...]:
        """The warnings about texts that the judge did not see in full."""
        return (*cut_warning(self.cut), *((ResultWarning.MASKED,) if self.masked else ()))

    @property
    def tokens(self) -> tuple[int | None, int | None]:
        """The numbers of prompt tokens and generated tokens, or (None, None) if either number is unknown."""
        found = self.prompt_tokens, self.generated_tokens
        return (None, None) if None in found else found

    @property
    def is_billed(self) -> bool:
        """True if the judge has answered."""
        return self.tokens != (0, 0)

    def count(self, more: "Answer | Exchange | JudgeParts") -> None:
        """Add the tokens of an answer or another exchange. Tokens of a failure are those of an unusable answer."""
        self.prompt_tokens = _added(self.prompt_tokens, more.prompt_tokens)
        self.generated_tokens = _added(self.generated_tokens, more.generated_tokens)


def _added(sum_so_far: int | None, tokens: int | None) -> int | None:
    return None if sum_so_far is None or tokens is None else sum_so_far + tokens


@dataclass(frozen=True, slots=True)
class Chosen:
    """The judge's choice in a step."""

    step: Step
    choice: Choice

    def value(self, how: LabelValue) -> float:
        """Return the value of the choice, on the labels' scale."""
        weighted = self.step.weighted(self.choice.probabilities)
        if how is LabelValue.MOST_PROBABLE:
            return max(weighted, key=lambda row: row[0])[1]
        values = [value for _, value in weighted]
        return min(max(sum(share * value for share, value in weighted), min(values)), max(values))


@dataclass(slots=True)
class Judged(Exchange):
    """A judge's choices and answers about an item, by step name.

    `demonstrations` is the name of the requested demonstration set; "" for none.
    """

    demonstrations: str
    matched_reference: int | None
    choices: dict[str, Chosen] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)


def ask_judge(model: str, file: PromptFile, variant_name: str, item: Item, view: View) -> Rounds[Judged]:
    """Ask a judge about an item that passes `check_judged`: all steps of a variant in turn, or for one text.

    Raises:
        FailureError: The judge failed, or its answer is UNPARSABLE.
    """
    variant = file.variants[variant_name]
    shown = show_item(item, file, variant, view)
    fixed = fixed_turns(file, variant_name, shown.kind, view)
    demonstrated = demonstration_set(file, variant, shown.kind, view.shots)
    judged = Judged(shown.cut, shown.masked, demonstrated, shown.matched_reference)
    images = item.images if view.image else ()
    if variant.max_tokens:
        prompt = judge_prompt(fixed, shown.rendered, variant, {}, images)
        (written,) = yield from ask_for_text(model, variant, [prompt])
        judged.count(written)
        chosen = read_text(variant, written)
        if isinstance(written, Failure) or isinstance(chosen, Failure):
            raise _failed(judged, written, chosen)
        judged.cut |= written.truncated
        judged.choices, judged.answers = chosen, {WRITTEN: spoken_text(written.text)}
        return judged
    for step in variant.steps:
        prompt = judge_prompt(fixed, shown.rendered, variant, judged.answers, images)
        (answer,) = yield from ask_step(model, step, [prompt])
        judged.count(answer)
        read = read_answer(step, answer, variant.delimiters)
        if isinstance(answer, Failure) or isinstance(read, Failure):
            raise _failed(judged, answer, read)
        judged.cut |= answer.truncated
        judged.answers[step.name] = read
        if isinstance(answer, Choice):
            judged.choices[step.name] = Chosen(step, answer)
    return judged


def _failed(judged: Judged, *found: object) -> FailureError:
    failure = next(each for each in found if isinstance(each, Failure))
    # Cut or masked text may explain an unreadable reply, but no other failure.
    warnings = judged.warnings if failure.status is Status.UNPARSABLE else ()
    prompt_tokens, generated_tokens = judged.tokens
    parts = JudgeParts(prompt_tokens=prompt_tokens, generated_tokens=generated_tokens) if judged.is_billed else None
    return FailureError(failure, replace(MetricResult.failed(failure), warnings=warnings, parts=parts))


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from a judge's choice to the score: `lowest` becomes 0, and `highest` becomes 1.

    Attributes:
        step: The prompt's step whose labels are the scale.
        verdict: The step whose "yes" or "no" is the verdict; empty if the score determines the verdict.
        shown: True if the result's parts contain the value; False if the value equals the score.
    """

    step: str
    lowest: float
    highest: float
    verdict: str = ""
    shown: bool = True

    def score(self, value: float) -> float:
        """Return the score, 0 to 1, for a value from `lowest` to `highest`."""
        return (value - self.lowest) / (self.highest - self.lowest)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A judge's value on the labels' scale, the value as a score from 0 to 1, and the verdict.

    `yes_probability` is None if the score determines the verdict. `other_key_score` is None if the judge was not asked
    about a wrong key.
    """

    value: float
    score: float
    yes_probability: float | None
    correct: bool
    other_key_score: float | None = None

    def compare_with_key(self, other: "_Verdict") -> "_Verdict":
        """Return this verdict; if the judge also believes a wrong key, make the verdict "wrong" and lower the score."""
        belief = other.score if other.yes_probability is None else other.yes_probability
        if belief < WITHSTANDS_BELOW:
            return replace(self, other_key_score=other.score)
        lowered = max(0.0, self.score - other.score)
        return replace(self, score=lowered, correct=False, other_key_score=other.score)


@dataclass(frozen=True, slots=True)
class JudgedMetric(Generic[P]):
    """A metric that asks a judge the steps of a prompt; a rule may grade answers to binary questions instead."""

    info: MetricInfo
    parameters_type: type[P]
    scale: Scale

    @scoring
    def score(self, item: Item, parameters: P, metadata: ModelMetadata) -> Program:
        """Grade an item by rule, or ask the judge.

        The judge needs one round for each step of the prompt's variant, or two rounds with the guard.
        """
        del metadata
        stop_at(check_judged(item))
        if parameters.view.image and not item.images:
            raise FailureError(Failure(Status.INVALID_INPUT, "images: are empty, but image=true needs an image"))
        if isinstance(parameters, BinaryParameters) and parameters.binary is BinaryQuestions.RULE:
            verdict = rule_verdict(item.question, item.references, item.prediction)
            if verdict is not None:
                return self._by_rule(verdict)
        judged = yield from ask_judge(parameters.model, parameters.file, parameters.variant, item, parameters.view)
        said = self._verdict_of(judged, parameters)
        if parameters.guard is JudgeGuard.NONE or not said.correct or says_key(item, parameters.view.share):
            return self._by_judge(judged, said)
        view = parameters.view
        # Show the same demonstrations, so that only the key differs.
        view = replace(view, kind=view.kind or kind_of_question(item, count_references(item.references)))
        about_key = replace(item, references=other_key(item))
        try:
            other = yield from ask_judge(parameters.model, parameters.file, parameters.variant, about_key, view)
        except FailureError as error:
            if isinstance(error.result.parts, JudgeParts):
                judged.count(error.result.parts)
            raise _failed(judged, error.failure) from None
        judged.count(other)
        return self._by_judge(judged, said.compare_with_key(self._verdict_of(other, parameters)))

    @preparing
    def prepare(self, entry: ReferenceEntry, parameters: P) -> Preparation:
        """Check the question without requesting anything."""
        del parameters
        yield from ()
        return check_question(entry.question)

    def _by_rule(self, verdict: bool) -> MetricResult:  # noqa: FBT001 - the verdict is the only argument
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
        # With MOST_PROBABLE, the verdict's value is 1 or 0, and only 1 may count as right.
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
