"""Draw labelled rows of every kind from WordNet; each row depends only on seed, part, kind and number."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from random import Random
from typing import Final

from gradewire_train import TrainingError
from gradewire_train.graded import days, evasions, mentions, nouns, quantities, relations, statements, stories
from gradewire_train.graded.parts import Name, Part, PartRandom, TooFewError
from gradewire_train.graded.wording import Drawn, DrawnRow, owned, worded
from gradewire_train.texts import choices, dates, names, numbers
from gradewire_train.texts.actions import Activities, Qualities
from gradewire_train.texts.draw import Draw, checked
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.people import People, Places
from gradewire_train.texts.things import Things

_TRIES: Final = 400
_CLOSED: Final = frozenset({"count", "amount", "rank", "colour", "time_of_day"})
"""Kinds with the same few words in both parts, such as numbers and colours."""
_TRAINED_ONLY: Final = frozenset({"colour"})
"""Kinds that only the training part has, because they have too few words for two parts."""
Kind = Callable[..., Drawn | None]
"""A function that draws a row from a random generator and `right`, or returns None if the draw failed."""


class Drawer:
    """A source of rows of all kinds, drawn from one part's words, names and templates."""

    def __init__(self, lexicon: Lexicon, part: Name) -> None:
        self._lexicon, self._part = lexicon, Part(part)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of all kinds."""
        return tuple(self._kinds)

    def chosen(self, kinds: Sequence[str]) -> tuple[str, ...]:
        """Return `kinds`, or all kinds if none is named.

        Raises:
            TrainingError: This part does not have one of the kinds.
        """
        if unknown := sorted(set(kinds) - set(self.kinds)):
            raise TrainingError(f"this part has no kind {unknown[0]!r}, only {', '.join(self.kinds)}")
        return tuple(kinds) or self.kinds

    def rows(self, kind: str, count: int, *, seed: int) -> Iterator[DrawnRow]:
        """Yield a kind's first `count` distinct rows, alternately right and wrong; yield fewer if no more can be drawn.

        Raises:
            TrainingError: WordNet's files do not contain enough words for a row.
        """
        seen: set[tuple[str, tuple[str, ...], str]] = set()
        for number in range(4 * count):
            if len(seen) == count:
                return
            drawn = self._row(kind, number, seed=seed, right=number % 2 == 0)
            key = (drawn.question, drawn.references, drawn.prediction)
            if key not in seen:
                seen.add(key)
                yield DrawnRow(f"drawn-{self._part.name}-{kind}-{number}", kind, drawn)

    def _row(self, kind: str, number: int, *, seed: int, right: bool) -> Drawn:
        rng = PartRandom(self._part, f"{seed}/{self._part.name}/{kind}/{number}")
        for _ in range(_TRIES):
            try:
                drawn = self._kinds[kind](rng, right=right)
            except TooFewError:
                continue
            if drawn is not None and drawn.right == right and drawn.prediction.strip():
                return drawn
        raise TrainingError(f"WordNet's files have too few words for rows of kind {kind}. Check for missing files")

    @cached_property
    def _draws(self) -> Mapping[str, Callable[[Random], Draw | None]]:
        things = Things(self._lexicon)
        return {
            "thing": things.shown,
            "term": things.term,
            "activity": Activities(self._lexicon).doing,
            "quality": Qualities(self._lexicon).like,
            "place": Places(self._lexicon).located,
            "known_person": People(self._lexicon).known,
            "person": names.named,
            "title": names.titled,
            "date": dates.dated,
            "period": dates.spanned,
            "time_of_day": dates.timed,
            "count": numbers.counted,
            "amount": numbers.measured,
            "rank": numbers.ranked,
            "colour": choices.coloured,
        }

    @cached_property
    def _kinds(self) -> Mapping[str, Kind]:
        noun, several = nouns.Nouns(self._lexicon), nouns.Lists(self._lexicon)
        relation = relations.Relations(self._lexicon)
        own: dict[str, Kind] = {
            "same_sentence_date": days.dated_sentence,
            "years_about": days.years_about,
            "part_of_date": days.part_of_date,
            "unit": quantities.unit,
            "share": quantities.share,
            "magnitude": quantities.magnitude,
            "digit": quantities.digit,
            "bound": quantities.bound,
            "ledger": quantities.ledger,
            "growth": quantities.growth,
            "frame": noun.frame,
            "precise": noun.precise,
            "definition": noun.definition,
            "list": several.members,
            "acronym": nouns.acronym,
            "bound_to": stories.bound_to,
            "roles": stories.roles,
            "compared": stories.compared,
            "reason": stories.reason,
            "trend": stories.trend,
            "reply": stories.reply,
            "science": stories.science,
            "claim": stories.claim,
            "denied": partial(self._evading, evasions.denied),
            "corrected": partial(self._evading, evasions.corrected),
            "hedged": partial(self._evading, evasions.hedged),
            "refused": partial(self._evading, evasions.refused),
            "off_topic": self._off_topic,
            "long": partial(self._evading, evasions.long),
            "converse": relation.converse,
            "noun_exchanged": relation.noun_exchanged,
            "opposite": relation.opposite,
            "part_of": relation.part_of,
            "members": relation.members,
            "negated": statements.negated,
            "affirmed": statements.affirmed,
            "numbers_compared": statements.numbers_compared,
            "quantified": statements.quantified,
            "conditional": statements.conditional,
            "worked": statements.worked,
            "of_another": partial(self._evading, mentions.of_another),
            "quoted": partial(self._evading, mentions.quoted),
            "retracted": partial(self._evading, mentions.retracted),
            "contrasted": partial(self._evading, mentions.contrasted),
            "wrapped": partial(self._evading, mentions.wrapped),
            "undecided": partial(self._evading, mentions.undecided),
        }
        every: dict[str, Kind] = {name: partial(self._worded, name) for name in self._draws}
        every.update(own)
        return {name: kind for name, kind in every.items() if self._part.name == "train" or name not in _TRAINED_ONLY}

    def _worded(self, name: str, rng: PartRandom, *, right: bool) -> Drawn | None:
        draw = checked(self._draws[name](rng))
        if draw is None:
            return None
        return worded(rng, draw, right=right, lexicon=None if name in _CLOSED else self._lexicon)

    def _any(self, rng: PartRandom) -> Draw | None:
        kinds = tuple(self._draws.values())
        draw = checked(kinds[rng.randrange(len(kinds))](rng))
        used = () if draw is None else (draw.answer, *draw.same, *draw.wrong)
        return draw if all(owned(rng, self._lexicon, each) for each in used) else None

    def _evading(self, make: Callable[..., Drawn | None], rng: PartRandom, *, right: bool) -> Drawn | None:
        draw = self._any(rng)
        return None if draw is None else make(rng, draw, right=right)

    def _off_topic(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        draw, elsewhere = self._any(rng), self._any(rng)
        if draw is None or elsewhere is None or draw.answer == elsewhere.answer:
            return None
        return evasions.off_topic(rng, draw, elsewhere, right=right)
