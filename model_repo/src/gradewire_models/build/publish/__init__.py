"""Puts a finished model with its description into a repository: everything or nothing."""
