"""A client's methods: check arguments, split calls into requests, resume broken calls and order results."""
