"""The calls of a client: arguments checked, requests cut, answers put in order."""
