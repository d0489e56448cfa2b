"""Generate examples; each depends only on seed, task, number and WordNet's files."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Final

from gradewire_train import TrainingError
from gradewire_train.examples import Example
from gradewire_train.texts import choices, dates, names, numbers
from gradewire_train.texts.actions import Activities, Qualities
from gradewire_train.texts.draw import Draw, Kind, candidate, checked, contrasted, described, sound
from gradewire_train.texts.lexicon import Lexicon, Sentences
from gradewire_train.texts.people import People, Places
from gradewire_train.texts.things import Things

_TRIES: Final = 200
_ATTEMPTS: Final = 20
Weighted = tuple[tuple[Kind, float], ...]


class Generator:
    """A source of examples for all tasks."""

    def __init__(self, lexicon: Lexicon) -> None:
        things, places, people = Things(lexicon), Places(lexicon), People(lexicon)
        activities, qualities, sentences = Activities(lexicon), Qualities(lexicon), Sentences(lexicon)
        words: Weighted = (
            (things.shown, 4.0),
            (things.term, 2.0),
            (activities.doing, 1.5),
            (qualities.like, 1.5),
            (places.located, 1.0),
            (people.known, 1.0),
            (choices.listed, 0.5),
        )
        values: Mapping[str, Weighted] = {
            "numbers": ((numbers.counted, 3.0), (numbers.measured, 2.0), (numbers.ranked, 1.0)),
            "colours": ((choices.coloured, 1.0),),
            "yes_no": ((choices.answered, 1.0),),
            "names": ((names.named, 3.0), (names.titled, 1.0)),
            "dates": ((dates.dated, 2.0), (dates.yeared, 1.5), (dates.spanned, 0.5), (dates.timed, 0.5)),
        }
        everything = (*words, *((kind, 0.6 * weight) for weighted in values.values() for kind, weight in weighted))
        self._kinds: Mapping[str, Weighted] = MappingProxyType(
            {
                **values,
                "synonyms": words,
                "candidates": everything,
                "descriptions": everything,
                "nli": ((sentences.definition, 1.0), (sentences.scene, 1.5)),
            }
        )

    def example(self, task: str, number: int, *, seed: int) -> Example:
        """Return an example; the same arguments always give the same example.

        Raises:
            TrainingError: WordNet's files do not contain enough words for an example.
        """
        rng = Random(f"{seed}/{task}/{number}")  # noqa: S311 - no secret
        for _ in range(_TRIES):
            draw = self._draw(rng, task)
            if draw is not None:
                example = self._made(rng, task, draw)
                if sound(example):
                    return example
        raise TrainingError(f"WordNet's files have too few words for examples of {task}. Check for missing files")

    def examples(self, task: str, count: int, *, seed: int) -> Iterator[Example]:
        """Yield a task's first `count` distinct examples; yield fewer if no more can be drawn.

        Raises:
            TrainingError: See `example`.
        """
        seen: set[Example] = set()
        for number in range(_ATTEMPTS * count):
            if len(seen) >= count:
                return
            example = self.example(task, number, seed=seed)
            if example not in seen:
                seen.add(example)
                yield example

    def _draw(self, rng: Random, task: str) -> Draw | None:
        kinds: Sequence[tuple[Kind, float]] = self._kinds[task]
        kind = rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        return checked(kind(rng))

    def _made(self, rng: Random, task: str, draw: Draw) -> Example:
        if task == "descriptions":
            return described(rng, draw)
        if task == "candidates":
            elsewhere = self._draw(rng, task)
            return candidate(rng, draw, elsewhere.answer if elsewhere else rng.choice(draw.wrong))
        return contrasted(rng, task, draw)
