"""What something is like: adjectives with their synonyms, against antonyms and other values of the same attribute."""

from random import Random

from gradewire_train.texts.data import word_list
from gradewire_train.texts.draw import Draw, some
from gradewire_train.texts.lexicon import Lexicon, plain
from gradewire_train.texts.wordnet import Synset

_WRONG = 3
_USUAL = 5
"""As often a word must have been met for most draws; WordNet has many that nobody says of a room."""
_SUBJECTS = word_list("described_things")


class Qualities:
    """Draws of WordNet's head adjectives that have an antonym."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._heads = [
            synset
            for synset in lexicon.decent
            if synset.key[0] == "a" and lexicon.antonyms(synset) and plain(synset.words[0].text)
        ]
        self._met = [synset for synset in self._heads if synset.words[0].met >= _USUAL]

    def like(self, rng: Random) -> Draw | None:
        """How something is: "large", "big"; looser: a similar word; wrong: the antonym and what is similar to that."""
        head = rng.choice(self._met if rng.random() < 0.9 else self._heads)
        subject = rng.choice(_SUBJECTS)
        answer = head.words[0].text
        attribute = next((self._lexicon.synset(key).words[0].text for key in head.linked("=")), None)
        asked = f"what is the {attribute} of the {subject}" if attribute else f"how is the {subject}"
        if rng.random() < 0.3:
            asked = f"what is the {subject} like"
        near = [synset for synset in self._similar(head) if plain(synset.words[0].text)]
        far = [
            word.text
            for name in self._lexicon.antonyms(head)
            for key in self._lexicon.keys_of(name)
            if key[0] == "a"
            for synset in some(rng, self._similar(self._lexicon.synset(key)), 1)
            for word in synset.words[:1]
        ]
        wrong = [*self._lexicon.antonyms(head), *(name for name in far if self._lexicon.differs(name, head))]
        same = [word.text for word in head.words[1:]]
        chosen = some(rng, near, 2)
        looser = [*(synset.words[0].text for synset in chosen), f"the {subject} is {answer}", f"{answer} {subject}"]
        same += [word.text for synset in chosen[:1] for word in synset.words[:1]] if not same else []
        return Draw(asked, f"The {subject} is {{}}", answer, tuple(same), tuple(looser), tuple(wrong[:_WRONG]))

    def _similar(self, head: Synset) -> list[Synset]:
        return [self._lexicon.synset(key) for key in head.linked("&")]
