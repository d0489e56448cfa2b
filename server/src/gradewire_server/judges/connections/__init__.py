"""Connections to a judge's server, and the places for requests in flight."""
