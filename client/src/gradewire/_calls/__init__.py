"""Calls of a client: check arguments, split calls into requests, resume broken calls and order results."""
