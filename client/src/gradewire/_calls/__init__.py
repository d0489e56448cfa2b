"""The methods of a client: check arguments, cut requests, resume broken calls and order results."""
