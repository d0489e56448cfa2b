"""Judges, language models that grade: their catalog, those that are built, and in `build` how they are built."""
