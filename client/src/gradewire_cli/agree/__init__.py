"""`gradewire agree`: compare scores with human labels."""
