"""Get the human-labelled rows behind docs/research from their public sources, and convert them."""
