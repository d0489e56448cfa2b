"""A value with its place in a text."""

from dataclasses import dataclass

from gradewire_server.metrics.text.values.clock import Time
from gradewire_server.metrics.text.values.dates import Date
from gradewire_server.metrics.text.values.kinds import Kind
from gradewire_server.metrics.text.values.ordinals import Ordinal
from gradewire_server.metrics.text.values.quantities import Quantity

Content = Date | Time | Quantity | Ordinal


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a text names.

    Attributes:
        kind: What it is.
        text: As written, in plain form.
        content: What it says.
        whole: Whether the text says nothing else.
    """

    kind: Kind
    text: str
    content: Content
    whole: bool = False
