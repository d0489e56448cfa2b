"""Score rows and join scores with labels, between reading and writing."""
