"""Attacks on judges: wrong answers that are to pass for right ones, how often they do, and what guards change."""
