"""From an item and a prompt file to what a judge sees."""

from collections.abc import Mapping
from functools import lru_cache

from gradewire_server.domain.image import Image
from gradewire_server.domain.judge import JudgePrompt, Role, Turn
from gradewire_server.metrics.judged.mask_labels import without_praise
from gradewire_server.metrics.judged.neutralise import cut_to_words, neutralise
from gradewire_server.metrics.judged.prompts import Demonstration, PromptFile, Rendered, Step, Variant
from gradewire_server.metrics.judged.prompts.shapes import DEMONSTRATION_SETS
from gradewire_server.metrics.judged.reference_filter import (
    ReferenceChoice,
    choose_shown,
    count_references,
    without_rare,
    write_references,
)
from gradewire_server.metrics.judged.view import View
from gradewire_server.metrics.text.word_split import MAX_WORDS


def demonstration_set(file: PromptFile, variant: Variant, kind: str, shots: int | None) -> str:
    """The set that is shown for a kind of question: that kind's, or else the first there is; "" for none."""
    if not variant.demonstrations or shots == 0:
        return ""
    return next((name for name in (kind, *DEMONSTRATION_SETS) if name in file.demonstrations), "")


@lru_cache(maxsize=256)
def fixed_turns(file: PromptFile, variant_name: str, kind: str, view: View) -> tuple[Turn, ...]:
    """The turns before an item's: instructions, and demonstrations as pairs of turns.

    Args:
        file: Prompt file.
        variant_name: One of its variants.
        kind: As in `demonstration_set`.
        view: What is shown of a demonstration, as of an item.
    """
    variant = file.variants[variant_name]
    system = variant.instructions(caption=view.caption, image=view.image)
    turns = [Turn(Role.SYSTEM, system)] if system else []
    shown = demonstration_set(file, variant, kind, view.shots)
    for demonstration in file.demonstrations[shown][: view.shots] if shown else ():
        turns.append(Turn(Role.USER, variant.item.render(_demonstrated(file, variant, demonstration, view)).text))
        turns.append(Turn(Role.ASSISTANT, answered(variant.steps, demonstration.answers)))
    return tuple(turns)


def judge_prompt(
    fixed: tuple[Turn, ...],
    item: Rendered,
    variant: Variant,
    answers: Mapping[str, str],
    images: tuple[Image, ...] = (),
) -> JudgePrompt:
    """The prompt of the first step that has no answer yet; `answers` by step name, one line each."""
    step = next(step for step in variant.steps if step.name not in answers)
    done = [step for step in variant.steps if step.name in answers]
    before = [answered(done, answers)] if done else []
    return JudgePrompt(fixed, item.lead, item.prediction, item.tail, "\n".join((*before, step.opening)), images)


def text_prompt(file: PromptFile, variant_name: str, fields: Mapping[str, str]) -> JudgePrompt:
    """The first step's prompt of a variant that is about a few texts alone (synthetic answers).

    Args:
        file: Prompt file.
        variant_name: One of its variants.
        fields: All that its template names; neutralised here, MAX_WORDS words of each are shown.
    """
    variant = file.variants[variant_name]
    shown = {name: neutralise(cut_to_words(text, MAX_WORDS)[0], variant.delimiters) for name, text in fields.items()}
    return judge_prompt(fixed_turns(file, variant_name, "", View()), variant.item.render(shown), variant, {})


def answered(steps: list[Step] | tuple[Step, ...], answers: Mapping[str, str]) -> str:
    """A judge's turn: a line for each step, opening and answer."""
    return "\n".join(f"{step.opening} {answers[step.name]}".lstrip() for step in steps)


def _demonstrated(file: PromptFile, variant: Variant, demonstration: Demonstration, view: View) -> dict[str, str]:
    counted = without_rare(count_references(demonstration.references), view.share)
    # With auto the turns before an item are those of closest: both then judge an item alike where they show it alike.
    choice = ReferenceChoice.ALL if view.references is ReferenceChoice.ALL else ReferenceChoice.CLOSEST
    shown = choose_shown(counted, demonstration.prediction, file.references, choice)
    references = write_references(shown.counted, file.references, variant.delimiters)
    return {
        "question": neutralise(demonstration.question, variant.delimiters),
        "references": references,
        "answer": references,
        "prediction": without_praise(
            neutralise(demonstration.prediction, variant.delimiters), variant.delimiters, shown.counted.texts
        ),
        "caption": neutralise(demonstration.caption, variant.delimiters) if view.caption else "",
        "problem": "",
    }
