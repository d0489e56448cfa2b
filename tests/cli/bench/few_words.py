"""A thesaurus of a few words, as WordNet has them, and the lexicon."""

from gradewire_cli.bench.ave_shifts import WordForms

WORDS = WordForms()
_SENSES = {
    "lizard": (("lizard",),),
    "frog": (("frog", "toad"), ("frog", "Gaul"), ("frog",)),
    "car": (("car", "auto", "automobile"), ("car", "railcar")),
    "automobile": (("car", "auto", "automobile", "motorcar"),),
    "seed": (("seed",), ("seed", "seeded player")),
    "turkey": (("turkey",), ("Turkey", "Republic of Turkey")),
    "united kingdom": (("United Kingdom", "UK", "Britain"),),
    "edward iv": (("Edward", "Edward IV"),),
    "birth": (("birth", "nativity"), ("birth",)),
}


class FewWords:
    """Senses of these nouns."""

    def noun_senses(self, phrase: str) -> tuple[tuple[str, ...], ...]:
        return _SENSES.get(phrase, ())
