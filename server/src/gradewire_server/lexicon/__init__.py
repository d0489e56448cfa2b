"""Words and their meanings: WordNet's synonyms."""
