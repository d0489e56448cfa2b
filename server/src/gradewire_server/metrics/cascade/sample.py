"""Which answers are of the sample that a judge is asked about: a hash of their content decides, and nothing else.

So the sample of a file does not depend on its order, on what else is in it or on how often it is scored, and a larger
share holds every smaller one.
"""

import json
from hashlib import blake2b
from typing import Final

from gradewire_server.domain.item import Item

_RANGE: Final = 2.0**64


def is_sampled(item: Item, share: float, seed: int) -> bool:
    """Whether an answer is of the sample.

    Args:
        item: Its question, references, prediction and captions count; its id and group do not.
        share: Of all answers, 0 to 1.
        seed: Another number draws another sample, independent of this one.
    """
    if share <= 0:
        return False
    said = json.dumps([seed, item.question, item.references, item.prediction, item.captions], ensure_ascii=True)
    drawn = int.from_bytes(blake2b(said.encode("ascii"), digest_size=8, person=b"auto sample").digest(), "big")
    return drawn < share * _RANGE
