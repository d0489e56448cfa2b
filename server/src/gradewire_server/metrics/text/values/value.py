"""A value with its place in a text."""

from dataclasses import dataclass

from gradewire_server.metrics.text.values.amounts.quantities import Quantity
from gradewire_server.metrics.text.values.dates.clock import Time
from gradewire_server.metrics.text.values.dates.dates import Date
from gradewire_server.metrics.text.values.formulas.formula import Formula
from gradewire_server.metrics.text.values.formulas.relations import Relation
from gradewire_server.metrics.text.values.kinds import Kind
from gradewire_server.metrics.text.values.signs.locants import Locant
from gradewire_server.metrics.text.values.signs.ordinals import Ordinal
from gradewire_server.metrics.text.values.signs.symbols import Symbol

Content = Date | Time | Quantity | Ordinal | Symbol | Locant | Formula | Relation


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a text names.

    Attributes:
        kind: What it is.
        text: As written, in plain form.
        content: What it says.
        whole: Whether the text says nothing else.
        noun: The word behind a number without unit, in small letters: "eyes" of "eight eyes"; empty for none.
        side: Of a date: -1 where "before" stands before it, 1 for "after", else 0.
        denied: Whether the text denies it: "not in 1999".
        on_top: Words of its clause, in small letters, where it is said to come on top of another value; else None.
    """

    kind: Kind
    text: str
    content: Content
    whole: bool = False
    noun: str = ""
    side: int = 0
    denied: bool = False
    on_top: frozenset[str] | None = None
