"""Draw labelled rows for a grader, with answers that are right or wrong by construction."""
