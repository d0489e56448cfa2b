"""`gradewire score`: score the answers in a file."""
