"""Attacks on judges: wrong answers that try to pass as right, their success, and the effect of guards."""
