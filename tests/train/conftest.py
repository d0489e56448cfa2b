"""Share WordNet, which takes seconds to read, among the trainer's tests of a worker."""

import pytest
from tests.support.debian.wordnet import wordnet_files

from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.wordnet import WordNet


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    return Lexicon(WordNet(wordnet_files()))
