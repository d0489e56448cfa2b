"""Turns what a server answered into the answer to a need."""

from dataclasses import replace
from typing import Final

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.domain.quoting import quoted
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.remote.labels import UNREADABLE, Labels
from gradewire_server.judges.remote.server import Answer
from gradewire_server.judges.stops import first_stop

_THINKS: Final = (
    "if the judge thinks before it answers, set judge_reasoning_tokens (--judge-reasoning-tokens) to more than its "
    "thoughts take"
)
EXHAUSTED: Final = Failure(
    Status.UNPARSABLE, f"the judge's server used up the tokens that it may write before it answered: {_THINKS}"
)


def read_choice(need: Choose, answer: Answer, sent: JudgePrompt) -> Choice | Failure:
    """The probabilities of the options.

    Args:
        need: What was asked for.
        answer: What the server answered.
        sent: The prompt as it was sent: its prediction may have been cut.
    """
    if answer.exhausted:
        return EXHAUSTED
    truncated = sent.prediction != need.prompt.prediction
    told = answer.prompt_tokens, truncated, answer.generated_tokens, answer.demonstrated
    if answer.probabilities is not None:
        return Choice(answer.probabilities, None, *told)
    labels = Labels(need.options, "" if answer.continued else need.prompt.opening)
    steps = answer.steps
    reading = labels.read_text(answer.text, whole=answer.whole) if steps is None else labels.read(steps)
    if isinstance(reading, Failure):
        return _with_reply(reading, answer) if reading is UNREADABLE else reading
    return Choice(reading.probabilities, reading.mass, *told)


def read_text(need: Generate, answer: Answer, sent: JudgePrompt) -> Generated | Failure:
    """The text, without the opening that the judge may have repeated and without what ended it; otherwise as above."""
    if answer.exhausted:
        return EXHAUSTED
    text, whole = answer.text, answer.whole
    opening = need.prompt.opening
    begin = text.lstrip()
    if not answer.continued and opening and begin.casefold().startswith(opening.casefold()):
        text = begin[len(opening) :]
    end = first_stop(text, need.stop)
    if end is not None:
        text, whole = text[:end], True
    truncated = sent.prediction != need.prompt.prediction
    return Generated(text.strip(), whole, answer.prompt_tokens, answer.generated_tokens, truncated)


def _with_reply(failure: Failure, answer: Answer) -> Failure:
    # Held to the labels it may have written one that it finds all but impossible.
    wrote = f"{failure.message}, or finds them all but impossible: it wrote {quoted(answer.text.strip())}"
    return replace(failure, message=wrote if answer.whole else f"{wrote} and was cut short; {_THINKS}")
