"""One of the two orders in which a pair is shown: what the judge has said of it so far."""

from dataclasses import dataclass, field

from gradewire_server.domain.comparison import OrderVerdict, Winner
from gradewire_server.domain.judge import Choice, Generated
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.compared.decision import winner_of
from gradewire_server.metrics.judged.neutralise import Delimiters, neutralise
from gradewire_server.metrics.judged.prompts import Rendered, Step
from gradewire_server.metrics.judged.rounds import no_label

_FIRST, _SECOND, _TIE = 1.0, 0.0, 0.5


@dataclass(slots=True)
class Order:
    """A pair with one of its answers first.

    Attributes:
        first: Which one.
        rendered: Its turn.
        answers: What the judge said, by name of the step.
        probabilities: Of answer A, answer B and a tie; None before they are read.
        label_mass: Of the step that they were read from.
        extracted: They were read from the reason alone.
        unreadable: Why no verdict can be read.
    """

    first: Winner
    rendered: Rendered
    answers: dict[str, str] = field(default_factory=dict)
    probabilities: tuple[float, float, float] | None = None
    label_mass: float | None = None
    extracted: bool = False
    unreadable: Failure | None = None

    @property
    def reason(self) -> str:
        """What the judge wrote; empty where nothing was asked for or written."""
        return self.answers.get("reason", "")

    @property
    def verdict(self) -> OrderVerdict:
        """What the judge says in this order."""
        winner = None if self.probabilities is None else winner_of(self.probabilities)
        return OrderVerdict(
            self.first, winner, self.probabilities, self.label_mass, self.reason, extracted=self.extracted
        )

    def wrote(self, step: Step, generated: Generated, delimiters: Delimiters) -> None:
        """Takes a generated text; a verdict that the judge was talked into writing there is made harmless."""
        text = neutralise(generated.text, delimiters)
        if text:
            self.answers[step.name] = text
        else:
            self.unreadable = Failure(Status.UNPARSABLE, f"the judge wrote no {step.name}")

    def chose(self, step: Step, choice: Choice) -> None:
        """Takes the probabilities of labels, whose values are those of the first answer."""
        self.unreadable = no_label(step, choice)
        if self.unreadable is not None:
            return
        first, second, tie = (
            sum(p for p, value in zip(choice.probabilities, step.values, strict=True) if value == wanted)
            for wanted in (_FIRST, _SECOND, _TIE)
        )
        a, b = (first, second) if self.first is Winner.A else (second, first)
        self.probabilities, self.label_mass = (a, b, tie), choice.mass
