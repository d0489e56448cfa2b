"""Words, stems, lemmas and normal forms of texts."""
