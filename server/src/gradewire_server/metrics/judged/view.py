"""What of an item a judge is shown."""

from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.judged.reference_filter import ReferenceChoice

DEFAULT_SHARE: Final = 0.25
"""References rarer than this share of the most frequent one are not shown (LAVE, section 4.2)."""


@dataclass(frozen=True, slots=True)
class View:
    """What of an item a judge is shown, and beside which demonstrations.

    Attributes:
        caption: Whether the captions are shown.
        share: References rarer than this share of the most frequent one are not shown.
        kind: Kind of question to take the demonstrations of; "" finds out.
        references: Which of several aliases are shown.
        shots: Demonstrations that are shown, the first ones of their set; None for all.
        image: Whether the images are shown; demonstrations have none.
    """

    caption: bool = False
    share: float = DEFAULT_SHARE
    kind: str = ""
    references: ReferenceChoice = ReferenceChoice.CLOSEST
    shots: int | None = None
    image: bool = False
