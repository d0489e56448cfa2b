"""Score rows, and join scores with labels."""
