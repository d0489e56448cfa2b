"""Connections: how many there may be, what each has done, and which hosts may not open any for now."""
