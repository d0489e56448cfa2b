"""Draw labelled rows for a grader: questions, references, and answers that are right or wrong by construction."""
