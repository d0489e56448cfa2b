"""The human-labelled rows behind the figures of docs/research: where they are public, and how ours are made of them."""
