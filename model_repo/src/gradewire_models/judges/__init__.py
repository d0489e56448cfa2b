"""Judges, language models that grade: their catalog, the built ones, and in `build` their construction."""
