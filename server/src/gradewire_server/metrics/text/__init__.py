"""Words, stems, lemmas and comparable forms of texts."""
