"""Kinds of drawn rows, a file for each family."""
