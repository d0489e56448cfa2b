"""Run a client's calls: check arguments, split calls into requests, resume broken calls and order results."""
