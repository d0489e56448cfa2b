"""The rounds of a judge metric: one need per step of the prompt file, each behind the answers before it."""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gradewire_server.domain.item import Item
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import Need, ask
from gradewire_server.domain.parts import JudgeParts
from gradewire_server.domain.quoting import shortened
from gradewire_server.domain.result import Failure, MetricResult, Status, Warning  # noqa: A004 - as domain
from gradewire_server.metrics.checks import cut_warning
from gradewire_server.metrics.judged.neutralise import neutralise
from gradewire_server.metrics.judged.parameters import LabelValue
from gradewire_server.metrics.judged.prompt import demonstration_set, fixed_turns, judge_prompt
from gradewire_server.metrics.judged.prompts import PromptFile, Step, Variant
from gradewire_server.metrics.judged.shown_item import show_item
from gradewire_server.metrics.judged.view import View

MIN_LABEL_MASS: Final = 0.01
"""Probability of all labels together under which they say nothing: the judge wanted to say something else."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A step's choice."""

    step: Step
    probabilities: tuple[float, ...]

    @property
    def label(self) -> str:
        """The most probable one; the first of equals."""
        return self.step.labels[self._best]

    def value(self, how: LabelValue) -> float:
        """One value, on the labels' own scale."""
        if how is LabelValue.MOST_PROBABLE:
            return self.step.values[self._best]
        mean = sum(p * value for p, value in zip(self.probabilities, self.step.values, strict=True))
        return min(max(mean, min(self.step.values)), max(self.step.values))

    def says_yes(self, how: LabelValue, correct_from: float) -> bool:
        """Of a verdict, 1 for yes and 0 for no: whether it is yes, in the way in which its value is taken.

        Args:
            how: As in `value`: a score of 1 and a verdict of no would contradict each other.
            correct_from: Probability of yes from which the expected verdict is yes.
        """
        if how is LabelValue.MOST_PROBABLE:
            return self.value(how) == 1
        return self.value(how) >= correct_from

    @property
    def _best(self) -> int:
        return self.probabilities.index(max(self.probabilities))


@dataclass(slots=True)
class Judged:
    """What a judge said in all steps, and what it took.

    Attributes:
        demonstrations: Kind of those that were shown; "" for none.
        cut: Something of the item was left out.
        masked: Words of the prediction were not shown.
        matched_reference: The alias that was shown alone.
        choices: By name of the step.
        answers: Labels and texts by name of the step, as the judge sees them in the next one.
        reason: The first text that it wrote.
        label_mass: Least probability of all labels of a step together; None where the judge does not tell.
        prompt_tokens: Of all steps; None where the judge does not tell.
        generated_tokens: Likewise.
    """

    demonstrations: str
    cut: bool
    masked: bool
    matched_reference: int | None
    choices: dict[str, Chosen] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    label_mass: float | None = None
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What was not shown as it was written."""
        return (*cut_warning(self.cut), *((Warning.MASKED,) if self.masked else ()))

    def count(self, other: "Judged") -> None:
        """Adds what a second asking took."""
        self.prompt_tokens = added(self.prompt_tokens, other.prompt_tokens)
        self.generated_tokens = added(self.generated_tokens, other.generated_tokens)

    def parts(self, scale: str, *, value: float | None, yes_probability: float | None) -> JudgeParts:
        """Parts with labels and probabilities of the step `scale`."""
        chosen = self.choices[scale]
        told = self.prompt_tokens is not None and self.generated_tokens is not None
        return JudgeParts(
            value=value,
            labels=chosen.step.labels,
            probabilities=chosen.probabilities,
            yes_probability=yes_probability,
            label_mass=self.label_mass,
            reason=self.reason,
            decided_by="judge",
            demonstrations=self.demonstrations,
            prompt_tokens=self.prompt_tokens if told else None,
            generated_tokens=self.generated_tokens if told else None,
        )


def ask_judge(
    model: str, file: PromptFile, variant_name: str, item: Item, view: View
) -> Generator[tuple[Need, ...], Any, Judged | MetricResult]:
    """Asks a judge all steps of a variant about an item that passes `check_judged`, one after the other.

    Returns:
        What it said; the result where that is no score: its failure, or UNPARSABLE where it wrote nothing, or its
        labels had less than MIN_LABEL_MASS.
    """
    variant = file.variants[variant_name]
    shown = show_item(item, file, variant, view)
    fixed = fixed_turns(file, variant_name, shown.kind, view)
    demonstrated = demonstration_set(file, variant, shown.kind, view.shots)
    judged = Judged(demonstrated, shown.cut, shown.masked, shown.matched_reference)
    for step in variant.steps:
        prompt = judge_prompt(fixed, shown.rendered, variant, judged.answers, item.images if view.image else ())
        if step.labels:
            answer: Choice | Generated | Failure = yield from ask(Choose(model, prompt, step.labels))
        else:
            answer = yield from ask(Generate(model, prompt, step.max_tokens, ("\n",)))
        if isinstance(answer, Failure):
            return _failed(answer, judged)
        failure = _choose(judged, step, answer) if isinstance(answer, Choice) else _write(judged, step, answer, variant)
        if failure is not None:
            return _failed(failure, judged)
        judged.prompt_tokens = added(judged.prompt_tokens, answer.prompt_tokens)
        judged.generated_tokens = added(judged.generated_tokens, answer.generated_tokens)
        judged.cut |= answer.truncated
    return judged


def _failed(failure: Failure, judged: Judged) -> MetricResult:
    # A reply that is no verdict may be about what was not shown; where nothing was judged there is nothing to explain.
    warnings = judged.warnings if failure.status is Status.UNPARSABLE else ()
    return replace(MetricResult.failed(failure), warnings=warnings)


def added(sum_so_far: int | None, tokens: int | None) -> int | None:
    """The sum of tokens; None where a judge does not tell all of them."""
    return None if sum_so_far is None or tokens is None else sum_so_far + tokens


def no_label(step: Step, choice: Choice) -> Failure | None:
    """UNPARSABLE where the labels of a step have less than MIN_LABEL_MASS together."""
    if choice.mass is None or choice.mass >= MIN_LABEL_MASS:
        return None
    return Failure(
        Status.UNPARSABLE,
        f"the judge answers something else than {shortened(', '.join(step.labels))}: it gives them "
        f"{choice.mass:.2g} of its probability together",
    )


def _choose(judged: Judged, step: Step, choice: Choice) -> Failure | None:
    if (failure := no_label(step, choice)) is not None:
        return failure
    if choice.mass is not None:
        judged.label_mass = choice.mass if judged.label_mass is None else min(judged.label_mass, choice.mass)
    if not choice.demonstrated:
        judged.demonstrations = ""
    chosen = judged.choices[step.name] = Chosen(step, choice.probabilities)
    judged.answers[step.name] = chosen.label
    return None


def _write(judged: Judged, step: Step, generated: Generated, variant: Variant) -> Failure | None:
    # A judge that was talked into writing a verdict of its own must not be held to it.
    text = neutralise(generated.text, variant.delimiters)
    if not text:
        return Failure(Status.UNPARSABLE, f"the judge wrote no {step.name}")
    judged.answers[step.name] = text
    judged.reason = judged.reason or text
    return None
