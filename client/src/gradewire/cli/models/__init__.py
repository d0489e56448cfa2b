"""`gradewire models`."""
