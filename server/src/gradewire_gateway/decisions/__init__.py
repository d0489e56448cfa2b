"""Typed questions, answered with probabilities in the two forms in which decision servers are asked."""
