"""Turns what a server answered into the answer to a need."""

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.domain.result import Failure
from gradewire_server.judges.remote.labels import Labels
from gradewire_server.judges.remote.server import Answer
from gradewire_server.judges.stops import first_stop


def read_choice(need: Choose, answer: Answer, sent: JudgePrompt) -> Choice | Failure:
    """The probabilities of the options.

    Args:
        need: What was asked for.
        answer: What the server answered.
        sent: The prompt as it was sent: its prediction may have been cut.
    """
    labels = Labels(need.options, "" if answer.continued else need.prompt.opening)
    steps = answer.steps
    reading = labels.read_text(answer.text, whole=answer.whole) if steps is None else labels.read(steps)
    if isinstance(reading, Failure):
        return reading
    truncated = sent.prediction != need.prompt.prediction
    return Choice(reading.probabilities, reading.mass, answer.prompt_tokens, truncated)


def read_text(need: Generate, answer: Answer, sent: JudgePrompt) -> Generated:
    """The text, without the opening that the judge may have repeated and without what ended it; otherwise as above."""
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
