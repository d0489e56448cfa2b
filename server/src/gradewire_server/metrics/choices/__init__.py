"""Options of multiple-choice questions, and the options that an answer chooses."""
