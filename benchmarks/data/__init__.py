"""Get the human-labelled rows that docs/research uses from their public sources, and convert them."""
