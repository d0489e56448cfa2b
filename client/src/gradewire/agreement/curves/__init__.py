"""Curves of one metric against labels, and what its verdicts are worth where it trusts them."""
