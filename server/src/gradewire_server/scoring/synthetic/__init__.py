"""Synthetic answers: a judge writes the sentence that stands for a reference, and it is checked."""
