"""`gradewire score`: scores the answers of a file."""
