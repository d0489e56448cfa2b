"""Curves of one metric against labels, and the accuracy of its certain verdicts."""
