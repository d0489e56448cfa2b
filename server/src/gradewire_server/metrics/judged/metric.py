"""The class of all metrics that ask a judge: rounds of needs, the guard `other_key`, and the score of a verdict."""

import hashlib
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from gradewire_proto.parts import JudgeParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ResultWarning, Status, shortened
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Need, Preparation, Program, ask
from gradewire_server.metrics.common import check_question, check_references, cut_warning
from gradewire_server.metrics.judged.parameters import (
    BinaryParameters,
    BinaryQuestions,
    Guard,
    JudgeParameters,
    LabelValue,
)
from gradewire_server.metrics.judged.prompt import (
    check_judged,
    demonstration_set,
    fixed_turns,
    judge_prompt,
    kind_of_question,
    show_item,
)
from gradewire_server.metrics.judged.references import (
    STOP_WORDS,
    View,
    closest,
    count_references,
    is_binary,
    reference_key,
    rule_verdict,
    without_rare,
)
from gradewire_server.metrics.prompts import PromptFile, Step, Variant
from gradewire_server.metrics.prompts.neutralise import neutralise

WITHSTANDS_BELOW: Final = 0.5
"""Score against the other key (of judge_grade: probability of yes) from which the judge is not believed.

Chosen on the development half of docs/research/attacks.md: .3 and .4 cost more right answers, .65 lets more through.
"""

_NUMBERS: Final = ("1847", "42 km", "seventeen", "6.3", "9 March 1911", "380")
_NAMES: Final = ("Reykjavik", "Clara Jensen", "Lake Tana", "the Blue Room", "Tobias Brandt", "Montevideo")
_THINGS: Final = ("a lighthouse", "copper", "the violin", "a hedgehog", "by sledge", "cinnamon")
_KEY_FROM: Final = 0.5
"""Share of a key's words from which an answer says it: one word of a longer key is soon met, in any language."""
_ARTICLES: Final = frozenset({
    "der", "die", "das", "den", "dem", "des", "ein", "eine", "le", "la", "les", "un", "une", "du", "de",
    "el", "los", "las", "una", "del", "il", "lo", "gli", "di",
})  # fmt: skip
"""Beside the English ones: with one of them half of "la Seine" would be said."""
_WORD: Final = re.compile(r"\w+")
_MOST_CHARACTERS: Final = 4096
"""Of a text whose words are looked at: a request may bring a thousand long ones."""


def says_key(item: Item, share: float) -> bool:
    """Whether the prediction has half of a reference's words, or of its letters, that the question has not.

    Latin letters that stand alone, articles and the like do not count, for they stand in every text: of a reference
    that is nothing else, only an answer that is the reference and no more says it.

    Args:
        item: One that passes `check_judged`.
        share: References rarer than this share of the most frequent one do not count.
    """
    asked = set(_words(item.question))
    keys = without_rare(count_references(item.references), share).keys
    if reference_key(item.prediction) in keys:
        return True
    own = [[word for word in _words(key) if word not in asked] for key in keys]
    # "Left or right?" has all words of its key.
    named = [words for words in own if words] or [_words(key) for key in keys]
    telling = [" ".join(word for word in words if not _is_met_anywhere(word)) for words in named]
    telling = [key for key in telling if key]
    return bool(telling) and closest(telling, item.prediction).share >= _KEY_FROM


def _is_met_anywhere(word: str) -> bool:
    is_letter = len(word) == 1 and word.isascii() and word.isalpha()
    return is_letter or word in STOP_WORDS or word in _ARTICLES


def other_key(item: Item) -> tuple[str, ...]:
    """References of another question, by which no answer to this one is right; the same ones for the same question.

    They are of the same form as the most frequent reference (a number, a name, a thing), as many as the item has where
    those are votes, and have no word in common with question and references. The prediction has no say: it may want to
    choose. Of a yes/no question it is the other one of yes and no.
    """
    counted = count_references(item.references)
    if is_binary(counted):
        key = "no" if counted.keys[0] == "yes" else "yes"
    else:
        said = {word for text in (item.question, *item.references) for word in _words(text)}
        ordered = _in_order(counted.texts[0], item.question)
        key = next((key for key in ordered if said.isdisjoint(_words(key))), ordered[0])
    return (key,) * len(item.references) if counted.votes else (key,)


def _in_order(reference: str, question: str) -> Sequence[str]:
    """Keys of the reference's form, beginning anywhere, then those of other forms."""
    has_digit = any(map(str.isdigit, reference))
    fit = _NUMBERS if has_digit else _NAMES if reference[:1].isupper() else _THINGS
    begin = hashlib.blake2b(question.encode(), digest_size=2).digest()[0] % len(fit)
    others = [key for form in (_NAMES, _THINGS, _NUMBERS) if form is not fit for key in form]
    return [*fit[begin:], *fit[:begin], *others]


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:_MOST_CHARACTERS].casefold())


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
    def warnings(self) -> tuple[ResultWarning, ...]:
        """What was not shown as it was written."""
        return (*cut_warning(self.cut), *((ResultWarning.MASKED,) if self.masked else ()))

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


P = TypeVar("P", bound=JudgeParameters)


@dataclass(frozen=True, slots=True)
class Scale:
    """How a judge's choice becomes the score.

    Attributes:
        step: Step of the prompt whose labels are the scale.
        lowest: Value that becomes 0.
        highest: Value that becomes 1.
        verdict: Step whose yes or no is the verdict; empty: the score decides.
        shown: Whether the parts name the value; it is left out where the score says the same.
    """

    step: str
    lowest: float
    highest: float
    verdict: str = ""
    shown: bool = True

    def score(self, value: float) -> float:
        """The value between lowest and highest, as 0 to 1."""
        return (value - self.lowest) / (self.highest - self.lowest)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a judge said, as numbers.

    Attributes:
        value: On the labels' own scale.
        score: 0 to 1.
        yes_probability: Of a verdict; None where the score decides.
        correct: Whether the answer is right by it.
        other_key_score: Score against another question's key; None where it was not asked.
    """

    value: float
    score: float
    yes_probability: float | None
    correct: bool
    other_key_score: float | None = None

    @property
    def belief(self) -> float:
        """What the verdict was made of, 0 to 1."""
        return self.score if self.yes_probability is None else self.yes_probability

    def held_against(self, other: "_Verdict") -> "_Verdict":
        """Lowered, and wrong, where the judge believes the same answer against another question's key."""
        if other.belief < WITHSTANDS_BELOW:
            return replace(self, other_key_score=other.score)
        lowered = max(0.0, self.score - other.score)
        return replace(self, score=lowered, correct=False, other_key_score=other.score)


@dataclass(frozen=True, slots=True)
class JudgedMetric(Generic[P]):
    """Asks a judge the steps of a prompt; answers to binary questions may be graded by a rule instead.

    Attributes:
        info: Its public face.
        parameters_type: Its parameters.
        scale: How what the judge says becomes score and verdict.
    """

    info: MetricInfo
    parameters_type: type[P]
    scale: Scale

    def score(self, item: Item, parameters: P, metadata: ModelMetadata) -> Program:
        """One round for each step of the prompt's variant; none where the rule decides; as many again for the guard."""
        del metadata
        failure = check_judged(item)
        if failure is None and parameters.view.image and not item.images:
            failure = Failure(Status.INVALID_INPUT, "images: there is none, and image=true needs one")
        if failure is not None:
            return MetricResult.failed(failure)
        if isinstance(parameters, BinaryParameters) and parameters.binary is BinaryQuestions.RULE:
            verdict = rule_verdict(item.question, item.references, item.prediction)
            if verdict is not None:
                return self._by_rule(verdict)
        judged = yield from ask_judge(parameters.model, parameters.file, parameters.variant, item, parameters.view)
        if isinstance(judged, MetricResult):
            return judged
        said = self._said(judged, parameters)
        if parameters.guard is Guard.NONE or not said.correct or says_key(item, parameters.view.share):
            return self._by_judge(judged, said)
        other = yield from self._ask_with_other_key(item, parameters)
        if isinstance(other, MetricResult):
            return other
        judged.count(other)
        return self._by_judge(judged, said.held_against(self._said(other, parameters)))

    def prepare(self, entry: ReferenceEntry, parameters: P) -> Preparation:
        """Asks for nothing: a judge reads the references with each answer."""
        del parameters
        yield from ()
        return check_references(entry.references) or check_question(entry.question)

    def _ask_with_other_key(self, item: Item, parameters: P) -> Generator[tuple[Need, ...], Any, Judged | MetricResult]:
        """Asks about the answer as if the question had another question's key."""
        view = parameters.view
        # Beside the same demonstrations, so that the key is all that differs.
        view = replace(view, kind=view.kind or kind_of_question(item, count_references(item.references)))
        item = replace(item, references=other_key(item))
        return (yield from ask_judge(parameters.model, parameters.file, parameters.variant, item, view))

    def _by_rule(self, verdict: bool) -> MetricResult:  # noqa: FBT001 - the verdict is what it is about
        value = self.scale.highest if verdict else self.scale.lowest
        parts = JudgeParts(value=value if self.scale.shown else None, decided_by="rule")
        return MetricResult(score=float(verdict), parts=parts, correct=verdict)

    def _said(self, judged: Judged, parameters: P) -> _Verdict:
        scale, correct_from = self.scale, parameters.file.variants[parameters.variant].correct_from
        value = judged.choices[scale.step].value(parameters.value)
        score = scale.score(value)
        if not scale.verdict:
            return _Verdict(value, score, None, correct=score >= correct_from)
        verdict = judged.choices[scale.verdict]
        yes_probability = verdict.value(LabelValue.EXPECTED)
        return _Verdict(value, score, yes_probability, correct=verdict.says_yes(parameters.value, correct_from))

    def _by_judge(self, judged: Judged, said: _Verdict) -> MetricResult:
        value = said.value if self.scale.shown else None
        parts = judged.parts(self.scale.step, value=value, yes_probability=said.yes_probability)
        if said.other_key_score is not None:
            decided_by = parts.decided_by if said.correct else "guard"
            parts = replace(parts, other_key_score=said.other_key_score, decided_by=decided_by)
        return MetricResult(
            score=said.score,
            warnings=judged.warnings,
            matched_reference=judged.matched_reference,
            parts=parts,
            correct=said.correct,
        )
