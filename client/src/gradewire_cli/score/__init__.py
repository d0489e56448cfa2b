"""`gradewire score`: score the answers of a file."""
